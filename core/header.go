package core

import "bytes"

// MaxHeaderBytes bounds the names and values of the headers that an event keeps.
const MaxHeaderBytes = 8 << 10

// HeaderBytes is what headers count against [MaxHeaderBytes].
func HeaderBytes(headers []Header) int {
	n := 0
	for i := range headers {
		n += len(headers[i].Name) + len(headers[i].Value)
	}
	return n
}

// droppedHeaders are those that an event does not keep: they are about its
// connection, transfer or sender. Its content type has a field of its own.
var droppedHeaders = map[string]bool{
	"connection": true, "keep-alive": true, "te": true, "trailer": true, "transfer-encoding": true,
	"upgrade": true, "expect": true, "host": true,
	"content-length": true, "content-type": true, "content-encoding": true,
	"user-agent": true, "webhook-signature": true,
}

// credentials are parts of the names of headers that carry secrets, which
// must not travel on to destinations.
var credentials = [...]string{
	"authorization", "cookie", "password", "passwd", "secret", "token", "credential",
	"api-key", "apikey", "api_key", "access-key", "accesskey", "access_key", "auth-key",
}

// KeptHeader is the name, in lower case, under which an event keeps a header or
// message attribute of its sender, or "" when it does not.
func KeptHeader(name string) string {
	var space [64]byte // most names are dropped, and are to cost nothing
	low := append(space[:0], name...)
	for i, c := range low {
		if 'A' <= c && c <= 'Z' {
			low[i] += 'a' - 'A'
		}
	}
	if droppedHeaders[string(low)] || bytes.HasPrefix(low, []byte("accept")) || bytes.HasPrefix(low, []byte("proxy-")) {
		return ""
	}
	for _, part := range credentials {
		if bytes.Contains(low, []byte(part)) {
			return ""
		}
	}
	return string(low)
}
