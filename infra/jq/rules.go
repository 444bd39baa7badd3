package jq

import (
	"strconv"
	"strings"
	"sync"

	"github.com/itchyny/gojq"
)

// rule is how a function of gojq is guarded: its input, and what its arguments
// and itself put out. An empty guard is none.
type rule struct {
	in, args string
	out      string // the guard of its output
	with     bool   // the guard of the arguments is given the input, too
}

// ruleOf is the rule of a function. What is not known to be light goes through
// all that it is given, and may make texts of it.
func ruleOf(name string, arity int) rule {
	full := name + "/" + strconv.Itoa(arity)
	if !builtins()[full] { // it is the program's own, or nobody's
		return rule{}
	}
	if r, ok := rules[full]; ok {
		return r
	}
	if r, ok := rules[name]; ok {
		return r
	}
	if strings.Contains(light, " "+name+" ") {
		return rule{}
	}
	return rule{in: guardText, args: guardText}
}

// light are functions whose cost does not depend on their input, or which are
// themselves many small instructions, or which only look through one string.
const light = " empty not select map first last type isempty all any limit skip until while repeat recurse " +
	"has in path paths pick arrays objects iterables booleans numbers strings nulls values scalars finites normals " +
	"length utf8bytelength infinite nan env startswith endswith ltrimstr rtrimstr trimstr ltrim rtrim trim " +
	"tostream combinations halt test match capture scan splits sub gsub "

// rules are those of functions by name, or by name and arity.
var rules = map[string]rule{
	"keys":         {in: guardFlat},
	"to_entries":   {in: guardFlat},
	"reverse":      {in: guardFlat},
	"add/0":        {in: guardDeep},
	"add/1":        {args: guardDeep},
	"range":        {args: guardFlat},
	"sort/0":       {in: guardDeep},
	"unique/0":     {in: guardDeep},
	"min/0":        {in: guardDeep},
	"max/0":        {in: guardDeep},
	"flatten":      {in: guardDeep, args: guardFlat},
	"sort_by":      {in: guardFlat, args: guardDeep},
	"group_by":     {in: guardFlat, args: guardDeep},
	"unique_by":    {in: guardFlat, args: guardDeep},
	"min_by":       {in: guardFlat, args: guardDeep},
	"max_by":       {in: guardFlat, args: guardDeep},
	"map_values":   {in: guardDeep, args: guardDeep},
	"walk":         {in: guardDeep, args: guardDeep},
	"with_entries": {in: guardFlat, args: guardDeep},
	"from_entries": {in: guardDeep},
	"del":          {in: guardDeep},
	"delpaths":     {in: guardDeep, args: guardPath},
	"getpath":      {args: guardPath},
	"setpath":      {in: guardFlat, args: guardPath}, // the second is a value, which is charged as one
	"nth/1":        {args: guardWritten},
	"transpose":    {in: guardSquare},
	"tonumber":     {in: guardNumber},
	"explode":      {in: guardMany},
	"implode":      {in: guardMany},
	"fromjson":     {in: guardMany, out: guardDeep},
	"split/1":      {in: guardMany, args: guardFlat},
	"split/2":      {},
	"join":         {args: guardJoin, with: true},
	"contains":     {args: guardContain, with: true},
	"inside":       {args: guardContain, with: true},
	"indices":      {in: guardMany, args: guardCompare, with: true},
	"index":        {in: guardMany, args: guardCompare, with: true},
	"rindex":       {in: guardMany, args: guardCompare, with: true},
}

// refused are functions that programs must not call, and why.
var refused = map[string]string{
	"now":               clock,
	"localtime":         zone,
	"strflocaltime":     zone,
	"input":             alone,
	"inputs":            alone,
	"input_filename":    alone,
	"debug":             "there is nowhere to write to",
	"stderr":            "there is nowhere to write to",
	"modulemeta":        "there are no modules",
	"get_search_list":   "there are no modules",
	"builtins":          "it would tell of functions that there are not",
	"fromstream":        "a payload is a value, not a stream",
	"input_line_number": alone,
}

const (
	clock = "the answer would be another on every try"
	zone  = "the answer would depend on where the program runs"
	alone = "a program sees one payload"
)

// builtins are the functions of gojq, as name/arity.
var builtins = sync.OnceValue(func() map[string]bool {
	q, err := gojq.Parse("builtins")
	if err != nil {
		panic(err)
	}
	v, _ := q.Run(nil).Next()
	all := map[string]bool{}
	for _, name := range v.([]any) {
		all[name.(string)] = true
	}
	return all
})
