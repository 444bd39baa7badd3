package edge

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"sluice/core"
)

// FlushEvent starts the flush function: the event of its per-minute schedule,
// {} when somebody calls it by hand to do the same, or {"flush": {...}} for a
// flush. Whatever else stands in it is not looked at.
type FlushEvent struct {
	Source string     `json:"source,omitempty"` // aws.scheduler, aws.events; "": called by hand
	ID     string     `json:"id,omitempty"`
	Flush  *FlushCall `json:"flush,omitempty"` // nil: what is done every minute
}

// Caller says who has started it.
func (e FlushEvent) Caller() string {
	if e.Source == "" {
		return "hand"
	}
	return e.Source
}

// FlushCall is a flush that somebody asks for; see [core.FlushOptions].
type FlushCall struct {
	Force  bool     `json:"force,omitempty"`
	Final  bool     `json:"final,omitempty"`
	Only   []string `json:"only,omitempty"` // nil: all buffers
	Strict bool     `json:"strict,omitempty"`
	Groups []string `json:"groups,omitempty"` // nil: all groups
}

// FlushCallOf is the call that asks for a flush with these options.
func FlushCallOf(o *core.FlushOptions) *FlushCall {
	return &FlushCall{Force: o.Force, Final: o.Final, Only: o.Only, Strict: o.Strict, Groups: o.Groups}
}

// Options are the call as the core takes it.
func (c *FlushCall) Options() core.FlushOptions {
	return core.FlushOptions{Force: c.Force, Final: c.Final, Only: c.Only, Strict: c.Strict, Groups: c.Groups}
}

// rightFlush is what a call must look like.
const rightFlush = `send {"flush": {"force": true, "final": true, "only": ["..."], "strict": true, "groups": ["..."]}}, of which each may be left out`

// UnmarshalJSON reads a call. A field that is not known is refused, as it may
// be a misspelled one and the flush larger than meant; so is a list that is null or
// empty, which would pick everything or nothing.
func (c *FlushCall) UnmarshalJSON(data []byte) error {
	type plain FlushCall
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	err := dec.Decode((*plain)(c))
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return core.Errorf(core.Invalid, "this is not a flush: %s can't be of type %s; %s", cmp.Or(wrong.Field, "flush"), wrong.Value, rightFlush)
	}
	if err != nil {
		return core.Errorf(core.Invalid, "this is not a flush: %s; %s", strings.TrimPrefix(err.Error(), "json: "), rightFlush)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return core.Errorf(core.Invalid, "this is not a flush; %s", rightFlush)
	}
	for _, list := range []struct {
		name   string
		values []string
	}{{"only", c.Only}, {"groups", c.Groups}} {
		if _, given := fields[list.name]; given && len(list.values) == 0 {
			return core.Errorf(core.Invalid, "%s is empty; leave it out to not restrict the flush by it", list.name)
		}
	}
	return nil
}
