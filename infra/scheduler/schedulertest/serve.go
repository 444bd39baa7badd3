package schedulertest

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/smithy-go"
)

// maxBody is more than any request of the service has.
const maxBody = 1 << 20

// Serve has the fake speak the service's protocol on a loopback port, and
// returns its URL: AWS_ENDPOINT_URL_SCHEDULER. The test's end closes it.
func Serve(t testing.TB, f *Fake) string {
	t.Helper()
	server := httptest.NewServer(f.Handler())
	t.Cleanup(server.Close)
	return server.URL
}

// Handler speaks the service's protocol (restJson1).
func (f *Fake) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /schedules/{name}", f.serveCreate)
	mux.HandleFunc("GET /schedules/{name}", f.serveGet)
	mux.HandleFunc("DELETE /schedules/{name}", func(w http.ResponseWriter, r *http.Request) {
		out, err := f.DeleteSchedule(r.Context(), &scheduler.DeleteScheduleInput{
			Name: new(r.PathValue("name")), GroupName: query(r, "groupName"), ClientToken: query(r, "clientToken"),
		})
		answer(w, out, err)
	})
	mux.HandleFunc("POST /schedule-groups/{name}", func(w http.ResponseWriter, r *http.Request) {
		var in scheduler.CreateScheduleGroupInput
		if !read(w, r, &in) {
			return
		}
		in.Name = new(r.PathValue("name"))
		out, err := f.CreateScheduleGroup(r.Context(), &in)
		answer(w, out, err)
	})
	mux.HandleFunc("DELETE /schedule-groups/{name}", func(w http.ResponseWriter, r *http.Request) {
		out, err := f.DeleteScheduleGroup(r.Context(), &scheduler.DeleteScheduleGroupInput{
			Name: new(r.PathValue("name")), ClientToken: query(r, "clientToken"),
		})
		answer(w, out, err)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		answer(w, nil, &smithy.GenericAPIError{
			Code: "UnknownOperationException", Message: r.Method + " " + r.URL.Path + " is nothing this scheduler does.",
		})
	})
	return mux
}

// creationBody is a request's body. The SDK's own type has the wire's names,
// but for times, which travel as numbers; one-time schedules ignore them.
type creationBody struct {
	scheduler.CreateScheduleInput
	StartDate, EndDate *float64
}

func (f *Fake) serveCreate(w http.ResponseWriter, r *http.Request) {
	var body creationBody
	if !read(w, r, &body) {
		return
	}
	in := body.CreateScheduleInput
	in.Name = new(r.PathValue("name"))
	out, err := f.CreateSchedule(r.Context(), &in)
	answer(w, out, err)
}

func (f *Fake) serveGet(w http.ResponseWriter, r *http.Request) {
	out, err := f.GetSchedule(r.Context(), &scheduler.GetScheduleInput{
		Name: new(r.PathValue("name")), GroupName: query(r, "groupName"),
	})
	if err != nil {
		answer(w, nil, err)
		return
	}
	answer(w, struct {
		*scheduler.GetScheduleOutput
		CreationDate, LastModificationDate float64
	}{out, seconds(*out.CreationDate), seconds(*out.LastModificationDate)}, nil)
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// query is a parameter of the URL, or nil.
func query(r *http.Request, name string) *string {
	if q := r.URL.Query(); q.Has(name) {
		return new(q.Get(name))
	}
	return nil
}

// read reads a body, in which nothing may be unknown, or answers why not.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		answer(w, nil, invalid("The body is not as expected: %v", err))
		return false
	}
	return true
}

// statuses are those of the service's errors.
var statuses = map[string]int{
	"ConflictException":             http.StatusConflict,
	"InternalServerException":       http.StatusInternalServerError,
	"ResourceNotFoundException":     http.StatusNotFound,
	"ServiceQuotaExceededException": http.StatusPaymentRequired,
	"ThrottlingException":           http.StatusTooManyRequests,
	"UnknownOperationException":     http.StatusNotFound,
	"ValidationException":           http.StatusBadRequest,
}

// answer writes out as JSON, or err with its type in the header and its
// message in the body.
func answer(w http.ResponseWriter, out any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if fault, ok := errors.AsType[smithy.APIError](err); ok {
		w.Header().Set("X-Amzn-Errortype", fault.ErrorCode())
		w.WriteHeader(statuses[fault.ErrorCode()])
		out = map[string]string{"Message": fault.ErrorMessage()}
	} else if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		out = map[string]string{"Message": err.Error()}
	}
	_ = json.NewEncoder(w).Encode(out) //nolint:errchkjson // the types are ours; a client that is gone reads nothing
}
