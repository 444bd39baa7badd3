package dynamo_test

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/core/coordinatortest"
	"sluice/infra/awstest"
	"sluice/infra/dynamo"
)

// TestCoordinator runs the suite of what processes share.
func TestCoordinator(t *testing.T) {
	t.Parallel()
	coordinatortest.Run(t, coordinatortest.Harness{
		Name: "dynamo",
		Open: func(t testing.TB) core.Coordinator {
			return harness("", dynamo.Options{}).Open(t).(*table)
		},
	})
}

// write makes a shared record a value, and returns what it was.
func (r *rig) write(name string, value []byte) (old []byte) {
	r.t.Helper()
	require.NoError(r.t, r.Change(r.ctx, name, func(was []byte) ([]byte, error) {
		old = was
		return value, nil
	}))
	return old
}

func TestShared(t *testing.T) {
	r := setup(t)
	names := []string{"turn/b", "turn/b2", "", "/", "\xff", "\xff\xfe", "=", "#", strings.Repeat("ä", 100)}
	for i, name := range names {
		require.Nil(t, r.write(name, []byte(strconv.Itoa(i))), "%q", name)
	}
	large := bytes.Repeat([]byte{0, 1, 0xff}, 4096/3)
	for i, name := range names {
		require.Equal(t, strconv.Itoa(i), string(r.write(name, large)), "%q", name)
		require.Equal(t, large, r.write(name, nil))
		require.Nil(t, r.write(name, []byte{}), "it was removed")
		require.Equal(t, []byte{}, r.write(name, nil), "one that is empty is one")
		require.Nil(t, r.write(name, nil))
	}
	groups, err := r.Groups(r.ctx, "", nil, 10)
	require.NoError(t, err)
	require.Empty(t, groups)

	refusal := errors.New("no")
	r.meter.Reset()
	require.Same(t, refusal, r.Change(r.ctx, "a", func([]byte) ([]byte, error) { return []byte("x"), refusal }))
	require.Equal(t, 1, r.meter.Usage().Requests)
	r.meter.Reset()
	r.write("a", []byte("x"))
	require.Equal(t, 2, r.meter.Usage().Requests)
	r.meter.Reset()
	r.write("a", []byte("x"))
	require.Equal(t, 1, r.meter.Usage().Requests, "it is so already")

	require.NoError(t, r.Close())
	require.Equal(t, core.Unavailable, core.CodeOf(r.Change(r.ctx, "a", func([]byte) ([]byte, error) { return nil, nil })))
}

// TestSharedExpires has the table delete what was removed, and what its writer
// may have left behind; nothing else.
func TestSharedExpires(t *testing.T) {
	bothWays(t, func(t *testing.T, r *rig) {
		hour := func() string { return strconv.FormatInt(int64(r.clock.Now().Add(time.Hour))/1000+1, 10) }
		r.write("turn/b", []byte("x"))
		require.Empty(t, r.expires(sharedKey("turn/b")))
		r.write("wait/e", []byte("x"))
		require.Equal(t, hour(), r.expires(sharedKey("wait/e")))
		r.clock.pass(time.Minute)
		r.write("wait/e", []byte("y"))
		require.Equal(t, hour(), r.expires(sharedKey("wait/e")))
		for _, name := range []string{"turn/b", "wait/e"} {
			r.faults.Set(awstest.Nth("PutItem", 1, awstest.Lost))
			r.write(name, nil)
			r.faults.Set(nil)
			require.Equal(t, hour(), r.expires(sharedKey(name)))
			r.clock.pass(time.Minute)
		}
		r.write("turn/b", []byte("z"))
		require.Empty(t, r.expires(sharedKey("turn/b")), "it is there again")

		// one that the table deletes under a change
		for _, next := range [][]byte{[]byte("w"), nil} {
			gone := false
			require.NoError(t, r.Change(r.ctx, "wait/e", func([]byte) ([]byte, error) {
				if !gone {
					gone = true
					r.expire(sharedKey("wait/e"))
				}
				return next, nil
			}))
			require.Equal(t, next, r.write("wait/e", []byte("last")))
		}
	})
}

// TestSharedRaces lets many count up one record, under lost answers that the
// client tries again, and none is counted twice.
func TestSharedRaces(t *testing.T) {
	bothWays(t, func(t *testing.T, r *rig) {
		const racers, rounds = 6, 5
		r.faults.Set(func(_ context.Context, c awstest.Call) awstest.Fault {
			return [...]awstest.Fault{awstest.None, awstest.None, awstest.None, awstest.Throttle, awstest.None}[c.Total%5]
		})
		var all sync.WaitGroup
		for range racers {
			all.Go(func() {
				for range rounds {
					err := r.Change(r.ctx, "n", func(old []byte) ([]byte, error) {
						n, _ := strconv.Atoi(string(old))
						return strconv.AppendInt(nil, int64(n+1), 10), nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		r.faults.Set(nil)
		require.Equal(t, strconv.Itoa(racers*rounds), string(r.write("n", nil)))
	})
}

// TestSharedLostAnswer shows that a change knows its own writing, be it the
// first, another, or a removal; and that another's behind it counts.
func TestSharedLostAnswer(t *testing.T) {
	bothWays(t, func(t *testing.T, r *rig) {
		for _, values := range [][2][]byte{{nil, []byte("a")}, {[]byte("a"), []byte("b")}, {[]byte("b"), nil}, {nil, []byte("c")}} {
			r.faults.Set(awstest.Nth("PutItem", 1, awstest.Lost))
			runs := 0
			require.NoError(t, r.Change(r.ctx, "x", func(old []byte) ([]byte, error) {
				runs++
				require.Equal(t, values[0], old)
				return values[1], nil
			}))
			require.Equal(t, 1, runs)
		}
		other := r.open(r.raw)
		r.faults.Set(func(ctx context.Context, c awstest.Call) awstest.Fault {
			switch {
			case c.Op != "PutItem" || c.Nth > 2:
				return awstest.None
			case c.Nth == 1:
				return awstest.Lost
			}
			require.NoError(t, other.Change(ctx, "x", func(old []byte) ([]byte, error) { return append(old, 'o'), nil }))
			return awstest.None
		})
		require.NoError(t, r.Change(r.ctx, "x", func(old []byte) ([]byte, error) { return append(old, 'm'), nil }))
		r.faults.Set(nil)
		require.Equal(t, "cmom", string(r.write("x", nil)))
	})
}

// TestSharedFails shows what is said when the table does not answer.
func TestSharedFails(t *testing.T) {
	r := setup(t)
	for _, op := range []string{"GetItem", "PutItem"} {
		r.faults.Set(func(_ context.Context, c awstest.Call) awstest.Fault {
			if c.Op == op {
				return awstest.Throttle
			}
			return awstest.None
		})
		err := r.Change(r.ctx, "x", func([]byte) ([]byte, error) { return []byte("x"), nil })
		require.Equal(t, core.Unavailable, core.CodeOf(err), "%v", err)
		require.Contains(t, core.DetailOf(err), "throttled")
	}
}
