package message

import (
	"fmt"

	"sluice/core"
)

// group is a [core.Group] as it travels. What is zero is left out.
type group struct {
	Life      *text       `json:"life"`
	Rev       *uint64     `json:"rev"`
	Head      uint64      `json:"head,omitempty"`
	Tail      *uint64     `json:"tail"`
	HeadBytes int64       `json:"headBytes,omitempty"`
	TailBytes int64       `json:"tailBytes,omitempty"`
	FirstAt   core.Millis `json:"firstAt,omitempty"`
	LastAt    core.Millis `json:"lastAt,omitempty"`
	CheckAt   core.Millis `json:"checkAt,omitempty"`
	Ceiling   uint64      `json:"ceiling,omitempty"`
	Claims    []claim     `json:"claims,omitempty"`
	Void      uint64      `json:"void,omitempty"`
	VoidBytes int64       `json:"voidBytes,omitempty"`
	Mark      uint64      `json:"mark,omitempty"`
	Closed    core.Millis `json:"closed,omitempty"`
	Hold      core.Millis `json:"hold,omitempty"`
}

// claim is a [core.Claim] as it travels.
type claim struct {
	ID           *text       `json:"id"`
	From         *uint64     `json:"from"`
	To           *uint64     `json:"to"`
	Done         []byte      `json:"done,omitempty"`
	Residue      int         `json:"residue,omitempty"`
	Reason       text        `json:"reason,omitempty"`
	Attempt      int         `json:"attempt,omitempty"`
	Lease        *uint64     `json:"lease"`
	Due          core.Millis `json:"due,omitempty"`
	FirstErrorAt core.Millis `json:"firstErrorAt,omitempty"`
	Error        text        `json:"error,omitempty"`
	Mark         uint64      `json:"mark,omitempty"`
	Fold         text        `json:"fold,omitempty"`
	Sent         int         `json:"sent,omitempty"`
	Hop          int         `json:"hop,omitempty"`
	Token        bool        `json:"token,omitempty"`
}

func (g *group) fields() []field {
	fields := []field{{"seen.life", g.Life != nil}, {"seen.rev", g.Rev != nil}, {"seen.tail", g.Tail != nil}}
	for i := range g.Claims {
		c, name := &g.Claims[i], fmt.Sprintf("seen.claims[%d].", i)
		fields = append(fields, field{name + "id", c.ID != nil}, field{name + "from", c.From != nil},
			field{name + "to", c.To != nil}, field{name + "lease", c.Lease != nil})
	}
	return fields
}

func groupOf(g *core.Group) *group {
	out := &group{
		Life: ptr(g.Life), Rev: &g.Rev, Head: g.Head, Tail: &g.Tail, HeadBytes: g.HeadBytes, TailBytes: g.TailBytes,
		FirstAt: g.FirstAt, LastAt: g.LastAt, CheckAt: g.CheckAt, Ceiling: g.Ceiling,
		Void: g.Void, VoidBytes: g.VoidBytes, Mark: g.Mark, Closed: g.Closed, Hold: g.Hold,
	}
	for i := range g.Claims {
		c := &g.Claims[i]
		out.Claims = append(out.Claims, claim{
			ID: ptr(c.ID), From: &c.From, To: &c.To, Done: c.Done, Residue: c.Residue, Reason: text(c.Reason),
			Attempt: c.Attempt, Lease: &c.Lease, Due: c.Due, FirstErrorAt: c.FirstErrorAt, Error: text(c.Error), Mark: c.Mark,
			Fold: text(c.Fold), Sent: c.Sent, Hop: c.Hop, Token: c.Token,
		})
	}
	return out
}

func (g *group) core() *core.Group {
	if g == nil {
		return nil
	}
	out := &core.Group{
		Life: string(*g.Life), Rev: *g.Rev, Head: g.Head, Tail: *g.Tail, HeadBytes: g.HeadBytes, TailBytes: g.TailBytes,
		FirstAt: g.FirstAt, LastAt: g.LastAt, CheckAt: g.CheckAt, Ceiling: g.Ceiling,
		Void: g.Void, VoidBytes: g.VoidBytes, Mark: g.Mark, Closed: g.Closed, Hold: g.Hold,
	}
	for i := range g.Claims {
		c := &g.Claims[i]
		out.Claims = append(out.Claims, core.Claim{
			ID: string(*c.ID), From: *c.From, To: *c.To, Done: c.Done, Residue: c.Residue, Reason: core.Reason(c.Reason),
			Attempt: c.Attempt, Lease: *c.Lease, Due: c.Due, FirstErrorAt: c.FirstErrorAt, Error: string(c.Error), Mark: c.Mark,
			Fold: string(c.Fold), Sent: c.Sent, Hop: c.Hop, Token: c.Token,
		})
	}
	return out
}
