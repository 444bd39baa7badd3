package awstest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// BucketRef is an empty bucket that is the test's own.
type BucketRef struct {
	Endpoint string
	Name     string
	SDK      aws.Config // credentials and region to reach it with

	t testing.TB
}

// Object is what a bucket holds under a key.
type Object struct {
	Key    string
	Header http.Header
	Body   []byte // as stored, not unpacked
}

// Bucket creates a bucket. The test's end deletes nothing: the stand-in ends
// with the test binary, and its folder with it.
func Bucket(t testing.TB) *BucketRef {
	t.Helper()
	endpoint := versity.at(t)
	b := &BucketRef{Endpoint: endpoint, Name: fmt.Sprintf("sluice-%d", serial.Add(1)), SDK: Config(t, endpoint), t: t}
	b.do(http.MethodPut, "", http.StatusOK)
	return b
}

// Delete deletes the bucket, which must be empty.
func (b *BucketRef) Delete() {
	b.t.Helper()
	b.do(http.MethodDelete, "", http.StatusNoContent)
}

// Objects are all objects, by their keys in order.
func (b *BucketRef) Objects() []Object {
	b.t.Helper()
	var objects []Object
	for token := ""; ; {
		var list struct {
			Contents []struct {
				Key string `xml:"Key"`
			} `xml:"Contents"`
			NextContinuationToken string `xml:"NextContinuationToken"`
		}
		_, body := b.do(http.MethodGet, "?list-type=2&continuation-token="+url.QueryEscape(token), http.StatusOK)
		if err := xml.Unmarshal(body, &list); err != nil {
			b.t.Fatalf("awstest: list objects: %v", err)
		}
		for _, o := range list.Contents {
			header, body := b.do(http.MethodGet, "/"+escapeKey(o.Key), http.StatusOK)
			objects = append(objects, Object{o.Key, header, body})
		}
		if token = list.NextContinuationToken; token == "" {
			return objects
		}
	}
}

// do makes a call about the bucket, or about an object in it.
func (b *BucketRef) do(method, path string, want int) (http.Header, []byte) {
	b.t.Helper()
	ctx := context.Background()
	r, err := http.NewRequestWithContext(ctx, method, b.Endpoint+"/"+b.Name+path, http.NoBody)
	if err != nil {
		b.t.Fatalf("awstest: %v", err)
	}
	r.Header.Set("Accept-Encoding", "identity")
	if method == http.MethodGet {
		r.Header.Set("X-Amz-Checksum-Mode", "ENABLED")
	}
	empty := sha256.Sum256(nil)
	hash := hex.EncodeToString(empty[:])
	r.Header.Set("X-Amz-Content-Sha256", hash)
	credentials, err := b.SDK.Credentials.Retrieve(ctx)
	if err != nil {
		b.t.Fatalf("awstest: %v", err)
	}
	plain := func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }
	if err := v4.NewSigner().SignHTTP(ctx, credentials, r, hash, "s3", b.SDK.Region, time.Now(), plain); err != nil {
		b.t.Fatalf("awstest: %v", err)
	}
	answer, err := b.SDK.HTTPClient.Do(r)
	if err != nil {
		b.t.Fatalf("awstest: %v", err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != want {
		b.t.Fatalf("awstest: %s %s: status %d, %v: %s", method, r.URL, answer.StatusCode, err, bytes.TrimSpace(body))
	}
	return answer.Header, body
}

// escapeKey is a key as signatures have it.
func escapeKey(key string) string {
	return strings.NewReplacer("+", "%20", "%2F", "/").Replace(url.QueryEscape(key))
}
