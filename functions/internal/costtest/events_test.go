package costtest

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
)

// kib is the size of every event's body.
const kib = 1024

// mint makes events, always the same ones.
type mint struct{ *rand.Rand }

func newMint() mint { return mint{rand.New(rand.NewPCG(1, 2))} }

func (m mint) pick(from ...string) string { return from[m.IntN(len(from))] }

func (m mint) hex(n int) string {
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "%x", m.IntN(16))
	}
	return b.String()
}

// kind makes an event of a customer.
type kind func(m mint, customer string) string

// order is JSON as systems send it: names that come again, words, ids, amounts
// and times that do not.
func order(m mint, customer string) string {
	head := fmt.Sprintf(`{"type":"order.%s","id":"ord_%s","customer_id":%q,"created_at":"2026-0%d-%02dT%02d:%02d:%02d.%03dZ",`+
		`"currency":%q,"total":%d.%02d,"email":"%s.%s%d@example.com","shipping":{"street":"%s %s %d","postcode":"%05d","city":%q,"country":%q},`+
		`"metadata":{"channel":%q,"campaign":"%s","session":"%s"},"lines":[`,
		m.pick("created", "paid", "shipped", "cancelled"), m.hex(16), customer, 1+m.IntN(9), 1+m.IntN(28),
		m.IntN(24), m.IntN(60), m.IntN(60), m.IntN(1000), m.pick("EUR", "USD", "GBP"), m.IntN(900), m.IntN(100),
		m.pick("anna", "ben", "carla", "david", "eva"), m.pick("meyer", "smith", "rossi", "dubois"), m.IntN(1000),
		m.pick("Long", "High", "Station", "Church"), m.pick("Street", "Road", "Lane"), 1+m.IntN(200), m.IntN(100000),
		m.pick("Berlin", "Leeds", "Lyon", "Turin"), m.pick("DE", "GB", "FR", "IT"),
		m.pick("web", "app", "store"), m.pick("spring", "newsletter", "none"), m.hex(24))
	var lines []string
	for size := len(head); ; {
		line := fmt.Sprintf(`{"sku":"SKU-%06d","name":"%s %s %s","quantity":%d,"unit_price":%d.%02d,"tax_rate":0.19}`,
			m.IntN(1000000), m.pick("blue", "small", "large", "light", "warm"), m.pick("cotton", "steel", "oak", "ceramic"),
			m.pick("shirt", "mug", "table", "lamp", "shelf"), 1+m.IntN(5), m.IntN(200), m.IntN(100))
		if size+len(line)+len(`,],"note":""}`) > kib {
			break
		}
		lines = append(lines, line)
		size += len(line) + 1
	}
	body := head + strings.Join(lines, ",") + `],"note":"`
	return body + m.words(kib-len(body)-len(`"}`)) + `"}`
}

// words is text of a length.
func (m mint) words(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(m.pick("please ", "leave ", "at ", "the ", "door ", "call ", "before ", "delivery ", "gift ", "thanks "))
	}
	return b.String()[:n]
}

// opaque is JSON around random bytes in base64, which is as hard to compress as
// JSON gets: to three quarters.
func opaque(m mint, customer string) string {
	head := fmt.Sprintf(`{"customer_id":%q,"data":"`, customer)
	data := make([]byte, kib)
	for i := range data {
		data[i] = byte(m.IntN(256))
	}
	return head + base64.StdEncoding.EncodeToString(data)[:kib-len(head)-len(`"}`)] + `"}`
}

// array is a JSON array of events.
func array(events []string) string { return "[" + strings.Join(events, ",") + "]" }
