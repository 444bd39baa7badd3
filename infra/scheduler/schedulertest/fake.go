package schedulertest

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
)

// Options say how the fake behaves. The zero value fires on time, into nothing.
type Options struct {
	// Fire is the target of all schedules. It runs in a goroutine of its own,
	// and again after an error, as the schedule's retry policy says.
	Fire func(ctx context.Context, in Invocation) error

	// Late is how long after its moment a schedule fires, 0 to a minute, by
	// its name. Nil: none is late.
	Late func(name string) time.Duration

	Doubled  bool // every schedule fires twice, as it may: once is a promise of "at least"
	FirePast bool // a moment that is not ahead fires at once instead of being refused

	Groups       []string // schedule groups that exist beside "default"
	MaxSchedules int      // 0: any number
	PerSecond    int      // schedules created in one second before calls are throttled; 0: any number
}

// Invocation is what a target gets.
type Invocation struct {
	Group, Name        string
	TargetARN, RoleARN string
	Input              string    // with context attributes replaced
	At                 time.Time // the moment of its at()
	Attempt            int       // from 1
}

// Fake is the scheduler.
type Fake struct {
	o    Options
	ctx  context.Context //nolint:containedctx // ends what the fake has started
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu     sync.Mutex
	closed bool
	ahead  time.Duration // of the real clock
	groups map[string]bool
	all    map[string]*schedule // by group and name
	tokens map[string]creation
	second int64 // the one in which created schedules were created
	recent int
}

// schedule is one that exists.
type schedule struct {
	in      scheduler.CreateScheduleInput
	arn     string
	created time.Time
	at      time.Time
	fires   time.Time
	timer   *time.Timer
	begun   bool // it fires, or has fired
}

// creation is what a client token stands for.
type creation struct {
	in  scheduler.CreateScheduleInput
	arn string
}

// New is a scheduler without schedules. [Fake.Close] ends it.
func New(o Options) *Fake {
	f := &Fake{o: o, groups: map[string]bool{"default": true}, all: map[string]*schedule{}, tokens: map[string]creation{}}
	for _, g := range o.Groups {
		f.groups[g] = true
	}
	f.ctx, f.stop = context.WithCancel(context.Background())
	return f
}

// Close ends the scheduler: no target is called afterwards, and none is being
// called when it returns. Its schedules are gone.
func (f *Fake) Close() {
	f.mu.Lock()
	f.closed = true
	for key := range f.all {
		f.remove(key)
	}
	f.mu.Unlock()
	f.stop()
	f.wg.Wait()
}

// Now is the scheduler's time.
func (f *Fake) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now()
}

func (f *Fake) now() time.Time { return time.Now().Add(f.ahead) }

// Advance moves the scheduler's time on, and has what is due then fire.
func (f *Fake) Advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ahead += d
	for _, s := range f.all {
		if s.timer != nil && !s.begun {
			s.timer.Reset(s.fires.Sub(f.now()))
		}
	}
}

// Schedules are those that exist, in the order of their moments.
func (f *Fake) Schedules() []scheduler.CreateScheduleInput {
	f.mu.Lock()
	defer f.mu.Unlock()
	sorted := make([]*schedule, 0, len(f.all))
	for _, s := range f.all {
		sorted = append(sorted, s)
	}
	slices.SortFunc(sorted, func(a, b *schedule) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return strings.Compare(*a.in.Name, *b.in.Name)
	})
	ins := make([]scheduler.CreateScheduleInput, len(sorted))
	for i, s := range sorted {
		ins[i] = s.in
	}
	return ins
}

// CreateSchedule is the service's, for use in process.
func (f *Fake) CreateSchedule(ctx context.Context, in *scheduler.CreateScheduleInput, _ ...func(*scheduler.Options)) (
	*scheduler.CreateScheduleOutput, error,
) {
	arn, err := f.create(ctx, in)
	if err != nil {
		return nil, operationError("CreateSchedule", err)
	}
	return &scheduler.CreateScheduleOutput{ScheduleArn: &arn}, nil
}

func (f *Fake) create(ctx context.Context, in *scheduler.CreateScheduleInput) (arn string, err error) {
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	at, err := validate(in)
	if err != nil {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	group, key := groupOf(in.GroupName), keyOf(in.GroupName, in.Name)
	if in.ClientToken != nil {
		if was, ok := f.tokens[*in.ClientToken]; ok {
			if !reflect.DeepEqual(was.in, *in) {
				return "", invalid("ClientToken %s was used with other parameters.", *in.ClientToken)
			}
			return was.arn, nil
		}
	}
	if err := f.admit(group, key, at); err != nil {
		return "", err
	}
	s := &schedule{in: *in, arn: scheduleARN(group, *in.Name), created: f.now(), at: at, fires: at.Add(f.late(*in.Name))}
	f.all[key] = s
	if in.ClientToken != nil {
		f.tokens[*in.ClientToken] = creation{*in, s.arn}
	}
	if in.State != types.ScheduleStateDisabled {
		s.timer = time.AfterFunc(s.fires.Sub(f.now()), func() { f.fire(key, s) })
	}
	return s.arn, nil
}

// admit says whether one more schedule may be created.
func (f *Fake) admit(group, key string, at time.Time) error {
	now := f.now()
	if now.Unix() != f.second {
		f.second, f.recent = now.Unix(), 0
	}
	switch {
	case f.closed:
		return &types.InternalServerException{Message: new("The scheduler has ended.")}
	case f.o.PerSecond > 0 && f.recent >= f.o.PerSecond:
		return &types.ThrottlingException{Message: new("Rate exceeded")}
	case !f.groups[group]:
		return notFound("Schedule group %s does not exist.", group)
	case f.all[key] != nil:
		return conflict("Schedule %s already exists.", key)
	case !f.o.FirePast && !at.After(now):
		return invalid("Invalid Schedule Expression %s: it is not in the future.", at.Format(atLayout))
	case f.o.MaxSchedules > 0 && len(f.all) >= f.o.MaxSchedules:
		return &types.ServiceQuotaExceededException{Message: new("The maximum number of schedules is reached.")}
	}
	f.recent++
	return nil
}

// remove forgets a schedule. One that fires goes on.
func (f *Fake) remove(key string) {
	if s := f.all[key]; s.timer != nil {
		s.timer.Stop()
	}
	delete(f.all, key)
}

func groupOf(name *string) string {
	if name == nil {
		return "default"
	}
	return *name
}

func keyOf(group, name *string) string { return groupOf(group) + "/" + *name }

const account = "arn:aws:scheduler:us-east-1:123456789012:"

func scheduleARN(group, name string) string { return account + "schedule/" + group + "/" + name }
func groupARN(name string) string           { return account + "schedule-group/" + name }
