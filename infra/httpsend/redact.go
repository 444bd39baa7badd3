package httpsend

import (
	"encoding/json"
	"slices"
	"strings"

	"sluice/core"
)

const (
	redacted    = "[secret]" // stands for a value that is not shown
	minRedacted = 4          // bytes; a shorter value would blot out ordinary text
)

// redactions are the texts that are never shown: every form of the values that
// an endpoint may repeat.
func redactions(values []string) []string {
	var all []string
	for _, v := range values {
		v = strings.Trim(v, " \t\r\n") // as it is sent
		if len(v) < minRedacted {
			continue
		}
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(v)
		all = append(all, v, quoted, strings.ReplaceAll(quoted, "/", `\/`))
		if escaped, err := json.Marshal(v); err == nil {
			all = append(all, string(escaped[1:len(escaped)-1]))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// signingRedactions are what could show a signing secret.
func signingRedactions(secrets []string) []string {
	var all []string
	for _, s := range secrets {
		all = append(all, s, strings.TrimPrefix(s, secretPrefix))
	}
	return all
}

// signatureRedactions are the signatures of a webhook-signature header.
func signatureRedactions(header string) []string {
	var all []string
	for one := range strings.FieldsSeq(header) {
		all = append(all, strings.TrimPrefix(one, "v1,"))
	}
	return all
}

// redact is the start of body with every secret replaced, and at least
// core.MaxAnswer+1 bytes of it when there are as many. It goes by what comes
// out, so no secret is torn by a cut after it.
func redact(body []byte, secrets []string) []byte {
	if len(secrets) == 0 || len(body) < minRedacted {
		return body
	}
	out := make([]byte, 0, min(len(body), core.MaxAnswer)+len(redacted))
	hidden := 0 // body is hidden up to here
	for i := 0; i < len(body) && len(out) <= core.MaxAnswer; i++ {
		n := secretAt(body[i:], secrets)
		if n > 0 && i >= hidden {
			out = append(out, redacted...)
		}
		hidden = max(hidden, i+n)
		if i >= hidden {
			out = append(out, body[i])
		}
	}
	return out
}

// secretAt is the length of the secret with which text starts, or 0. The start
// of a secret counts when text ends within it: the rest was not read.
func secretAt(text []byte, secrets []string) int {
	most := 0
	for _, s := range secrets {
		n := min(len(s), len(text))
		if n >= minRedacted && n > most && string(text[:n]) == s[:n] {
			most = n
		}
	}
	return most
}
