package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"

	"sluice/core"
)

// gate decides who may call. Without tokens, keys or open it lets loopback in.
type gate struct {
	open   bool
	tokens [][sha256.Size]byte // hashes of the bearer tokens
	keys   [][]byte            // of senders that sign
	remedy string              // how to let others than loopback in
}

// admit lets a request in by its headers alone, or says why not.
func (g *gate) admit(r *http.Request) error {
	switch {
	case g.open:
		return nil
	case len(g.tokens) == 0 && len(g.keys) == 0:
		if reason := remote(r); reason != "" {
			return core.Errorf(core.Forbidden, "only callers on the same machine are let in, and %s; %s", reason, g.remedy)
		}
		return nil
	case g.bearer(r.Header):
		return nil
	case len(g.keys) == 0:
		return core.Errorf(core.Unauthorized, "send one of the tokens as Authorization: Bearer <token>")
	case len(g.tokens) > 0:
		return core.Errorf(core.Unauthorized, "send one of the tokens as Authorization: Bearer <token>, or sign the request as Standard Webhooks has it: webhook-id, webhook-timestamp and webhook-signature")
	default:
		return core.Errorf(core.Unauthorized, "sign the request as Standard Webhooks has it: webhook-id, webhook-timestamp and webhook-signature")
	}
}

// bearer reports whether a request has one of the tokens. It takes the same
// time for every wrong one.
func (g *gate) bearer(h http.Header) bool {
	const scheme = "bearer "
	auth := first(h, "Authorization")
	if len(g.tokens) == 0 || len(auth) <= len(scheme) || !strings.EqualFold(auth[:len(scheme)], scheme) {
		return false
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(auth[len(scheme):])))
	found := 0
	for i := range g.tokens {
		found |= subtle.ConstantTimeCompare(g.tokens[i][:], sum[:])
	}
	return found == 1
}

// keyring resolves secrets into gates, and collects what is wrong with them.
type keyring struct {
	resolve func(core.Secret) (string, error)
	errs    []error
}

func (k *keyring) control(c *core.Control) gate {
	return gate{
		tokens: k.tokens("control.tokens", c.Tokens),
		remedy: "to let others in, set control.tokens in the configuration",
	}
}

func (k *keyring) source(s *core.Source) gate {
	path := core.FieldPath("sources", s.Name) + ".auth"
	g := gate{remedy: "to let others in, set " + path + " in the configuration"}
	if s.Auth != nil {
		g.open = s.Auth.Open
		g.tokens = k.tokens(path+".bearer", s.Auth.Bearer)
		g.keys = k.keys(path+".webhook.secrets", s.Auth.Webhook)
	}
	return g
}

func (k *keyring) tokens(path string, refs []core.Secret) [][sha256.Size]byte {
	hashes := make([][sha256.Size]byte, len(refs))
	for i, ref := range refs {
		hashes[i] = sha256.Sum256([]byte(k.secret(core.ElementPath(path, i), ref)))
	}
	return hashes
}

// keys are the bytes that secrets of Standard Webhooks stand for.
func (k *keyring) keys(path string, refs []core.Secret) [][]byte {
	keys := make([][]byte, len(refs))
	for i, ref := range refs {
		path := core.ElementPath(path, i)
		value := k.secret(path, ref)
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(value, "whsec_"))
		if value != "" && (err != nil || len(key) == 0) {
			k.fault(path, "is not a secret of Standard Webhooks: it must be whsec_ and standard base64")
		}
		keys[i] = key
	}
	return keys
}

// secret is the value of a reference, never empty unless a fault is noted.
func (k *keyring) secret(path string, ref core.Secret) string {
	value, err := k.resolve(ref)
	switch {
	case err != nil:
		k.errs = append(k.errs, core.Wrap(core.Invalid, err, "%s can't be resolved", path))
		return ""
	case strings.TrimSpace(value) == "":
		k.fault(path, "is empty: it would let anybody in")
		return ""
	}
	return strings.TrimSpace(value)
}

func (k *keyring) fault(path, problem string) {
	k.errs = append(k.errs, core.Errorf(core.Invalid, "%s %s", path, problem))
}
