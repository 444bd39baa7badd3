package bench

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// metrics are samples in the text format of Prometheus.
type metrics []sample

type sample struct {
	name  string
	le    float64 // a bucket's upper bound; NaN: not a bucket
	value float64
}

// scrape reads a server's metrics.
func (p *process) scrape(ctx context.Context) (metrics, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url("/metrics"), http.NoBody)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: answerTimeout}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("/metrics answers %d", resp.StatusCode)
	}
	return readMetrics(resp.Body)
}

func readMetrics(r io.Reader) (metrics, error) {
	var m metrics
	s := bufio.NewScanner(r)
	for s.Scan() {
		line := s.Text()
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || line[0] == '#' {
			continue
		}
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("metric %q: %w", line, err)
		}
		name, labels, _ := strings.Cut(line[:at], "{")
		m = append(m, sample{name: strings.TrimSpace(name), le: upperBound(labels), value: value})
	}
	return m, s.Err()
}

// upperBound is the le label's value, or NaN.
func upperBound(labels string) float64 {
	_, rest, found := strings.Cut(labels, `le="`)
	text, _, ok := strings.Cut(rest, `"`)
	if !found || !ok {
		return math.NaN()
	}
	le, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN()
	}
	return le
}

// sum adds up a metric over its labels; false when there is none.
func (m metrics) sum(name string) (total float64, ok bool) {
	for _, s := range m {
		if s.name == name {
			total, ok = total+s.value, true
		}
	}
	return total, ok
}

// quantile is the upper bound of the bucket of a histogram, summed over its
// labels, that holds the quantile q; false when there is no such histogram, or
// nothing in it.
func (m metrics) quantile(name string, q float64) (float64, bool) {
	byBound := map[float64]float64{}
	for _, s := range m {
		if s.name == name+"_bucket" && !math.IsNaN(s.le) {
			byBound[s.le] += s.value
		}
	}
	type bucket struct{ le, count float64 }
	var buckets []bucket
	for le, count := range byBound {
		buckets = append(buckets, bucket{le, count})
	}
	slices.SortFunc(buckets, func(a, b bucket) int { return cmp.Compare(a.le, b.le) })
	if len(buckets) == 0 || buckets[len(buckets)-1].count == 0 {
		return 0, false
	}
	total := buckets[len(buckets)-1].count
	at := slices.IndexFunc(buckets, func(b bucket) bool { return b.count >= q*total })
	return buckets[at].le, true
}
