package sqs_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/core/message"
	"sluice/infra/sqs/sqstest"
)

func TestPutInBatches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		n, bytes int
		requests int
	}{
		{"none", 0, 0, 0},
		{"one", 1, 10, 1},
		{"ten", 10, 10, 1},
		{"eleven", 11, 10, 2},
		{"two that just fit", 2, 1<<19 - 400, 1},
		{"two that do not", 2, 1 << 19, 2},
		{"many large ones", 10, 350 << 10, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newDead()
			want := lettersTo(c.n, c.bytes)
			require.NoError(t, d.Put(context.Background(), want))
			require.ElementsMatch(t, ids(want), d.stored(t))
			require.Equal(t, c.requests, d.fake.Calls("SendMessageBatch"))
		})
	}
}

func TestPutTooLarge(t *testing.T) {
	t.Parallel()
	err := newDead().Put(context.Background(), lettersTo(1, message.MaxLetter))
	require.Equal(t, core.TooLarge, core.CodeOf(err), "%v", err)
}

// TestLargestLetter puts an item of the largest size that the table takes, of
// bytes that are no text, with more headers than an event keeps, in few or in
// very many: it fits into a message, with room to spare, and comes back as it was.
func TestLargestLetter(t *testing.T) {
	t.Parallel()
	const room = message.MaxLetter * 3 / 4
	random := rand.NewChaCha8([32]byte{5})
	noise := func(n int) []byte {
		b := make([]byte, n)
		_, _ = random.Read(b)
		return b
	}
	few := []core.Header{{Name: "x", Value: string(noise(10 << 10))}}
	var many []core.Header
	for range 5 << 10 {
		many = append(many, core.Header{Name: "\xff", Value: "\xff"})
	}
	for _, c := range []struct {
		name    string
		body    []byte
		headers []core.Header
	}{
		{"noise", noise(350 << 10), few},
		{"noise, many headers", noise(350 << 10), many},
		{"what JSON escapes", []byte(strings.Repeat("\"\\\t", 350<<10/3)), few},
		{"what takes two units of UTF-16", []byte(strings.Repeat("🚰", 350<<10/4)), few},
		{"what XML does not allow", make([]byte, 350<<10), few},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			want := letter(1, 0)
			want.Item.Body, want.Item.Headers = c.body, c.headers
			want.Answer, want.LastError = strings.Repeat("\xff", core.MaxAnswer), strings.Repeat("\xff", core.MaxAnswer)
			d := newDead()
			require.NoError(t, d.Put(context.Background(), []core.DeadLetter{want}))
			size := len(d.fake.Bodies(d.queue)[0])
			t.Logf("%d bytes are a message of %d", want.Size(), size)
			require.Less(t, size, room)
			listed, _, err := d.List(context.Background(), everything, "", 1)
			require.NoError(t, err)
			require.Equal(t, []core.DeadLetter{want}, listed)
		})
	}
}

// TestPutRetries sends again what a batch's answer says was not taken, and
// nothing else.
func TestPutRetries(t *testing.T) {
	t.Parallel()
	d := newDead()
	d.fake.Refuse = func(_ string, nth int) (string, bool) {
		if nth == 2 || nth == 5 || nth == 12 { // of the first ten, and then of those two
			return "InternalError", false
		}
		return "", false
	}
	want := lettersTo(10, 10)
	require.NoError(t, d.Put(context.Background(), want))
	require.ElementsMatch(t, ids(want), d.stored(t), "each once")
	require.Equal(t, 3, d.fake.Calls("SendMessageBatch"))
}

func TestPutFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		code        string
		senderFault bool
		want        core.Code
		requests    int
	}{
		{"always", "InternalError", false, core.Unavailable, 3},
		{"throttled, as if it were our fault", "RequestThrottled", true, core.Unavailable, 3},
		{"our fault", "InvalidMessageContents", true, core.Internal, 1},
	} {
		d := newDead()
		d.fake.Refuse = func(_ string, nth int) (string, bool) {
			if nth == 1 || nth > 3 {
				return c.code, c.senderFault
			}
			return "", false
		}
		err := d.Put(context.Background(), lettersTo(3, 10))
		require.ErrorContains(t, err, c.code, c.name)
		require.Equal(t, c.want, core.CodeOf(err), "%s: %v", c.name, err)
		require.Equal(t, c.requests, d.fake.Calls("SendMessageBatch"), c.name)
	}
}

// TestPutLost has the answer to a put lost: it is put again, and what is there
// twice is listed once, taken once, and gone once it is done.
func TestPutLost(t *testing.T) {
	t.Parallel()
	d := newDead()
	d.fake.Fault = func(c sqstest.Call) sqstest.Fault {
		if c.Op == "SendMessageBatch" && c.Nth == 1 {
			return sqstest.Lost
		}
		return sqstest.None
	}
	want := lettersTo(3, 10)
	err := d.Put(context.Background(), want)
	require.Equal(t, core.Unavailable, core.CodeOf(err), "%v", err)
	require.NoError(t, d.Put(context.Background(), want))
	require.Len(t, d.stored(t), 6)

	listed, next, err := d.List(context.Background(), everything, "", 10)
	require.NoError(t, err)
	require.Empty(t, next)
	require.Equal(t, ids(want), ids(listed))
	now := wall.Now()
	taken, err := d.Take(context.Background(), everything, 10, now, now.Add(time.Minute))
	require.NoError(t, err)
	require.Equal(t, ids(want), ids(taken))
	require.NoError(t, d.Settle(context.Background(), taken, nil))
	require.Empty(t, d.stored(t))
}
