package emf

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"

	"sluice/core"
)

// maxValues is the most values of one metric that a line may hold.
const maxValues = 100

// sample is what one line says of one series.
type sample struct {
	key
	values []float64
}

// samples is the series in parts that each fit a line; none if it has nothing
// to say. A distribution's zeros count: a send may well be on time.
func (s *series) samples() []sample {
	if definitions[s.metric].kind != distribution {
		if s.value == 0 {
			return nil
		}
		return []sample{{s.key, []float64{s.value}}}
	}
	parts := make([]sample, 0, 1+len(s.values)/maxValues)
	for part := range slices.Chunk(s.values, maxValues) {
		parts = append(parts, sample{s.key, part})
	}
	return parts
}

// Flush writes what has been reported since the last flush, one line a
// document and one Write a line; nothing if nothing happened. It is to be called
// at the end of every invocation, before the function is frozen. When it
// returns an error, of code Unavailable, what it could not write is gone.
func (m *Metrics) Flush(w io.Writer) error {
	samples, now := m.take()
	for _, d := range pack(samples) {
		line, err := json.Marshal(d.root(m.environment, now))
		if err != nil {
			return core.Wrap(core.Internal, err, "metrics cannot be encoded")
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return core.Wrap(core.Unavailable, err, "metrics cannot be written")
		}
	}
	return nil
}

// document is one line. Its labels are shared by all its samples: a dimension
// has one value in a line, and a metric stands in it once.
type document struct {
	labels  map[string]string
	samples []sample
}

// pack puts samples together in few documents. Those with the most labels come
// first: what belongs to the same batch then joins them.
func pack(samples []sample) []*document {
	slices.SortFunc(samples, func(a, b sample) int {
		return cmp.Or(
			-cmp.Compare(len(definitions[a.metric].Labels), len(definitions[b.metric].Labels)),
			cmp.Compare(a.metric, b.metric),
			slices.Compare(a.labels[:], b.labels[:]),
			slices.Compare(a.values, b.values), // parts of one series; it only keeps the order defined
		)
	})
	var documents []*document
	for _, s := range samples {
		i := slices.IndexFunc(documents, func(d *document) bool { return d.fits(&s) })
		if i < 0 {
			i = len(documents)
			documents = append(documents, &document{labels: make(map[string]string)})
		}
		documents[i].add(&s)
	}
	return documents
}

func (d *document) fits(s *sample) bool {
	for i, name := range definitions[s.metric].Labels {
		if value, taken := d.labels[name]; taken && value != s.labels[i] {
			return false
		}
	}
	return !slices.ContainsFunc(d.samples, func(o sample) bool { return o.metric == s.metric })
}

func (d *document) add(s *sample) {
	for i, name := range definitions[s.metric].Labels {
		d.labels[name] = s.labels[i]
	}
	d.samples = append(d.samples, *s)
}

// The parts of a line by the specification of the format.
type (
	metadata struct {
		Timestamp         core.Millis
		CloudWatchMetrics []*directive
	}
	directive struct {
		Namespace  string
		Dimensions [][]string
		Metrics    []metricDefinition
	}
	metricDefinition struct {
		Name string
		Unit string
	}
)

// root is the line's object: the metadata, and a member for each dimension and
// each metric that it refers to.
func (d *document) root(environment string, now core.Millis) map[string]any {
	root := make(map[string]any, 2+len(d.labels)+len(d.samples))
	meta := metadata{Timestamp: now}
	for i := range d.samples {
		s := &d.samples[i]
		definition := &definitions[s.metric]
		meta.add(definition, environment != "")
		if len(s.values) == 1 {
			root[definition.Name] = s.values[0]
		} else {
			root[definition.Name] = s.values
		}
	}
	for name, value := range d.labels {
		root[name] = value
	}
	if environment != "" {
		root[Environment] = environment
	}
	root["_aws"] = meta
	return root
}

// add defines a metric, beside those that have the same dimensions.
func (m *metadata) add(d *Definition, environment bool) {
	sets := d.dimensions(environment)
	i := slices.IndexFunc(m.CloudWatchMetrics, func(o *directive) bool {
		return slices.EqualFunc(o.Dimensions, sets, slices.Equal)
	})
	if i < 0 {
		i = len(m.CloudWatchMetrics)
		m.CloudWatchMetrics = append(m.CloudWatchMetrics, &directive{Namespace: Namespace, Dimensions: sets})
	}
	m.CloudWatchMetrics[i].Metrics = append(m.CloudWatchMetrics[i].Metrics, metricDefinition{d.Name, d.Unit})
}
