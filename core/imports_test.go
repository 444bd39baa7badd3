package core_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The rules of the source tree, held by reading it: who may import whom, how
// long things may get, and where time and randomness may come from.
const (
	module    = "sluice"
	mainLines = 40
	fileLines = 500
	funcLines = 80
)

func TestTree(t *testing.T) {
	t.Parallel()
	files := parseTree(t, "..")
	require.NotEmpty(t, files)
	require.Empty(t, check(files))
}

// TestTreeRules shows that each rule finds what it is for.
func TestTreeRules(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		path string
		src  string
		want string // part of the fault; "": none
	}{
		{"core imports a vendor", "core/a.go", `package core; import _ "github.com/tidwall/gjson"`, "core imports"},
		{"core imports core", "core/x/a.go", `package x; import _ "sluice/core"`, ""},
		{"core imports an adapter", "core/a.go", `package core; import _ "sluice/infra/embed"`, "core imports"},
		{"core imports a driver", "core/a.go", `package core; import _ "go.etcd.io/bbolt"`, "core imports"},
		{"core imports a look-alike", "core/a.go", `package core; import _ "sluice/corex"`, "core imports"},
		{"a core test imports more", "core/a_test.go", `package core; import _ "github.com/stretchr/testify/require"`, ""},
		{"a suite imports more", "core/storetest/a.go", `package storetest; import _ "pgregory.net/rapid"`, ""},
		{"a suite imports an adapter", "core/storetest/a.go", `package storetest; import _ "sluice/infra/memory"`, "suite imports"},
		{"an adapter imports another", "infra/x/a.go", `package x; import _ "sluice/infra/y"`, "another adapter"},
		{"an adapter imports its own parts", "infra/x/a.go", `package x; import _ "sluice/infra/x/internal/z"`, ""},
		{"an adapter's test imports memory", "infra/x/a_test.go", `package x; import _ "sluice/infra/memory"`, ""},
		{"an adapter's test imports another", "infra/x/a_test.go", `package x; import _ "sluice/infra/y"`, "another adapter"},
		{"an adapter imports two packages of a vendor", "infra/x/a.go",
			`package x; import (_ "github.com/v/w/v2/a"; _ "github.com/v/w/v2/b")`, ""},
		{"an adapter imports two vendors", "infra/x/a.go",
			`package x; import (_ "github.com/v/w"; _ "github.com/u/w")`, "more than one vendor"},
		{"an adapter's part imports a vendor of its own", "infra/x/y/a.go", `package y; import _ "github.com/u/w"`, ""},
		{"an adapter imports AWS and its runtime", "infra/x/a.go",
			`package x; import (_ "github.com/aws/aws-sdk-go-v2/aws"; _ "github.com/aws/smithy-go")`, ""},
		{"an adapter's test imports the stand-ins", "infra/x/a_test.go", `package x; import _ "sluice/infra/awstest"`, ""},
		{"an adapter imports the stand-ins", "infra/x/a.go", `package x; import _ "sluice/infra/awstest"`, "another adapter"},
		{"an adapter imports an entry point", "infra/x/a.go", `package x; import _ "sluice/functions/internal/wire"`, "nothing imports"},
		{"an entry point imports its wiring", "functions/x/main.go", `package main; import (_ "os"; _ "sluice/functions/internal/wire")`, ""},
		{"an entry point imports an adapter", "functions/x/main.go", `package main; import _ "sluice/infra/embed"`, "main imports"},
		{"a long main", "functions/x/main.go", "package main" + strings.Repeat("\n", mainLines), "lines"},
		{"a long file", "infra/x/a.go", "package x" + strings.Repeat("\n", fileLines+1), "lines"},
		{"a long function", "infra/x/a.go", "package x\nfunc f() {" + strings.Repeat("\n", funcLines) + "}", "f has"},
		{"core reads the clock", "core/a.go", `package core; import "time"; var t = time.Now()`, "time.Now"},
		{"core reads the clock by another name", "core/a.go", `package core; import x "time"; var t = x.Since`, "time.Since"},
		{"core measures", "core/a.go", `package core; import "time"; var t = time.Second`, ""},
		{"core rolls dice", "core/a.go", `package core; import "math/rand/v2"; var n = rand.IntN(6)`, "rand.IntN"},
		{"core takes a seed", "core/a.go", `package core; import "math/rand/v2"; var n = rand.New(rand.NewPCG(1, 2))`, ""},
		{"a test sleeps", "infra/x/a_test.go", `package x; import "time"; func f() { time.Sleep(1) }`, "time.Sleep"},
		{"a loop waits", "infra/x/a.go", `package x; import "time"; func f() { time.Sleep(1) }`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			faults := check([]source{parse(t, tt.path, []byte(tt.src))})
			if tt.want == "" {
				require.Empty(t, faults)
				return
			}
			require.Len(t, faults, 1)
			require.Contains(t, faults[0], tt.want)
		})
	}
}

// source is a file of the tree.
type source struct {
	path    string // slash-separated, from the module's root
	lines   int
	imports []string
	file    *ast.File
	set     *token.FileSet
}

func (s source) dir() string      { return path.Dir(s.path) }
func (s source) test() bool       { return strings.HasSuffix(s.path, "_test.go") }
func (s source) in(d string) bool { return s.path == d || strings.HasPrefix(s.path, d+"/") }

// suite reports whether the file belongs to a conformance suite, which is a
// test that adapters import.
func (s source) suite() bool {
	return s.in("core") && strings.HasSuffix(path.Base(s.dir()), "test")
}

func parseTree(t *testing.T, root string) []source {
	t.Helper()
	var files []source
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "data") {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(name) != ".go" {
			return nil
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		files = append(files, parse(t, filepath.ToSlash(rel), src))
		return nil
	})
	require.NoError(t, err)
	return files
}

func parse(t *testing.T, name string, src []byte) source {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, src, parser.SkipObjectResolution)
	require.NoError(t, err)
	s := source{path: name, lines: strings.Count(string(src), "\n"), file: file, set: set}
	for _, spec := range file.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		require.NoError(t, err)
		s.imports = append(s.imports, p)
	}
	return s
}

// check returns every breach of a rule, one line each.
func check(files []source) []string {
	var faults []string
	vendors := map[string]map[string]bool{} // by folder: a part of an adapter may have its own
	for _, s := range files {
		for _, p := range s.imports {
			if problem := importFault(s, p); problem != "" {
				faults = append(faults, fmt.Sprintf("%s: %s %s", s.path, problem, p))
			}
			if dir := s.dir(); adapterOf(dir) != "" && !s.test() && vendorOf(p) != "" {
				if vendors[dir] == nil {
					vendors[dir] = map[string]bool{}
				}
				vendors[dir][vendorOf(p)] = true
			}
		}
		faults = append(faults, lengthFaults(s)...)
		faults = append(faults, callFaults(s)...)
	}
	for dir, libraries := range vendors {
		if len(libraries) > 1 {
			faults = append(faults, fmt.Sprintf("%s: more than one vendor library: %v", dir, libraries))
		}
	}
	slices.Sort(faults)
	return faults
}

// importFault says what is wrong with s importing p.
func importFault(s source, p string) string {
	adapter := adapterOf(s.dir())
	other := adapterOf(strings.TrimPrefix(p, module+"/"))
	toEntry := within(p, module+"/functions")
	switch {
	case toEntry && !s.in("functions"):
		return "nothing imports an entry point:"
	case s.in("core") && s.suite() && other != "":
		return "a suite imports"
	case s.in("core") && !s.test() && !s.suite() && !std(p) && !within(p, module+"/core"):
		return "core imports"
	case adapter != "" && other != "" && other != adapter && !(s.test() && (other == "memory" || other == "awstest")):
		return "imports another adapter:"
	case entry(s) && !std(p) && !within(p, module+"/functions/internal") && !strings.HasPrefix(p, "github.com/aws/aws-lambda-go/"):
		return "a main imports"
	}
	return ""
}

func lengthFaults(s source) []string {
	var faults []string
	limit := fileLines
	if entry(s) {
		limit = mainLines - 1
	}
	if s.lines > limit {
		faults = append(faults, fmt.Sprintf("%s: %d lines, at most %d", s.path, s.lines, limit))
	}
	if s.test() || s.suite() {
		return faults
	}
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if n := s.set.Position(f.End()).Line - s.set.Position(f.Pos()).Line + 1; n > funcLines {
			faults = append(faults, fmt.Sprintf("%s: %s has %d lines, at most %d", s.path, f.Name.Name, n, funcLines))
		}
	}
	return faults
}

// callFaults finds clocks and dice in core, and sleeps in tests.
func callFaults(s source) []string {
	pure := s.in("core") && !s.test() && !s.suite()
	var faults []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		name := qualified(s.file, sel)
		pkg, fn := path.Dir(name), path.Base(name)
		banned := (s.test() || s.suite()) && name == "time/Sleep" ||
			pure && pkg == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep"}, fn) ||
			pure && (pkg == "math/rand" || pkg == "math/rand/v2") && !strings.HasPrefix(fn, "New") && fn != "Rand" && fn != "Source"
		if banned {
			faults = append(faults, fmt.Sprintf("%s: %s.%s", s.set.Position(sel.Pos()), path.Base(strings.TrimSuffix(pkg, "/v2")), fn))
		}
		return true
	})
	return faults
}

// qualified is sel as package path, slash, name, or "." if it names nothing of
// a package.
func qualified(f *ast.File, sel *ast.SelectorExpr) string {
	x, ok := sel.X.(*ast.Ident)
	if !ok {
		return "."
	}
	for _, spec := range f.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		name := path.Base(strings.TrimSuffix(p, "/v2"))
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == x.Name {
			return p + "/" + sel.Sel.Name
		}
	}
	return "."
}

// entry reports whether the file is an entry point's.
func entry(s source) bool {
	return s.in("functions") && !s.test() && s.file.Name.Name == "main"
}

// within reports whether package p is root or below it.
func within(p, root string) bool { return p == root || strings.HasPrefix(p, root+"/") }

// std reports whether p is of the standard library, whose first element has no dot.
func std(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	return first != module && !strings.Contains(first, ".")
}

// adapterOf is the name of the adapter that a folder belongs to, or "".
func adapterOf(dir string) string {
	rest, ok := strings.CutPrefix(dir, "infra/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// vendorOf is the library that package p belongs to, or "" if it is not a
// vendor's: host, owner and name on the code hosts that have owners; else host
// and first element. All of golang.org/x counts as standard.
func vendorOf(p string) string {
	if std(p) || within(p, module) || within(p, "golang.org/x") {
		return ""
	}
	if within(p, "github.com/aws/smithy-go") {
		return "github.com/aws/aws-sdk-go-v2" // whose runtime it is
	}
	parts := strings.Split(p, "/")
	n := 2
	if slices.Contains([]string{"github.com", "gitlab.com"}, parts[0]) {
		n = 3
	}
	return strings.Join(parts[:min(n, len(parts))], "/")
}
