package message

import "sluice/core"

// delivery is a [core.Delivery] as it travels.
type delivery struct {
	V           int    `json:"v"`
	Buffer      *text  `json:"buffer"`
	Key         *text  `json:"key"`
	Shard       int    `json:"shard,omitempty"`
	Destination *text  `json:"destination"`
	Seen        *group `json:"seen,omitempty"`
}

func (d *delivery) versioned() int { return d.V }

func (d *delivery) fields() []field {
	fields := []field{{"buffer", d.Buffer != nil}, {"key", d.Key != nil}, {"destination", d.Destination != nil}}
	if d.Seen != nil {
		fields = append(fields, d.Seen.fields()...)
	}
	return fields
}

// mostSeen is the most bytes that a record may add to a delivery: one with
// large claims is left out, which costs its deliverer a reading and no more.
const mostSeen = 16 << 10

// EncodeDelivery writes a delivery; a large record that its sender has seen is
// left out. TooLarge: its key is far over what a group may have.
func EncodeDelivery(d core.Delivery) (string, error) {
	wire := delivery{
		V: version, Buffer: ptr(d.Ref.Buffer), Key: ptr(d.Ref.Key), Shard: d.Ref.Shard, Destination: ptr(d.Destination),
	}
	bare, err := deliveries.encode(&wire)
	if err != nil || d.Seen == nil || len(d.Seen.Claims) > core.MaxClaims {
		return bare, err
	}
	wire.Seen = groupOf(d.Seen)
	whole, err := deliveries.encode(&wire)
	if err != nil || len(whole)-len(bare) > mostSeen {
		return bare, nil //nolint:nilerr // it is whole without what its sender has seen
	}
	return whole, nil
}

// DecodeDelivery reads a delivery. Invalid: it is none.
func DecodeDelivery(data []byte) (core.Delivery, error) {
	var d delivery
	if err := deliveries.decode(data, &d); err != nil {
		return core.Delivery{}, err
	}
	if d.Seen != nil && len(d.Seen.Claims) > core.MaxClaims {
		return core.Delivery{}, core.Errorf(core.Invalid, "a delivery with %d claims; a group has at most %d", len(d.Seen.Claims), core.MaxClaims)
	}
	return core.Delivery{
		Ref:         core.Ref{Buffer: string(*d.Buffer), Key: string(*d.Key), Shard: d.Shard},
		Destination: string(*d.Destination), Seen: d.Seen.core(),
	}, nil
}
