package httpsend

import (
	"io"
	"net/http"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"sluice/core/format"
)

// BenchmarkSend sends batches of 50 items of 1 KB to a server in this process.
func BenchmarkSend(b *testing.B) {
	for _, signed := range []string{"", "key"} {
		b.Run("signed="+signed, func(b *testing.B) {
			server := serve(b, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
			o := options(server.URL)
			o.Concurrency = 32
			if signed != "" {
				o.Secrets = []string{signed}
			}
			s := newSender(b, o)
			batch := batchOf(50)
			b.SetBytes(batch.Bytes())
			b.ReportAllocs()
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if r := s.Send(b.Context(), batch); r.Err != nil || r.Status != http.StatusOK {
						b.Errorf("status %d, error %v", r.Status, r.Err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "sends/s")
		})
	}
}

// BenchmarkSignature compares with the library, which copies the payload.
func BenchmarkSignature(b *testing.B) {
	payload := format.Append(nil, format.NDJSON, batchOf(50))
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			signature([][]byte{[]byte("key")}, "life-1", "1772600767", payload)
		}
	})
	b.Run("library", func(b *testing.B) {
		wh, err := standardwebhooks.NewWebhookRaw([]byte("key"))
		require.NoError(b, err)
		b.ReportAllocs()
		for b.Loop() {
			_, err := wh.Sign("life-1", now.Time(), payload)
			require.NoError(b, err)
		}
	})
}
