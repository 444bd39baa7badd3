package core

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// headerName is RFC 9110's token.
var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

func (v *validation) destination(d *Destination) {
	path := FieldPath("destinations", d.Name)
	v.oneOf(path+".type", d.Type, DestinationTypes())
	v.endpoint(path, d)
	v.headers(path+".headers", d.Headers)
	v.oneOf(path+".format", d.Format, Formats())
	if n := len(d.Secrets); n > MaxSecrets {
		v.add(path+".secrets", fmt.Sprintf("has %d secrets", n), fmt.Sprintf("at most %d: the new one and, during rotation, the old one", MaxSecrets))
	}
	v.number(path+".timeout", int64(d.Timeout), TimeoutRange)
	v.number(path+".concurrency", int64(d.Concurrency), SendsRange)
	v.retry(path+".retry", &d.Retry)
	v.onward(path, d)
}

func (v *validation) httpURL(path string, d *Destination) {
	path += ".url"
	if d.URL == "" {
		v.add(path, "is missing", "an http destination needs one, such as https://example.com/events")
	} else if problem := urlProblem(d.URL); problem != "" {
		v.add(path, problem, "must be an absolute http or https URL without user and password")
	}
}

func (v *validation) file(path string, d *Destination) {
	path += ".path"
	if d.Path == "" {
		v.add(path, "is missing", "a file destination needs the path of its file")
	} else if strings.ContainsRune(d.Path, 0) {
		v.add(path, "has a zero byte", "must be the path of a file")
	}
}

// urlProblem says what is wrong with a destination's URL, without quoting the
// parts of it that may hold a secret.
func urlProblem(s string) string {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return "is not a URL"
	case u.User != nil:
		return "has a user or password in it"
	case u.Scheme == "":
		return "has no scheme"
	case u.Scheme != "http" && u.Scheme != "https":
		return "has the scheme " + quoted(u.Scheme)
	case u.Hostname() == "":
		return "has no host"
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "has the port " + quoted(port) + ", which is none"
		}
	}
	return ""
}

func (v *validation) headers(path string, headers []ConfigHeader) {
	seen := make(map[string]bool, len(headers))
	for i := range headers {
		h := &headers[i]
		at, name := FieldPath(path, h.Name), strings.ToLower(h.Name)
		switch {
		case !headerName.MatchString(h.Name):
			v.add(at, "is not a header's name", "use letters, digits and -")
		case OwnHeader(name):
			v.add(at, "is a header that Sluice sets itself", "remove it")
		case seen[name]:
			v.add(at, "is there twice", "give each header once; case does not matter")
		}
		if strings.ContainsFunc(h.Value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7F }) {
			v.add(at, "has a control character in its value", "must be one line of text")
		}
		seen[name] = true
	}
}

// OwnHeader reports whether a configuration may not set a header, since it
// says what the batch is or how the connection works. Case does not matter.
func OwnHeader(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "connection", "content-length", "expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade":
		return true
	}
	return strings.HasPrefix(name, "sluice-") || strings.HasPrefix(name, "webhook-") || strings.HasPrefix(name, "proxy-")
}

func (v *validation) retry(path string, r *RetryPolicy) {
	v.number(path+".maxAttempts", int64(r.MaxAttempts), AttemptsRange)
	v.number(path+".initial", int64(r.Initial), RetryInitialRange)
	v.number(path+".max", int64(r.Max), RetryMaxRange)
	if RetryInitialRange.Has(int64(r.Initial)) && RetryMaxRange.Has(int64(r.Max)) && r.Initial > r.Max {
		v.add(path+".initial", "is "+formatDuration(r.Initial)+", above retry.max, "+formatDuration(r.Max), "must be at most retry.max")
	}
	for i, status := range r.On {
		v.number(ElementPath(path+".on", i), int64(status), RetryStatusRange)
	}
}
