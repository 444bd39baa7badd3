package bench

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"
)

// The bounds that a run checks.
const (
	floorSingle     = 0.35 // of the bare server, events a second, 1 event per POST
	floorBatch      = 2.5  // of the same, 100 events per POST
	ceilingAck      = 5    // ms, p99
	ceilingLateness = 10   // ms, p99
	ceilingMemory   = 1000 // MB, of 1,000,000 bytes
	ceilingBinary   = 25   // MB, of 1,000,000 bytes
	ceilingStart    = 100  // ms
	ceilingRestart  = 5    // s
)

// options are what a run measures, and at which scale.
type options struct {
	binary string // the sluice to measure
	self   string // this program, which serves the references
	dir    string // for data; "": the system's place for temporary files
	only   []string
	json   bool

	conns  int
	size   int // bytes per event
	keys   int
	batch  int // events of a large POST
	rounds int

	warmup   time.Duration // before each measurement
	duration time.Duration // of each measurement
	close    time.Duration // the buffer's idle and max-wait deadlines under load
	patience time.Duration // for a delivery that does not come

	pending       int // items that wait, for memory and restart
	memoryGroups  int
	restartGroups int
	settle        time.Duration // before memory is read

	deadlineRate float64       // events a second while lateness is measured
	deadlineUnit time.Duration // what its deadlines are multiples of
	starts       int
	kills        int
}

// scenarios are all of them, in order.
var scenarios = []string{"a", "b", "c", "d", "e", "f", "g"}

const usage = `Measures a sluice binary against a bare HTTP server, on this machine, in this run.

  a  1 event per POST, deliveries going on       e  memory, and restart, with many items pending
  b  many events per POST                        f  size of the binary, time to ready on an empty folder
  c  time to the answer at a third of a's load   g  kill -9 under load: nothing accepted is lost
  d  lateness of deadlines with 10,000 groups

Exits 0 when every bound is kept, 1 when one is missed, 2 when it could not measure.

`

// parseOptions reads the command line. It returns flag.ErrHelp when it was
// asked for help, which it has then written to stderr.
func parseOptions(args []string, self string, stderr io.Writer) (*options, error) {
	o := &options{self: self, conns: 64, size: 1024, batch: 100}
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fmt.Fprint(stderr, usage)
		fs.PrintDefaults()
	}
	var only string
	fs.StringVar(&o.binary, "binary", "bin/sluice", "the sluice to measure")
	fs.StringVar(&o.dir, "dir", "", "folder for data, on the disk to measure; some 4 GB are used and freed again (default: that of temporary files)")
	fs.StringVar(&only, "only", strings.Join(scenarios, ","), "scenarios to run")
	fs.BoolVar(&o.json, "json", false, "print the report as JSON")
	fs.IntVar(&o.rounds, "rounds", 3, "rounds of which rates are the median")
	fs.IntVar(&o.keys, "keys", 1000, "groups under load")
	fs.DurationVar(&o.warmup, "warmup", time.Second, "load before each measurement")
	fs.DurationVar(&o.duration, "duration", 5*time.Second, "length of each measurement")
	fs.DurationVar(&o.close, "close", time.Second, "idle and max-wait deadline of batches under load")
	fs.DurationVar(&o.patience, "patience", 30*time.Second, "how long to wait for a delivery before it counts as lost")
	fs.IntVar(&o.pending, "pending", 1_000_000, "items pending in e")
	fs.IntVar(&o.memoryGroups, "memory-groups", 100_000, "groups they are in while memory is measured")
	fs.IntVar(&o.restartGroups, "restart-groups", 10_000, "groups they are in at the restart")
	fs.DurationVar(&o.settle, "settle", 2*time.Second, "rest before memory is read")
	fs.Float64Var(&o.deadlineRate, "deadline-rate", 2000, "events a second in d; five times as many groups are open, per second of -deadline-unit")
	fs.DurationVar(&o.deadlineUnit, "deadline-unit", time.Second, "d's deadlines are six (idle) and eight (max wait) of it")
	fs.IntVar(&o.starts, "starts", 5, "starts of which f's time is the median")
	fs.IntVar(&o.kills, "kills", 3, "kills in a row in g")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	o.only = strings.Split(only, ",")
	return o, o.validate(fs.Args())
}

func (o *options) validate(rest []string) error {
	var errs []error
	if len(rest) > 0 {
		errs = append(errs, fmt.Errorf("unexpected argument %q", rest[0]))
	}
	for _, s := range o.only {
		if !slices.Contains(scenarios, s) {
			errs = append(errs, fmt.Errorf("-only: no scenario %q; there are %s", s, strings.Join(scenarios, ", ")))
		}
	}
	if min(o.rounds, o.keys, o.pending, o.memoryGroups, o.restartGroups, o.starts, o.kills) < 1 {
		errs = append(errs, errors.New("counts must be at least 1"))
	}
	if min(o.duration, o.close, o.patience, o.deadlineUnit) <= 0 || min(o.warmup, o.settle) < 0 || o.deadlineRate <= 0 {
		errs = append(errs, errors.New("durations and rates must be above zero"))
	}
	if o.wants("e") && runtime.GOOS != "linux" {
		errs = append(errs, errors.New("scenario e reads memory from /proc: leave it out here with -only"))
	}
	return errors.Join(errs...)
}

func (o *options) wants(scenario string) bool { return slices.Contains(o.only, scenario) }
