package config

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"

	"sluice/core"
)

// ack is one of the words accepted and delivered.
func ack() shape[bool] {
	words := map[bool]string{false: "accepted", true: "delivered"}
	value := text("must be accepted or delivered")
	value.schema.Enum = []string{words[false], words[true]}
	return shape[bool]{
		schema: value.schema,
		show:   func(v bool) any { return words[v] },
		read: func(d *decoder, path string, n *yaml.Node, into *bool) {
			word := words[*into]
			value.read(d, path, n, &word)
			if word != words[false] && word != words[true] {
				problem := "is neither of its words"
				if nearest(word, value.schema.Enum) != "" { // else it may be a secret
					problem = fmt.Sprintf("is %q", word)
				}
				d.fault(n, path, problem, "must be accepted or delivered")
				return
			}
			*into = word == words[true]
		},
	}
}

func breaker() shape[*core.BreakerConfig] {
	type b = core.BreakerConfig
	return optional(core.NewBreaker,
		part("failures", "So many failures in a row open it.", func(b *b) *int { return &b.Failures }, count[int](core.FailuresRange)),
		part("cooldown", "How long nothing is sent then. After that one batch is, and what comes of it decides.", func(b *b) *time.Duration { return &b.Cooldown }, duration(core.CooldownRange)),
	)
}

func rateLimit() shape[*core.RateConfig] {
	type r = core.RateConfig
	return optional(core.NewRate,
		part("requests", "The most requests in the time; a batch is one.", func(r *r) *int { return &r.Requests }, count[int](core.RequestsRange)),
		part("per", "The time.", func(r *r) *time.Duration { return &r.Per }, duration(core.PerRange)),
	)
}

// ordering is a mapping that counts by being there, even when it is empty.
func ordering() shape[core.Buffer] {
	fields := mapping("{}", core.NewBuffer(""),
		part("key", `What keeps its order in a group that has several shards: a template such as "{{ .json.order_id }}".`, func(b *core.Buffer) *string { return &b.OrderKey }, words()),
	)
	return shape[core.Buffer]{schema: fields.schema, read: func(d *decoder, path string, n *yaml.Node, into *core.Buffer) {
		fields.read(d, path, n, into)
		into.Ordered = true
	}}
}

// dedupe is a mapping with nothing but a window: zero stands for none.
func dedupe() shape[time.Duration] {
	fields := object(time.Duration(core.DedupeRange.Default),
		part("window", "For how long an id is remembered.", func(t *time.Duration) *time.Duration { return t }, duration(core.DedupeRange)),
	)
	return shape[time.Duration]{schema: fields.schema, read: func(d *decoder, path string, n *yaml.Node, into *time.Duration) {
		*into = time.Duration(core.DedupeRange.Default)
		fields.read(d, path, n, into)
		d.notZero(path+".window", *into, "must be "+core.DedupeRange.String())
	}}
}

// share is a number above 0 and at most 1.
func share() shape[float64] {
	lo, hi := int64(0), int64(1)
	return shape[float64]{
		schema: schema{Type: "number", ExclusiveMinimum: &lo, Maximum: &hi},
		show:   func(v float64) any { return v },
		read: func(d *decoder, path string, n *yaml.Node, into *float64) {
			if !d.plain(path, n) {
				return
			}
			if n.Tag != intTag && n.Tag != floatTag {
				d.wrong(n, path, core.SampleRight)
				return
			}
			v, err := strconv.ParseFloat(n.Value, 64)
			switch {
			case err != nil || v <= 0 || v > 1:
				d.fault(n, path, "is "+core.Cut(n.Value, 64), core.SampleRight)
			case !fraction.MatchString(n.Value):
				d.fault(n, path, "is "+core.Cut(n.Value, 64), core.SampleRight+", in plain decimal digits")
			default:
				*into = v
			}
		},
	}
}

// fraction is a number that reads the same in every version of YAML.
var fraction = regexp.MustCompile(`^[0-9](\.[0-9]+)?$`)
