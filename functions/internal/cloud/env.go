package cloud

import (
	"errors"
	"log/slog"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sluice/core"
	"sluice/infra/sqs"
)

// Lookup finds a variable of the environment, as [os.LookupEnv] does.
type Lookup func(name string) (string, bool)

// Env is the environment of every function.
type Env struct {
	Config             string // path of the configuration
	Table              string
	CheckQueueURL      string
	CheckQueueARN      string // the target of schedules
	DeliverQueueURL    string
	DeadLetterQueueURL string
	ScheduleGroup      string
	ScheduleRoleARN    string
	FlushURL           string        // at which Lambda invokes the flush function; "": this function does not
	Threshold          time.Duration // from when on a deadline is a schedule
	LogLevel           slog.Level
	Environment        string // the stack's name, which tells metrics apart; may be ""
	Memory             int64  // bytes that the function has; 0: not known

	Region      string
	Credentials Credentials
	Endpoints   Endpoints
}

// Credentials are those of the function's role.
type Credentials struct{ Key, Secret, Token string }

// Endpoints are the addresses of services that are not where AWS has them.
type Endpoints struct{ DynamoDB, SQS, Scheduler, SSM, S3 string }

// ReadEnv reads the environment. Its error, of code Invalid, holds everything
// that is wrong, one fault a line.
func ReadEnv(lookup Lookup) (Env, error) {
	r := reader{lookup: lookup}
	e := Env{
		Config:             r.optional("SLUICE_CONFIG", ""),
		Table:              r.required("SLUICE_TABLE"),
		CheckQueueURL:      r.url("SLUICE_CHECK_QUEUE_URL"),
		CheckQueueARN:      r.arn("SLUICE_CHECK_QUEUE_ARN", "sqs"),
		DeliverQueueURL:    r.url("SLUICE_DELIVER_QUEUE_URL"),
		DeadLetterQueueURL: r.url("SLUICE_DEAD_LETTER_QUEUE_URL"),
		ScheduleGroup:      r.required("SLUICE_SCHEDULE_GROUP"),
		ScheduleRoleARN:    r.arn("SLUICE_SCHEDULE_ROLE_ARN", "iam"),
		FlushURL:           r.address("SLUICE_FLUSH_URL"),
		Threshold:          r.seconds("SLUICE_SCHEDULER_THRESHOLD", sqs.MinThreshold, sqs.MaxThreshold),
		LogLevel:           r.level("SLUICE_LOG_LEVEL"),
		Environment:        r.optional("SLUICE_ENVIRONMENT", ""),
		Memory:             r.megabytes("AWS_LAMBDA_FUNCTION_MEMORY_SIZE"),
		Region:             r.lambda("AWS_REGION"),
		Credentials: Credentials{
			Key:    r.lambda("AWS_ACCESS_KEY_ID"),
			Secret: r.lambda("AWS_SECRET_ACCESS_KEY"),
			Token:  r.optional("AWS_SESSION_TOKEN", ""),
		},
		Endpoints: Endpoints{
			DynamoDB:  r.endpoint("DYNAMODB"),
			SQS:       r.endpoint("SQS"),
			Scheduler: r.endpoint("SCHEDULER"),
			SSM:       r.endpoint("SSM"),
			S3:        r.endpoint("S3"),
		},
	}
	if e.Config == "" {
		e.Config = filepath.Join(r.lambda("LAMBDA_TASK_ROOT"), "sluice.yaml")
	}
	return e, errors.Join(r.errs...)
}

// reader reads variables, and collects what is wrong with them. No fault shows
// a value: it may be a secret that was put in the wrong place.
type reader struct {
	lookup Lookup
	errs   []error
}

func (r *reader) fault(name, problem string) {
	r.errs = append(r.errs, core.Errorf(core.Invalid, "%s %s", name, problem))
}

func (r *reader) optional(name, otherwise string) string {
	if v, ok := r.lookup(name); ok && v != "" {
		return v
	}
	return otherwise
}

func (r *reader) required(name string) string { return r.set(name, "the template") }

func (r *reader) lambda(name string) string { return r.set(name, "Lambda") }

// set reads a variable that somebody sets.
func (r *reader) set(name, by string) string {
	v := r.optional(name, "")
	if v == "" {
		r.fault(name, "is not set; "+by+" sets it")
	}
	return v
}

func (r *reader) url(name string) string {
	v := r.required(name)
	if v != "" && !absolute(v) {
		r.fault(name, "is no URL; it must begin with https:// and a host")
	}
	return v
}

func absolute(v string) bool {
	u, err := url.Parse(v)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}

func (r *reader) arn(name, service string) string {
	v := r.required(name)
	if parts := strings.SplitN(v, ":", 6); v != "" && (len(parts) < 6 || parts[0] != "arn" || parts[2] != service || parts[5] == "") {
		r.fault(name, "is no ARN of "+service+"; it must be arn:<partition>:"+service+":<region>:<account>:<name>")
	}
	return v
}

// seconds reads a number of seconds; the least of them when it is not set.
func (r *reader) seconds(name string, least, most time.Duration) time.Duration {
	v := r.optional(name, "")
	if v == "" {
		return least
	}
	n, err := strconv.Atoi(v)
	if d := time.Duration(n) * time.Second; err == nil && least <= d && d <= most {
		return d
	}
	r.fault(name, "must be whole seconds, from "+inSeconds(least)+" to "+inSeconds(most))
	return least
}

func inSeconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

// megabytes reads a number of MiB that Lambda sets; 0 when it is not set.
func (r *reader) megabytes(name string) int64 {
	v := r.optional(name, "0")
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil || n < 0 {
		r.fault(name, "is no number of megabytes; Lambda sets it")
	}
	return n << 20
}

func (r *reader) level(name string) slog.Level {
	switch r.optional(name, "info") {
	case "debug":
		return slog.LevelDebug
	case "info":
		return slog.LevelInfo
	case "warn":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	}
	r.fault(name, "must be debug, info, warn or error")
	return slog.LevelInfo
}

// endpoint is where a service is, by the variables that all of AWS's tools go by.
func (r *reader) endpoint(service string) string {
	name := "AWS_ENDPOINT_URL_" + service
	if r.optional(name, "") == "" {
		name = "AWS_ENDPOINT_URL"
	}
	return r.address(name)
}

// address reads a URL that may be left out.
func (r *reader) address(name string) string {
	v := r.optional(name, "")
	if v != "" && !absolute(v) {
		r.fault(name, "is no URL; it must begin with https:// or http:// and a host")
	}
	return v
}
