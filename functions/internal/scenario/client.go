package scenario

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// call makes a request, with other headers, each a name and a value. Status 0:
// there was no answer, which the text tells of.
func (w *world) call(method, path, contentType, body string, headers ...string) (status int, answer string, header http.Header) {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), method, w.URL()+path, strings.NewReader(body))
	require.NoError(w, err)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	r.Header.Set("Authorization", "Bearer "+Token)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := w.client.Do(r)
	if err != nil {
		return 0, err.Error(), nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error(), nil
	}
	return resp.StatusCode, string(text), resp.Header
}

// post sends an event, and returns the status.
func (w *world) post(event string) (status int, answer string) {
	w.Helper()
	status, answer, _ = w.call(http.MethodPost, "/v1/sources/in", "application/json", event)
	return status, answer
}

// accept sends an event, which must be accepted.
func (w *world) accept(event string) {
	w.Helper()
	status, answer := w.post(event)
	require.Equal(w, http.StatusAccepted, status, answer)
}

// acceptAll sends events in one request.
func (w *world) acceptAll(events []string) {
	w.Helper()
	status, answer, _ := w.call(http.MethodPost, "/v1/sources/in/batch", "application/x-ndjson", strings.Join(events, "\n"))
	require.Equal(w, http.StatusAccepted, status, answer)
}

// receipt is what a source answers.
type receipt struct {
	Accepted   int      `json:"accepted"`
	IDs        []string `json:"ids"`
	Filtered   int      `json:"filtered"`
	Duplicates int      `json:"duplicates"`
	Status     string   `json:"status"`
}

// told sends events to a source, in one request, and returns its status and what
// it says of them.
func (w *world) told(source string, events []string, headers ...string) (status int, r receipt) {
	w.Helper()
	path, contentType := "/v1/sources/"+source, "application/json"
	if len(events) > 1 {
		path, contentType = path+"/batch", "application/x-ndjson"
	}
	status, answer, _ := w.call(http.MethodPost, path, contentType, strings.Join(events, "\n"), headers...)
	require.NoError(w, json.Unmarshal([]byte(answer), &r), answer)
	require.Len(w, r.IDs, len(events), answer)
	r.IDs = nil
	return status, r
}

// letter is a dead letter.
type letter struct {
	ID, Buffer, Group, Destination, Reason, Answer, LastError string
	Status                                                    int
}

// letters lists the dead letters.
func (w *world) letters() []letter {
	w.Helper()
	var list struct{ DeadLetters []letter }
	w.read(http.MethodGet, "/v1/deadletters", &list)
	return list.DeadLetters
}

// read makes a control call that must succeed, and decodes its answer.
func (w *world) read(method, path string, into any) {
	w.Helper()
	status, answer, _ := w.call(method, path, "", "")
	require.Equal(w, http.StatusOK, status, answer)
	require.NoError(w, json.Unmarshal([]byte(answer), into), answer)
}

// next waits for a delivery.
func (w *world) next() Delivery {
	w.Helper()
	return w.sink.Next(w, w.State)
}

// collect waits until so many events have been delivered.
func (w *world) collect(events int) []Delivery {
	w.Helper()
	var all []Delivery
	for n := 0; n < events; {
		d := w.next()
		n += len(d.Lines)
		all = append(all, d)
	}
	return all
}

// drain waits, sweeping as it does, until the system holds nothing any more.
func (w *world) drain() {
	w.Helper()
	w.until("nothing is left", func() bool {
		var list struct {
			Buffers []struct{ PendingItems, ClaimedItems, DelayedItems int64 }
		}
		w.read(http.MethodGet, "/v1/buffers", &list)
		require.NotEmpty(w, list.Buffers)
		held := int64(0)
		for _, b := range list.Buffers {
			held += b.PendingItems + b.ClaimedItems + b.DelayedItems
		}
		return held == 0
	})
}

// over waits until the system holds nothing, and fails if the sink has got more
// than was taken from it.
func (w *world) over() {
	w.Helper()
	w.drain()
	d, more := w.sink.Poll()
	require.False(w, more, "nothing comes twice: %v", d)
}

// until waits for something, sweeping every second.
func (w *world) until(what string, holds func() bool) {
	w.Helper()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for end := time.Now().Add(Patience); !holds(); {
		if time.Now().After(end) {
			require.FailNow(w, "it never came to be that "+what, w.State())
		}
		w.Sweep(w)
		<-tick.C
	}
}

// lines are all events of deliveries, in order.
func lines(all []Delivery) []string {
	var list []string
	for i := range all {
		list = append(list, all[i].Lines...)
	}
	return list
}

// sizes are how many events each delivery had.
func sizes(all []Delivery) []int {
	list := make([]int, len(all))
	for i := range all {
		list[i] = len(all[i].Lines)
	}
	return list
}

// event is an event of a group.
func event(key string, n int) string { return fmt.Sprintf(`{"k":%q,"n":%d}`, key, n) }

// events are n events of a group, numbered from 1.
func events(key string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = event(key, i+1)
	}
	return list
}
