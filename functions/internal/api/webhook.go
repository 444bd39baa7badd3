package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sluice/core"
)

// tolerance is how far, in seconds, a signature's time may be from this clock.
const tolerance = int64(5 * time.Minute / time.Second)

// signed reports whether a request is to be let in by its signature, as
// Standard Webhooks 1.0.0 has it
// (github.com/standard-webhooks/standard-webhooks).
func (g *gate) signed(h http.Header) bool {
	return len(g.keys) > 0 && !g.bearer(h) &&
		first(h, "Webhook-Id") != "" && first(h, "Webhook-Timestamp") != "" && first(h, "Webhook-Signature") != ""
}

// fresh refuses a signature that is too old, and so may be sent again by
// somebody else, before the body is read.
func fresh(h http.Header, now core.Millis) error {
	at, err := strconv.ParseInt(first(h, "Webhook-Timestamp"), 10, 64)
	if err != nil {
		return core.Errorf(core.Unauthorized, "webhook-timestamp must be a time in whole seconds since 1970")
	}
	if second := int64(now) / 1000; at < second-tolerance || at > second+tolerance {
		return core.Errorf(core.Unauthorized, "webhook-timestamp must be within 5 minutes of the time here")
	}
	return nil
}

// verify checks a request's signature over its body by any of the keys.
func (g *gate) verify(h http.Header, body []byte) error {
	head := []byte(first(h, "Webhook-Id") + "." + first(h, "Webhook-Timestamp") + ".")
	candidates := first(h, "Webhook-Signature") // such as "v1,MTIz v1,NDU2"
	for _, key := range g.keys {
		mac := hmac.New(sha256.New, key)
		mac.Write(head)
		mac.Write(body)
		want := base64.StdEncoding.AppendEncode([]byte("v1,"), mac.Sum(nil))
		for candidate := range strings.SplitSeq(candidates, " ") {
			if hmac.Equal([]byte(candidate), want) {
				return nil
			}
		}
	}
	return core.Errorf(core.Unauthorized, "webhook-signature must have a v1 signature of this body by one of the source's secrets")
}
