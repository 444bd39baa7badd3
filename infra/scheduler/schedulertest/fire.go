package schedulertest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
)

// precision is how late the service may be.
const precision = time.Minute

func (f *Fake) late(name string) time.Duration {
	if f.o.Late == nil {
		return 0
	}
	return max(0, min(precision, f.o.Late(name)))
}

// fire calls the target of s, and completes it.
func (f *Fake) fire(key string, s *schedule) {
	f.mu.Lock()
	if f.closed || s.begun || f.all[key] != s {
		f.mu.Unlock()
		return
	}
	s.begun = true
	f.wg.Add(1)
	f.mu.Unlock()
	defer f.wg.Done()

	f.invoke(s)
	if f.o.Doubled {
		f.invoke(s)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all[key] == s && s.in.ActionAfterCompletion == types.ActionAfterCompletionDelete {
		delete(f.all, key)
	}
}

// invoke calls the target until it takes the input, or the retry policy ends:
// by default 185 attempts in a day. It waits 1, 2, 4 and so on seconds, at
// most a minute, between them.
func (f *Fake) invoke(s *schedule) {
	retries, age := int32(185), 24*time.Hour
	if p := s.in.Target.RetryPolicy; p != nil {
		if p.MaximumRetryAttempts != nil {
			retries = *p.MaximumRetryAttempts
		}
		if p.MaximumEventAgeInSeconds != nil {
			age = time.Duration(*p.MaximumEventAgeInSeconds) * time.Second
		}
	}
	backoff := time.Second
	for attempt := 1; f.call(s, attempt) != nil; attempt++ {
		if attempt > int(retries) || f.Now().Add(backoff).Sub(s.fires) > age || !wait(f.ctx, backoff) {
			return
		}
		backoff = min(2*backoff, time.Minute)
	}
}

func (f *Fake) call(s *schedule, attempt int) error {
	if f.o.Fire == nil {
		return nil
	}
	t := s.in.Target
	in := Invocation{
		Group: groupOf(s.in.GroupName), Name: *s.in.Name, TargetARN: *t.Arn, RoleARN: *t.RoleArn,
		At: s.at, Attempt: attempt,
	}
	if t.Input != nil {
		in.Input = strings.NewReplacer(
			"<aws.scheduler.schedule-arn>", s.arn,
			"<aws.scheduler.scheduled-time>", s.at.UTC().Format(time.RFC3339),
			"<aws.scheduler.execution-id>", fmt.Sprintf("%s-%d", in.Name, attempt),
			"<aws.scheduler.attempt-number>", strconv.Itoa(attempt),
		).Replace(*t.Input)
	}
	return f.o.Fire(f.ctx, in)
}

// wait reports whether d has passed before ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
