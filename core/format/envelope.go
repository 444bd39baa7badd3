package format

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"sluice/core"
)

func appendEnvelope(dst []byte, b *core.Batch) []byte {
	dst = appendString(append(dst, `{"id":`...), b.ID)
	dst = appendString(append(dst, `,"buffer":`...), b.Buffer)
	dst = appendString(append(dst, `,"group":`...), b.Group)
	if w := b.Window; w != nil {
		dst = appendString(append(dst, `,"window":{"id":`...), w.ID)
		dst = appendString(append(dst, `,"start":`...), w.Start.String())
		dst = append(appendString(append(dst, `,"end":`...), w.End.String()), '}')
	}
	dst = appendString(append(dst, `,"reason":`...), string(b.Reason))
	dst = strconv.AppendInt(append(dst, `,"attempt":`...), int64(b.Attempt), 10)
	dst = appendString(append(dst, `,"firstAt":`...), b.FirstAt().String())
	dst = appendString(append(dst, `,"lastAt":`...), b.LastAt().String())
	dst = append(dst, `,"items":[`...)
	var sorted []core.Header // one buffer for all the items
	for i := range b.Items {
		if i > 0 {
			dst = append(dst, ',')
		}
		sorted = append(sorted[:0], b.Items[i].Headers...)
		dst = appendItem(dst, &b.Items[i], sorted)
	}
	return append(dst, "]}"...)
}

// appendItem writes one item; it may reorder headers, a copy of the item's own.
func appendItem(dst []byte, it *core.Item, headers []core.Header) []byte {
	dst = appendString(append(dst, `{"id":`...), it.ID)
	dst = appendString(append(dst, `,"receivedAt":`...), it.ReceivedAt.String())
	dst = appendString(append(dst, `,"contentType":`...), it.ContentType)
	dst = appendHeaders(append(dst, `,"headers":`...), headers)
	before := len(dst)
	dst, ok := appendJSON(append(dst, `,"body":`...), it.Body)
	if !ok {
		dst = appendBase64(append(dst[:before], `,"bodyBase64":`...), it.Body)
	}
	return append(dst, '}')
}

// appendHeaders writes headers as one object. Those of one name are joined by
// a comma, in the order received, as RFC 9110 section 5.3 allows.
func appendHeaders(dst []byte, headers []core.Header) []byte {
	slices.SortStableFunc(headers, func(a, b core.Header) int { return cmp.Compare(a.Name, b.Name) })
	dst = append(dst, '{')
	for i, h := range headers {
		if i > 0 && h.Name == headers[i-1].Name {
			dst = append(dst[:len(dst)-1], ", "...) // inside the string again
		} else {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendString(dst, h.Name), ':', '"')
		}
		dst = append(appendEscaped(dst, strings.ToValidUTF8(h.Value, "\uFFFD")), '"')
	}
	return append(dst, '}')
}
