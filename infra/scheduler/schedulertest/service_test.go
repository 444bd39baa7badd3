package schedulertest

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/stretchr/testify/require"
)

func create(t *testing.T, s service, in request) {
	t.Helper()
	_, err := s.CreateSchedule(t.Context(), in)
	require.NoError(t, err)
}

func TestClientTokens(t *testing.T) {
	t.Parallel()
	both(t, sluice, func(t *testing.T, f *Fake, s service) {
		first := valid("a")
		create(t, s, first)
		create(t, s, first) // the same again

		_, err := s.CreateSchedule(t.Context(), func() request {
			in := valid("a")
			in.ScheduleExpression, in.Target.Input = first.ScheduleExpression, aws.String("{}")
			return in
		}())
		fails(t, err, "ValidationException", "other parameters")

		in := *first
		in.ClientToken = aws.String("another")
		_, err = s.CreateSchedule(t.Context(), &in)
		fails(t, err, "ConflictException", "already exists")
		in.ClientToken = nil
		_, err = s.CreateSchedule(t.Context(), &in)
		fails(t, err, "ConflictException", "already exists")
		require.Len(t, f.Schedules(), 1)

		_, err = s.DeleteSchedule(t.Context(), &scheduler.DeleteScheduleInput{Name: first.Name, GroupName: first.GroupName})
		require.NoError(t, err)
		create(t, s, first) // was done, and is not done again
		require.Empty(t, f.Schedules())
	})
}

func TestNotThere(t *testing.T) {
	t.Parallel()
	both(t, Options{}, func(t *testing.T, _ *Fake, s service) {
		ctx, name := t.Context(), aws.String("none")
		_, err := s.CreateSchedule(ctx, valid("a"))
		fails(t, err, "ResourceNotFoundException", "group sluice")
		_, err = s.GetSchedule(ctx, &scheduler.GetScheduleInput{Name: name})
		fails(t, err, "ResourceNotFoundException", "none")
		_, err = s.DeleteSchedule(ctx, &scheduler.DeleteScheduleInput{Name: name, ClientToken: aws.String("t")})
		fails(t, err, "ResourceNotFoundException", "none")
		_, err = s.DeleteScheduleGroup(ctx, &scheduler.DeleteScheduleGroupInput{Name: name})
		fails(t, err, "ResourceNotFoundException", "none")
	})
}

func TestBadNames(t *testing.T) {
	t.Parallel()
	both(t, Options{}, func(t *testing.T, _ *Fake, s service) {
		ctx, name := t.Context(), aws.String("a b")
		_, err := s.GetSchedule(ctx, &scheduler.GetScheduleInput{Name: name})
		fails(t, err, "ValidationException", "Name")
		_, err = s.DeleteSchedule(ctx, &scheduler.DeleteScheduleInput{Name: aws.String("a"), GroupName: name})
		fails(t, err, "ValidationException", "GroupName")
		_, err = s.CreateScheduleGroup(ctx, &scheduler.CreateScheduleGroupInput{Name: name})
		fails(t, err, "ValidationException", "Name")
		_, err = s.DeleteScheduleGroup(ctx, &scheduler.DeleteScheduleGroupInput{Name: aws.String("a"), ClientToken: name})
		fails(t, err, "ValidationException", "ClientToken")
	})
}

func TestGroups(t *testing.T) {
	t.Parallel()
	both(t, Options{}, func(t *testing.T, f *Fake, s service) {
		ctx, name := t.Context(), aws.String("sluice")
		out, err := s.CreateScheduleGroup(ctx, &scheduler.CreateScheduleGroupInput{Name: name})
		require.NoError(t, err)
		require.Equal(t, "arn:aws:scheduler:us-east-1:123456789012:schedule-group/sluice", *out.ScheduleGroupArn)
		_, err = s.CreateScheduleGroup(ctx, &scheduler.CreateScheduleGroupInput{Name: name})
		fails(t, err, "ConflictException", "sluice")

		create(t, s, valid("a"))
		other := valid("a") // the same name in another group
		other.GroupName, other.ClientToken = nil, nil
		create(t, s, other)
		require.Len(t, f.Schedules(), 2)

		_, err = s.DeleteScheduleGroup(ctx, &scheduler.DeleteScheduleGroupInput{Name: name})
		require.NoError(t, err)
		require.Len(t, f.Schedules(), 1)
		_, err = s.CreateSchedule(ctx, valid("b"))
		fails(t, err, "ResourceNotFoundException", "sluice")
		_, err = s.DeleteScheduleGroup(ctx, &scheduler.DeleteScheduleGroupInput{Name: aws.String("default")})
		fails(t, err, "ValidationException", "default")
	})
}

func TestQuota(t *testing.T) {
	t.Parallel()
	both(t, Options{Groups: sluice.Groups, MaxSchedules: 2}, func(t *testing.T, _ *Fake, s service) {
		create(t, s, valid("a"))
		create(t, s, valid("b"))
		_, err := s.CreateSchedule(t.Context(), valid("c"))
		fails(t, err, "ServiceQuotaExceededException", "maximum")
		_, err = s.DeleteSchedule(t.Context(), &scheduler.DeleteScheduleInput{Name: aws.String("a"), GroupName: aws.String("sluice")})
		require.NoError(t, err)
		create(t, s, valid("c"))
	})
}

func TestThrottled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := New(Options{Groups: sluice.Groups, PerSecond: 2})
		defer f.Close()
		create(t, f, valid("a"))
		create(t, f, valid("b"))
		_, err := f.CreateSchedule(t.Context(), valid("c"))
		fails(t, err, "ThrottlingException", "Rate")
		<-time.After(time.Second)
		create(t, f, valid("c"))
	})
}

// TestTypedOverHTTP: what the table of refusals cannot make happen through the SDK.
func TestTypedOverHTTP(t *testing.T) {
	t.Parallel()
	both(t, Options{Groups: sluice.Groups, PerSecond: 1}, func(t *testing.T, f *Fake, s service) {
		var err error
		for i := 0; err == nil; i++ { // two in one second, at the latest
			_, err = s.CreateSchedule(t.Context(), valid("n"+strings.Repeat("x", i)))
		}
		fails(t, err, "ThrottlingException", "Rate")
		f.Close()
		_, err = s.CreateSchedule(t.Context(), valid("b"))
		fails(t, err, "InternalServerException", "ended")
	})
}

func TestCanceled(t *testing.T) {
	t.Parallel()
	both(t, sluice, func(t *testing.T, f *Fake, s service) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := s.CreateSchedule(ctx, valid("a"))
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, f.Schedules())
	})
}

// TestStrictBodies are requests that only something else than the SDK sends.
func TestStrictBodies(t *testing.T) {
	t.Parallel()
	f := New(sluice)
	t.Cleanup(f.Close)
	url := Serve(t, f)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	for _, tt := range []struct {
		method, path, body string
		status             int
		kind               string
	}{
		{"POST", "/schedules/a", "{", 400, "ValidationException"},
		{"POST", "/schedules/a", `{"Colour": "red"}`, 400, "ValidationException"},
		{"POST", "/schedule-groups/a", `[]`, 400, "ValidationException"},
		{"PUT", "/schedules/a", "{}", 404, "UnknownOperationException"},
		{"GET", "/schedules", "", 404, "UnknownOperationException"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tt.method, url+tt.path, strings.NewReader(tt.body))
		require.NoError(t, err)
		res, err := (&http.Client{Transport: transport}).Do(req)
		require.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, tt.status, res.StatusCode, "%s %s: %s", tt.method, tt.path, body)
		require.Equal(t, tt.kind, res.Header.Get("X-Amzn-Errortype"))
		require.Contains(t, string(body), `"Message"`)
	}
}
