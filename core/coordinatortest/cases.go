package coordinatortest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// The bounds that the contract gives, in bytes.
const (
	longestName   = 200
	largestRecord = 4 << 10
)

var tests = []test{
	{"there is no record at first", noneAtFirst},
	{"a change is seen by the next", changeSeen},
	{"nil removes a record", nilRemoves},
	{"an error changes nothing, and comes back as it is", errorKeeps},
	{"a change works on copies of its own", copies},
	{"records may hold any bytes, up to 4 KiB", anyBytes},
	{"names are different however alike they are", namesApart},
	{"32 goroutines of 25 increments lose none", increments},
	{"of 32 that take a turn, one has it", oneTakes},
}

func noneAtFirst(t *testing.T, p *probe) {
	p.is("n", nil)
	p.change("n", func(old []byte) ([]byte, error) {
		require.Nil(t, old)
		return nil, nil
	})
	p.is("n", nil)
}

func changeSeen(_ *testing.T, p *probe) {
	p.put("n", []byte("one"))
	p.is("n", []byte("one"))
	p.change("n", func(old []byte) ([]byte, error) { return append(old, " and two"...), nil })
	p.is("n", []byte("one and two"))
	p.change("n", func(old []byte) ([]byte, error) { return old, nil })
	p.is("n", []byte("one and two"))
	p.put("n", []byte("three"))
	p.is("n", []byte("three"))
}

func nilRemoves(_ *testing.T, p *probe) {
	p.put("n", []byte("one"))
	for range 2 { // the second time there is none
		p.put("n", nil)
		p.is("n", nil)
	}
	p.put("n", []byte("two"))
	p.is("n", []byte("two"))
}

func errorKeeps(t *testing.T, p *probe) {
	for _, was := range [][]byte{nil, []byte("one")} {
		p.put("n", was)
		for _, want := range []error{errors.New("mine"), core.Errorf(core.Conflict, "a lost race"), core.Errorf(core.Unavailable, "mine too")} {
			for _, made := range [][]byte{nil, []byte("other")} {
				err := p.c.Change(context.Background(), "n", func([]byte) ([]byte, error) { return made, want })
				require.Same(t, want, err)
				require.ErrorIs(t, err, want)
				p.is("n", was)
			}
		}
	}
}

func copies(_ *testing.T, p *probe) {
	spoil := func(b []byte) {
		for i := range b {
			b[i] = '!'
		}
	}
	mine := []byte("one")
	p.put("n", mine)
	spoil(mine)
	p.is("n", []byte("one"))
	var kept []byte
	_ = p.c.Change(context.Background(), "n", func(old []byte) ([]byte, error) {
		kept = old
		spoil(old)
		return old, errLook
	})
	p.is("n", []byte("one"))
	p.change("n", func(old []byte) ([]byte, error) {
		kept = old
		return old, nil
	})
	spoil(kept)
	p.is("n", []byte("one"))
}

func anyBytes(_ *testing.T, p *probe) {
	everyByte := make([]byte, 256)
	for i := range everyByte {
		everyByte[i] = byte(i)
	}
	for _, record := range [][]byte{
		{0}, {0xff}, []byte("ä🙂"), []byte(`{"a":1}`), everyByte,
		bytes.Repeat(everyByte, largestRecord/len(everyByte)), make([]byte, largestRecord),
	} {
		p.put("n", record)
		p.is("n", record)
	}
}

func namesApart(_ *testing.T, p *probe) {
	long := strings.Repeat("n", longestName-1)
	names := []string{
		"n", "N", " n", "n ", "n n", "n/n", "n/", "/n", "n#n", "n%2Fn", "n:n", "n\tn", "n\n", ".", "..", "*", "n*", "$n", "{}",
		`"`, `\`, "turn/orders", "breaker/orders", "ä", "a\u0308", "🙂", long + "1", long + "2",
		strings.Repeat("🙂", longestName/len("🙂")),
	}
	for i, name := range names {
		p.is(name, nil)
		p.put(name, []byte(strconv.Itoa(i)))
	}
	for i, name := range names {
		p.is(name, []byte(strconv.Itoa(i)))
	}
	p.put("n", nil)
	for i, name := range names[1:] {
		p.is(name, []byte(strconv.Itoa(i+1)))
	}
}

const goroutines = 32

// race runs fn in many goroutines at once.
func race(fn func(g int)) {
	gate := make(chan struct{})
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			<-gate
			fn(g)
		})
	}
	close(gate)
	wg.Wait()
}

func increments(t *testing.T, p *probe) {
	const each = 25
	race(func(g int) {
		for _, name := range []string{"shared", fmt.Sprint("of ", g)} {
			for range each {
				if err := p.c.Change(context.Background(), name, increment); err != nil {
					t.Errorf("increment of %q: %v", name, err)
					return
				}
			}
		}
	})
	p.is("shared", []byte(strconv.Itoa(goroutines*each)))
	for g := range goroutines {
		p.is(fmt.Sprint("of ", g), []byte(strconv.Itoa(each)))
	}
}

func increment(old []byte) ([]byte, error) {
	n := 0
	if old != nil {
		var err error
		if n, err = strconv.Atoi(string(old)); err != nil {
			return nil, err
		}
	}
	return []byte(strconv.Itoa(n + 1)), nil
}

func oneTakes(t *testing.T, p *probe) {
	taken := errors.New("it is taken")
	for round := range 5 {
		var errs [goroutines]error
		race(func(g int) {
			errs[g] = p.c.Change(context.Background(), "turn", func(old []byte) ([]byte, error) {
				if old != nil {
					return nil, taken
				}
				return []byte(strconv.Itoa(g)), nil
			})
		})
		won := -1
		for g, err := range errs {
			if err == nil {
				require.Equal(t, -1, won, "round %d: two have it", round)
				won = g
				continue
			}
			require.Same(t, taken, err, "round %d", round)
		}
		require.NotEqual(t, -1, won, "round %d: nobody has it", round)
		p.is("turn", []byte(strconv.Itoa(won)))
		p.put("turn", nil)
	}
}
