package api

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sluice/core"
)

const (
	defaultLimit = 100
	maxLimit     = 1000
)

// parameters are a request's query parameters, which must be among the known
// ones: a misspelled filter would otherwise pick everything.
func parameters(r *http.Request, known ...string) (url.Values, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, core.Wrap(core.Invalid, err, "the query is not well-formed; escape its values")
	}
	for name, values := range q {
		switch {
		case len(known) == 0:
			return nil, core.Errorf(core.Invalid, "this call has no parameters")
		case !slices.Contains(known, name):
			return nil, core.Errorf(core.Invalid, "a parameter is not known; there are %s", strings.Join(known, ", "))
		case len(values) > 1:
			return nil, core.Errorf(core.Invalid, "%s is given twice", name)
		}
	}
	return q, nil
}

// limitOf is how many elements a list is to have.
func limitOf(q url.Values) (int, error) {
	if !q.Has("limit") {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(q.Get("limit"))
	if err != nil || n < 1 || n > maxLimit {
		return 0, core.Errorf(core.Invalid, "limit must be a number from 1 to %d", maxLimit)
	}
	return n, nil
}
