package httpsend

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"sluice/core"
)

// secretPrefix marks a secret that is written in base64.
const secretPrefix = "whsec_"

// parseSecrets makes keys of secrets: whsec_ and base64, or the key's bytes.
func parseSecrets(secrets []string) ([][]byte, error) {
	keys := make([][]byte, len(secrets))
	for i, s := range secrets {
		keys[i] = []byte(s)
		if encoded, ok := strings.CutPrefix(s, secretPrefix); ok {
			key, err := base64.StdEncoding.DecodeString(encoded)
			if err != nil { // its text could show a part of the secret
				return nil, core.Errorf(core.Invalid, "secrets: what follows %s in secret %d is not base64", secretPrefix, i+1)
			}
			keys[i] = key
		}
		if len(keys[i]) == 0 {
			return nil, core.Errorf(core.Invalid, "secrets: secret %d is empty", i+1)
		}
	}
	return keys, nil
}

// signature is the webhook-signature header: v1,<base64> for each key,
// separated by spaces, over id, time in Unix seconds, and payload.
//
// The library of Standard Webhooks copies the payload twice for every
// signature, 100 KB of garbage for a batch of 50 KB; here it is only read. The
// tests hold this against the library.
//
// Source: Standard Webhooks specification 1.0.0, "Signature scheme".
func signature(keys [][]byte, id, at string, payload []byte) string {
	var out strings.Builder
	var sum [sha256.Size]byte
	for i, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + at + "."))
		mac.Write(payload)
		if i > 0 {
			out.WriteByte(' ')
		}
		out.WriteString("v1,")
		out.WriteString(base64.StdEncoding.EncodeToString(mac.Sum(sum[:0])))
	}
	return out.String()
}
