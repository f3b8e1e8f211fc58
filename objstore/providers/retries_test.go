package providers

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// deniedStore answers every request as S3 does where a session is over, and counts them.
type deniedStore struct{ asked atomic.Int64 }

func (s *deniedStore) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked.Add(1)
	return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Request: r,
		Body: io.NopCloser(strings.NewReader("<Error><Code>ExpiredToken</Code>" +
			"<Message>The provided token has expired.</Message></Error>"))}, nil
}

// TestS3IsAskedOnce: the client must not repeat what tierd repeats, and hide the reason until its
// caller has lost patience. Whoever configures max_retries has said so.
func TestS3IsAskedOnce(t *testing.T) {
	t.Parallel()
	const config = "bucket: bkt, endpoint: e, region: r, access_key: a, secret_key: s"
	for text, want := range map[string]int64{
		"type: S3\nconfig: {" + config + "}":                 1,
		"type: s3\nconfig: {" + config + ", max_retries: 2}": 2,
	} {
		store := &deniedStore{}
		b, err := open([]byte(text), Options{},
			func(http.RoundTripper) http.RoundTripper { return store })
		check(t, err)
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		_, err = b.Attributes(ctx, "key")
		cancel()
		if err == nil || store.asked.Load() != want {
			t.Errorf("%s: asked %d times, want %d: %v", text, store.asked.Load(), want, err)
		}
	}
}
