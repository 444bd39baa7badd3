package lambdatest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// maxRequest is the most bytes of a body that the HTTP API takes.
const maxRequest = 10 << 20

// Route is a route of an HTTP API.
type Route struct {
	// Key is such as "POST /v1/sources/{source}", "ANY /v1/{proxy+}" or "$default".
	Key      string
	Function *Function
}

// Front is an HTTP API with Lambda proxy integrations of payload format 2.0.
type Front struct {
	Routes []Route // the first that matches
}

// ServeHTTP passes a request to its function, and answers with what it says.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	route, parameters := f.route(r)
	if route == nil {
		refuse(w, http.StatusNotFound, "Not Found")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, "Request Entity Too Large")
		return
	}
	payload, err := json.Marshal(event(r, route.Key, parameters, body))
	if err != nil {
		refuse(w, http.StatusInternalServerError, "Internal Server Error")
		return
	}
	// The invocation goes on when its client is gone.
	answer, err := route.Function.Invoke(context.WithoutCancel(r.Context()), payload)
	switch Failed(err) {
	case "":
		if err != nil || write(w, answer) != nil {
			refuse(w, http.StatusInternalServerError, "Internal Server Error")
		}
	case ErrorTimeout:
		refuse(w, http.StatusServiceUnavailable, "Service Unavailable")
	case ErrorRequest:
		refuse(w, http.StatusRequestEntityTooLarge, "Request Entity Too Large")
	default:
		refuse(w, http.StatusInternalServerError, "Internal Server Error")
	}
}

// refuse answers as the HTTP API itself does.
func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"message":`+strconv.Quote(message)+`}`)
}

// route is the first route that a request matches, with its path parameters.
func (f *Front) route(r *http.Request) (*Route, map[string]string) {
	for i := range f.Routes {
		if parameters, ok := match(f.Routes[i].Key, r.Method, rawPath(r)); ok {
			return &f.Routes[i], parameters
		}
	}
	return nil, nil
}

// match reports whether a route's key takes a request.
func match(key, method, path string) (map[string]string, bool) {
	if key == "$default" {
		return nil, true
	}
	wanted, pattern, _ := strings.Cut(key, " ")
	if wanted != "ANY" && wanted != method {
		return nil, false
	}
	parts, given := strings.Split(pattern, "/"), strings.Split(path, "/")
	parameters := map[string]string{}
	for i, part := range parts {
		name, variable := strings.CutPrefix(part, "{")
		name = strings.TrimSuffix(name, "}")
		greedy := strings.HasSuffix(name, "+")
		switch {
		case i >= len(given):
			return nil, false
		case variable && greedy:
			rest := strings.Join(given[i:], "/")
			parameters[strings.TrimSuffix(name, "+")] = rest
			return parameters, rest != ""
		case variable && given[i] != "":
			parameters[name] = given[i]
		case variable || part != given[i]:
			return nil, false
		}
	}
	return parameters, len(parts) == len(given)
}

// write answers with what a function said.
func write(w http.ResponseWriter, answer []byte) error {
	var r events.APIGatewayV2HTTPResponse
	if err := json.Unmarshal(answer, &r); err != nil || r.StatusCode == 0 {
		// whatever is no response is the body of one
		r = events.APIGatewayV2HTTPResponse{StatusCode: http.StatusOK, Body: string(answer)}
	}
	body := []byte(r.Body)
	if r.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(r.Body); err != nil {
			return err
		}
	}
	w.Header().Set("Content-Type", "application/json")
	for name, value := range r.Headers {
		w.Header().Set(name, value)
	}
	for _, cookie := range r.Cookies {
		w.Header().Add("Set-Cookie", cookie)
	}
	w.WriteHeader(r.StatusCode)
	_, _ = w.Write(body) // the client may be gone
	return nil
}
