package edge

// FlushEvent starts the flush function: the event of its per-minute schedule,
// or {} when somebody calls it by hand. It has no options, and whatever else
// stands in it is not looked at.
type FlushEvent struct {
	Source string `json:"source"` // aws.scheduler, aws.events; "": called by hand
	ID     string `json:"id"`
}

// Caller says who has started it.
func (e FlushEvent) Caller() string {
	if e.Source == "" {
		return "hand"
	}
	return e.Source
}
