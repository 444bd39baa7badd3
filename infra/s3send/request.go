package s3send

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"

	"sluice/core"
	"sluice/core/format"
	"sluice/core/objectkey"
)

// maxMeta bounds a value of an object's metadata, in bytes.
const maxMeta = 256

// request is the signed PUT of a batch.
func (s *Sender) request(ctx context.Context, b *core.Batch) (*http.Request, error) {
	raw := format.Append(make([]byte, 0, int(b.Bytes())+len(b.Items)+64), s.format, b)
	body, err := s.packing.Pack(raw)
	if err != nil {
		return nil, core.Wrap(core.Internal, err, "the batch could not be compressed")
	}
	u := *s.base
	u.Path += s.key.Key(s.named(b))
	u.RawPath = escape(u.Path, "/")
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, core.Wrap(core.Internal, err, "the request could not be made")
	}
	s.describe(r.Header, b)
	return r, s.sign(ctx, r, sha256.Sum256(body))
}

// named is what the key may say of a batch. The time is that of the window or
// of the oldest item: neither depends on the attempt.
func (s *Sender) named(b *core.Batch) *objectkey.Batch {
	at := b.FirstAt()
	if b.Window != nil {
		at = b.Window.Start
	}
	return &objectkey.Batch{ID: b.ID, Buffer: b.Buffer, Group: b.Group, Reason: string(b.Reason), At: at.Time(), Suffix: s.suffix}
}

// describe says what the object is.
func (s *Sender) describe(h http.Header, b *core.Batch) {
	h.Set("Content-Type", s.format.ContentType())
	if s.packing.Encoding != "" {
		h.Set("Content-Encoding", s.packing.Encoding)
	}
	h.Set("User-Agent", "sluice")
	for _, m := range [...]struct{ name, value string }{
		{"batch", b.ID}, {"buffer", b.Buffer}, {"group", b.Group}, {"reason", string(b.Reason)}, {"items", strconv.Itoa(len(b.Items))},
	} {
		if v := escape(m.value, ""); v != "" {
			h.Set("X-Amz-Meta-Sluice-"+m.name, v[:min(len(v), maxMeta)])
		}
	}
}

// sign signs the request, body and all.
func (s *Sender) sign(ctx context.Context, r *http.Request, sum [sha256.Size]byte) error {
	credentials, err := s.credentials.Retrieve(ctx)
	if err != nil {
		return core.Wrap(core.Unavailable, err, "there are no credentials")
	}
	hash := hex.EncodeToString(sum[:])
	r.Header.Set("X-Amz-Content-Sha256", hash)
	r.Header.Set("X-Amz-Checksum-Sha256", base64.StdEncoding.EncodeToString(sum[:]))
	if err := s.signer.SignHTTP(ctx, credentials, r, hash, "s3", s.region, s.clock.Now().Time()); err != nil {
		return core.Wrap(core.Internal, err, "the request could not be signed")
	}
	return nil
}

// escape writes all but RFC 3986's unreserved characters, and those in keep,
// as %XX: the one encoding that signatures are made of.
func escape(s, keep string) string {
	const hex = "0123456789ABCDEF"
	var out strings.Builder
	for _, c := range []byte(s) {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~"+keep, c) >= 0 {
			out.WriteByte(c)
		} else {
			out.Write([]byte{'%', hex[c>>4], hex[c&0xF]})
		}
	}
	return out.String()
}
