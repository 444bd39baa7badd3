package message

import "sluice/core"

// hint is a [core.Hint] as it travels.
type hint struct {
	V      int          `json:"v"`
	Buffer *text        `json:"buffer"`
	Key    *text        `json:"key"`
	Shard  int          `json:"shard,omitempty"`
	Life   *text        `json:"life"`
	At     *core.Millis `json:"at"`
	Check  uint64       `json:"check,omitempty"`
}

func (h *hint) versioned() int { return h.V }

func (h *hint) fields() []field {
	return []field{{"buffer", h.Buffer != nil}, {"key", h.Key != nil}, {"life", h.Life != nil}, {"at", h.At != nil}}
}

// EncodeHint writes a hint. TooLarge: its key or life is far over what a group may have.
func EncodeHint(h core.Hint) (string, error) {
	return hints.encode(hint{
		V: version, Buffer: ptr(h.Ref.Buffer), Key: ptr(h.Ref.Key), Shard: h.Ref.Shard,
		Life: ptr(h.Life), At: &h.At, Check: h.Check,
	})
}

// DecodeHint reads a hint. Invalid: it is none.
func DecodeHint(data []byte) (core.Hint, error) {
	var h hint
	if err := hints.decode(data, &h); err != nil {
		return core.Hint{}, err
	}
	return core.Hint{
		Ref:  core.Ref{Buffer: string(*h.Buffer), Key: string(*h.Key), Shard: h.Shard},
		Life: string(*h.Life), At: *h.At, Check: h.Check,
	}, nil
}
