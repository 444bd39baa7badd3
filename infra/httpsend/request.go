package httpsend

import (
	"context"
	"maps"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"unicode/utf8"

	"sluice/core"
	"sluice/core/format"
)

// maxGroup bounds the sluice-group header, in bytes.
const maxGroup = 256

// request is the POST of a batch, whose encoded form is p.
func (s *Sender) request(ctx context.Context, b *core.Batch, p *payload) *http.Request {
	h := maps.Clone(s.headers)
	at := strconv.FormatInt(int64(s.clock.Now())/1000, 10)
	h["Webhook-Id"] = []string{b.ID}
	h["Webhook-Timestamp"] = []string{at}
	if len(s.keys) > 0 {
		h["Webhook-Signature"] = []string{signature(s.keys, b.ID, at, p.data)}
	}
	h["Sluice-Buffer"] = []string{b.Buffer}
	h["Sluice-Group"] = []string{percentEncode(b.Group, maxGroup)}
	if b.Window != nil {
		h["Sluice-Window"] = []string{b.Window.ID}
	}
	h["Sluice-Items"] = []string{strconv.Itoa(len(b.Items))}
	h["Sluice-Reason"] = []string{string(b.Reason)}
	h["Sluice-Attempt"] = []string{strconv.Itoa(b.Attempt)}
	if b.Shadow {
		h["Sluice-Shadow"] = []string{"true"}
	}
	h["Sluice-Oldest"] = []string{b.FirstAt().String()}
	body, _ := p.open() // cannot fail; the error is GetBody's signature
	r := &http.Request{
		Method: http.MethodPost, URL: s.url, Header: h,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: body, GetBody: p.open, ContentLength: int64(len(p.data)),
	}
	return r.WithContext(ctx)
}

// percentEncode writes all but RFC 3986's unreserved characters as %XX, and
// stops before the character with which it would exceed n bytes.
func percentEncode(s string, n int) string {
	const hex = "0123456789ABCDEF"
	var out strings.Builder
	for len(s) > 0 {
		_, size := utf8.DecodeRuneInString(s)
		width := 3 * size
		if unreserved(s[0]) {
			width = 1
		}
		if out.Len()+width > n {
			break
		}
		for _, c := range []byte(s[:size]) {
			if width == 1 {
				out.WriteByte(c)
			} else {
				out.Write([]byte{'%', hex[c>>4], hex[c&0xF]})
			}
		}
		s = s[size:]
	}
	return out.String()
}

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// baseHeaders is what every request carries: the content type and the agent,
// which a configured header may replace, and the configured ones.
func baseHeaders(f format.Format, configured []core.Header) (http.Header, error) {
	h := http.Header{}
	for _, c := range configured {
		name := textproto.CanonicalMIMEHeaderKey(c.Name)
		switch {
		case !validName(c.Name):
			return nil, core.Errorf(core.Invalid, "headers: %q is no header name", c.Name)
		case core.OwnHeader(name):
			return nil, core.Errorf(core.Invalid, "headers: %s is set by Sluice; use another name", name)
		case !validValue(c.Value):
			return nil, core.Errorf(core.Invalid, "headers: the value of %s holds a line break or another control character", name)
		default:
			h[name] = append(h[name], c.Value)
		}
	}
	if h["Content-Type"] == nil {
		h["Content-Type"] = []string{f.ContentType()}
	}
	if h["User-Agent"] == nil {
		h["User-Agent"] = []string{"sluice"}
	}
	return h, nil
}

// validName reports whether s is a token of RFC 9110 section 5.6.2.
func validName(s string) bool {
	for _, c := range []byte(s) {
		if !unreserved(c) && strings.IndexByte("!#$%&'*+^`|", c) < 0 {
			return false
		}
	}
	return s != ""
}

func validValue(s string) bool {
	for _, c := range []byte(s) {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
