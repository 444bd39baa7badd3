package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"sluice/core"
	"sluice/functions/internal/api"
)

const (
	// chunkLines and chunkBytes bound one request of a batch. A longer line
	// goes alone.
	chunkLines = 1000
	chunkBytes = 1 << 20
)

// chunk is one request of a batch: whole lines.
type chunk struct {
	body   []byte
	first  int // number of its first line, from 1
	lines  int
	events int // lines that are not blank
}

// chunker cuts NDJSON into chunks.
type chunker struct {
	in   *bufio.Reader
	held []byte // a line that the last chunk had no room for
	err  error  // ended the reading
	line int    // lines in the chunks so far
}

func newChunker(in io.Reader) *chunker { return &chunker{in: bufio.NewReaderSize(in, 64<<10)} }

// next is the next chunk that has an event in it, or io.EOF. What was read
// before another error comes first, so that nothing is skipped.
func (c *chunker) next() (chunk, error) {
	for {
		k := chunk{first: c.line + 1}
		c.fill(&k)
		c.line += k.lines
		if k.events > 0 {
			return k, nil
		}
		if c.err != nil {
			return k, c.err
		}
	}
}

func (c *chunker) fill(k *chunk) {
	for k.lines < chunkLines && c.err == nil {
		var line []byte
		if line, c.err = c.read(); c.err != nil {
			return
		}
		if len(k.body) > 0 && len(k.body)+len(line) > chunkBytes {
			c.held = line
			return
		}
		k.body = append(k.body, line...)
		k.lines++
		if len(bytes.TrimSpace(line)) > 0 {
			k.events++
		}
	}
}

// read is the next line, with its end. The last one may have none.
func (c *chunker) read() ([]byte, error) {
	if line := c.held; line != nil {
		c.held = nil
		return line, nil
	}
	var line []byte
	for {
		part, err := c.in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxEvent+1:
			return nil, fmt.Errorf("a line has more than %s, which no source takes", size(maxEvent))
		case err == nil, errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// batch sends NDJSON chunk by chunk. It stops at the first chunk that is not
// accepted, and says how many events were before it.
func (s *sending) batch(ctx context.Context, id string, in io.Reader, total int64) error {
	chunks, bar := newChunker(in), s.bar(total)
	s.shown = bar
	var sum struct{ requests, accepted, unrouted, filtered, doubles, dead int }
	for {
		k, err := chunks.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			var a api.Accepted
			key := fmt.Sprintf("%s-%d", id, sum.requests+1)
			a, err = s.post(ctx, call{path: []string{"v1", "sources", s.source, "batch"}, body: k.body}, "application/x-ndjson", key)
			sum.accepted += a.Accepted
			sum.unrouted += a.Unrouted
			sum.filtered += a.Filtered
			sum.doubles += a.Duplicates
			if a.Status == string(core.StatusDeadLettered) {
				sum.dead++
			}
		}
		if err != nil {
			bar.clear()
			return stopped(sum.accepted, &k, err)
		}
		sum.requests++
		bar.add(int64(len(k.body)), k.events)
	}
	bar.clear()
	fmt.Fprintf(s.stdout, "%s accepted in %s\n", plural(sum.accepted, "event"), plural(sum.requests, "request"))
	if sum.unrouted > 0 {
		fmt.Fprintf(s.stdout, "%s went nowhere: no buffer reads source %s\n", plural(sum.unrouted, "event"), s.source)
	}
	if sum.filtered > 0 {
		fmt.Fprintf(s.stdout, "%s dropped by filters\n", plural(sum.filtered, "event"))
	}
	if sum.doubles > 0 {
		fmt.Fprintf(s.stdout, "%s accepted before, and dropped\n", plural(sum.doubles, "event"))
	}
	if sum.dead > 0 {
		return fmt.Errorf("of %s, events were not delivered: they are dead letters now", plural(sum.dead, "request"))
	}
	return nil
}

// stopped is why a batch was not accepted to its end.
func stopped(before int, k *chunk, err error) error {
	where := fmt.Sprintf("lines %d to %d", k.first, max(k.first, k.first+k.lines-1))
	_, refused := errors.AsType[*answerError](err)
	_, unsent := errors.AsType[*unsentError](err)
	switch {
	case k.events == 0: // they could not be read
	case !refused && !unsent:
		where += ", of which it is not known whether they were accepted"
	case refused && k.first > 1:
		where += ", counted from there"
	}
	return fmt.Errorf("%s accepted, then stopped at %s: %w", plural(before, "event"), where, err)
}
