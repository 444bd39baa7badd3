package lambdatest

import (
	"encoding/base64"
	"encoding/json"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// The HTTP API's own names.
const (
	apiID  = "abcde12345"
	domain = apiID + ".execute-api." + region + ".amazonaws.com"
)

// event is the event that a request becomes.
func event(r *http.Request, key string, parameters map[string]string, body []byte) events.APIGatewayV2HTTPRequest {
	now := time.Now().UTC()
	ip, port, _ := net.SplitHostPort(r.RemoteAddr)
	id := uuid()
	e := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: key,
		RawPath: rawPath(r), RawQueryString: r.URL.RawQuery,
		Headers:               headers(r, len(body)),
		QueryStringParameters: query(r),
		PathParameters:        parameters,
		RequestContext: events.APIGatewayV2HTTPRequestContext{
			RouteKey: key, AccountID: account, Stage: "$default", RequestID: id[:13] + "=",
			APIID: apiID, DomainName: domain, DomainPrefix: apiID,
			Time: now.Format("02/Jan/2006:15:04:05 +0000"), TimeEpoch: now.UnixMilli(),
			HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{
				Method: r.Method, Path: rawPath(r), Protocol: r.Proto, SourceIP: ip, UserAgent: r.UserAgent(),
			},
		},
	}
	e.Headers["x-forwarded-for"], e.Headers["x-forwarded-port"] = ip, port
	for _, line := range r.Header.Values("Cookie") {
		for cookie := range strings.SplitSeq(line, ";") {
			e.Cookies = append(e.Cookies, strings.TrimSpace(cookie))
		}
	}
	e.Body = string(body)
	if len(body) > 0 && !textual(r.Header.Get("Content-Type")) {
		e.Body, e.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
	}
	return e
}

// rawPath is the path as the HTTP API shows it: decoded, in spite of its name,
// and cut at a question mark that was encoded.
func rawPath(r *http.Request) string {
	path, _, _ := strings.Cut(r.URL.Path, "?")
	return path
}

// headers are the headers by their names in lower case, those of one name
// joined by a comma.
func headers(r *http.Request, length int) map[string]string {
	h := map[string]string{
		"host": r.Host, "content-length": strconv.Itoa(length),
		"x-amzn-trace-id": "Root=1-" + uuid()[:8] + "-" + strings.ReplaceAll(uuid(), "-", "")[:24], "x-forwarded-proto": "https",
	}
	for name, values := range r.Header {
		switch name {
		case "Cookie", "Connection", "Transfer-Encoding", "Content-Length":
		default:
			h[strings.ToLower(name)] = strings.Join(values, ",")
		}
	}
	return h
}

// query are the query's parameters, those of one name joined by a comma.
func query(r *http.Request) map[string]string {
	var q map[string]string
	for name, values := range r.URL.Query() {
		if q == nil {
			q = make(map[string]string)
		}
		q[name] = strings.Join(values, ",")
	}
	return q
}

// textual reports whether a body of a type goes into an event as it is; the
// HTTP API has these as text and everything else in base64.
func textual(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	switch media {
	case "application/json", "application/xml", "application/javascript":
		return true
	}
	return strings.HasPrefix(media, "text/")
}

// Scheduled is the event that a recurring schedule without an input of its own
// sends.
func Scheduled(schedule string, at time.Time) []byte {
	payload, err := json.Marshal(map[string]any{
		"version": "0", "id": uuid(), "detail-type": "Scheduled Event", "source": "aws.scheduler",
		"account": account, "time": at.UTC().Format(time.RFC3339), "region": region,
		"resources": []string{"arn:aws:scheduler:" + region + ":" + account + ":schedule/" + schedule}, "detail": "{}",
	})
	if err != nil {
		panic(err) // strings can be encoded
	}
	return payload
}
