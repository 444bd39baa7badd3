package cli

import (
	"fmt"
	"time"

	"sluice/core"
)

// show shows the explanation to people.
func (e *explanation) show(p *program) {
	say := p.paint(p.stdout)
	fmt.Fprintf(p.stdout, "source       %s\n", clean(e.Source))
	fmt.Fprintf(p.stdout, "event        %s of %s\n", size(e.Bytes), clean(contentType(e.ContentType)))
	switch {
	case e.Refused != nil:
		fmt.Fprintf(p.stdout, "answer       %s: %s\n", say.red(fmt.Sprintf("%d, refused", e.Refused.Status)), clean(e.Refused.Detail))
		return
	case e.ID == "":
		fmt.Fprintln(p.stdout, "id           a new one")
	default:
		fmt.Fprintf(p.stdout, "id           %s\n", clean(e.ID))
	}
	if len(e.Routes) == 0 {
		fmt.Fprintf(p.stdout, "answer       %s: no buffer reads this source\n", say.yellow("202, unrouted"))
		return
	}
	fmt.Fprintf(p.stdout, "answer       %s\n", say.green("202, accepted"))
	for i := range e.Routes {
		e.Routes[i].show(p, say)
	}
}

func contentType(s string) string {
	if s == "" {
		return "no content type"
	}
	return s
}

func (r *routedThen) show(p *program, say paint) {
	fmt.Fprintf(p.stdout, "\nbuffer       %s\n", say.bold(clean(r.Buffer)))
	if r.GroupBy == "" {
		fmt.Fprintln(p.stdout, "group        the only one")
	} else {
		fmt.Fprintf(p.stdout, "group        %s, from %s\n", keyCell(r.Group), clean(r.GroupBy))
	}
	c := &r.Conditions
	fmt.Fprintf(p.stdout, "leaves       when the group has %s or %s, %s after its last event,\n",
		plural(c.MaxItems, "event"), core.UnitBytes.Format(c.MaxBytes), millis(c.IdleTimeoutMs))
	fmt.Fprintf(p.stdout, "             or %s after its first\n", millis(c.MaxWaitFromFirstMs))
	if r.Ordered {
		fmt.Fprintln(p.stdout, "order        kept: one batch of the group at a time")
	}
	to := r.Destination.Type
	if r.Destination.To != "" {
		to += " " + r.Destination.To
	}
	fmt.Fprintf(p.stdout, "destination  %s (%s), as %s\n", clean(r.Destination.Name), clean(to), r.Destination.Format)
}

func millis(ms int64) string {
	return core.UnitDuration.Format(int64(time.Duration(ms) * time.Millisecond))
}
