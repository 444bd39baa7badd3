package cli

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"sluice/core"
	"sluice/functions/internal/api"
)

// pageLimit is how many elements of a list one answer is to have.
const pageLimit = "1000"

type buffersCommand struct {
	remote

	JSON bool `help:"Print JSON." name:"json"`
}

// Help shows examples.
func (*buffersCommand) Help() string {
	return `Examples:

    sluice buffers
    sluice buffers --json | jq '.buffers[] | select(.pendingItems > 1000)'`
}

// Run shows the buffers.
func (c *buffersCommand) Run(ctx context.Context, p *program) error {
	return (&listing[api.BufferState]{
		remote: &c.remote, json: c.JSON, name: "buffers", path: []string{"v1", "buffers"},
		none:  "there are no buffers",
		heads: []string{"BUFFER", "DESTINATION", "BREAKER", "PENDING>", "SIZE>", "CLAIMED>", "DELAYED>", "GROUPS>", "OLDEST>", "LAST ATTEMPT"},
		spare: []string{"BREAKER", "DELAYED>"},
		row: func(b *api.BufferState, now core.Millis) []string {
			to := cell(b.Destination)
			if !b.Configured {
				to = "(not configured)"
			}
			oldest := "-"
			if b.OldestAt != "" {
				oldest = age(time.Duration(b.OldestAgeMs) * time.Millisecond)
			}
			name := b.Name
			if b.Shadow {
				name += " (shadow)"
			}
			return []string{
				cell(name), to, breakers(b, now), count(b.PendingItems), size(b.PendingBytes), count(b.ClaimedItems),
				delayed(b, now), count(b.Groups), oldest, lastAttempt(b.LastAttempt, now),
			}
		},
	}).run(ctx, p)
}

// breakers is the state of the destination's breaker, and of those of its
// fallbacks by their names.
func breakers(b *api.BufferState, now core.Millis) string {
	var words []string
	if b.Breaker != nil {
		words = append(words, breaker(b.Breaker, now))
	}
	for i := range b.FallbackBreakers {
		f := &b.FallbackBreakers[i]
		words = append(words, f.Destination+" "+breaker(f, now))
	}
	if words == nil {
		return "-"
	}
	return cell(strings.Join(words, ", "))
}

func breaker(b *api.BreakerState, now core.Millis) string {
	if b.Until != "" {
		return b.State + " for " + until(b.Until, now)
	}
	return b.State
}

// delayed is how many items are held, and when the first go on.
func delayed(b *api.BufferState, now core.Millis) string {
	switch next := until(b.NextDueAt, now); {
	case b.DelayedItems == 0:
		return "-"
	case next == "-":
		return count(b.DelayedItems)
	case next == "now":
		return count(b.DelayedItems) + ", next now"
	default:
		return count(b.DelayedItems) + ", next in " + next
	}
}

func lastAttempt(a *api.AttemptState, now core.Millis) string {
	if a == nil {
		return "-"
	}
	words := []string{clean(a.Outcome)}
	if a.Status != 0 {
		words = append(words, status(a.Status))
	}
	words = append(words, since(a.At, now), "ago")
	text := strings.Join(words, " ")
	if a.DeadLetters > 0 {
		text += ", " + plural(a.DeadLetters, "dead letter")
	}
	if a.Error != "" {
		text = cell(text + ": " + a.Error)
	}
	return text
}

type groupsCommand struct {
	remote

	Buffer string  `arg:""                             help:"The buffer."`
	Key    *string `help:"Only the group of this key." placeholder:"KEY"`
	JSON   bool    `help:"Print JSON."                 name:"json"`
}

// Help shows examples.
func (*groupsCommand) Help() string {
	return `Examples:

    sluice groups orders
    sluice groups orders --key 4711
    sluice groups orders --json | jq -r '.groups[].key'`
}

// AfterApply checks what the grammar cannot say.
func (c *groupsCommand) AfterApply() error { return checkName("buffer", c.Buffer) }

// Run shows the groups.
func (c *groupsCommand) Run(ctx context.Context, p *program) error {
	query := url.Values{}
	none := "buffer " + c.Buffer + " is empty"
	if c.Key != nil {
		query.Set("key", *c.Key)
		none = "buffer " + c.Buffer + " has nothing in this group"
	} else {
		query.Set("limit", pageLimit)
	}
	return (&listing[api.GroupState]{
		remote: &c.remote, json: c.JSON, name: "groups", path: []string{"v1", "buffers", c.Buffer, "groups"}, query: query,
		none:  none,
		heads: []string{"GROUP", "PENDING>", "SIZE>", "OLDEST>", "NEXT CHECK>", "CLAIMS", "LAST ERROR"},
		row: func(g *api.GroupState, now core.Millis) []string {
			claims, failed := claimCells(g.Claims, now)
			return []string{
				keyCell(g.Key), count(int64(g.PendingItems)), size(g.PendingBytes),
				since(g.FirstAt, now), until(g.NextCheck, now), claims, failed,
			}
		},
	}).run(ctx, p)
}

// claimCells sum up a group's claims, and give the newest error.
func claimCells(claims []api.ClaimState, now core.Millis) (text, failed string) {
	if len(claims) == 0 {
		return "-", "-"
	}
	sending, failed := 0, "-"
	var retry *api.ClaimState
	for i := range claims {
		c := &claims[i]
		if c.State == "sending" {
			sending++
		} else if retry == nil || c.Due < retry.Due {
			retry = c
		}
		if c.LastError != "" {
			failed = cell(c.LastError)
		}
	}
	var words []string
	if sending > 0 {
		words = append(words, fmt.Sprintf("%d sending", sending))
	}
	if retry != nil {
		words = append(words, fmt.Sprintf("%d waiting (attempt %d in %s)", len(claims)-sending, retry.Attempt+1, until(retry.Due, now)))
	}
	return strings.Join(words, ", "), failed
}

// since is how long ago a time of the API was, or "-".
func since(at string, now core.Millis) string {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return "-"
	}
	return age(now.Sub(core.At(t)))
}

// until is how far ahead a time of the API is, "now" when it has come, or "-".
func until(at string, now core.Millis) string {
	t, err := time.Parse(time.RFC3339, at)
	switch ahead := core.At(t).Sub(now); {
	case err != nil:
		return "-"
	case ahead <= 0:
		return "now"
	default:
		return age(ahead)
	}
}
