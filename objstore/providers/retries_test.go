package providers

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/runtime/tier"
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

// archivedStore answers as S3 does for an object that was moved to Glacier: its attributes are
// there, and nobody gets it before it is restored.
type archivedStore struct{}

func (archivedStore) RoundTrip(r *http.Request) (*http.Response, error) {
	a := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r,
		Body: http.NoBody, ContentLength: 1000}
	a.Header.Set("Content-Length", "1000")
	a.Header.Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
	a.Header.Set("ETag", `"e"`)
	if r.Method != http.MethodHead {
		text := "<Error><Code>InvalidObjectState</Code><Message>The operation is not valid for the " +
			"object's storage class</Message></Error>"
		a.StatusCode, a.ContentLength = http.StatusForbidden, int64(len(text))
		a.Body = io.NopCloser(strings.NewReader(text))
	}
	return a, nil
}

// TestAnArchivedObjectIsNeitherLostNorDamaged: its size is right, and what it has nobody can tell.
func TestAnArchivedObjectIsNeitherLostNorDamaged(t *testing.T) {
	t.Parallel()
	const config = "bucket: bkt, endpoint: e, region: r, access_key: a, secret_key: s"
	b, err := open([]byte("type: S3\nconfig: {"+config+"}"), Options{},
		func(http.RoundTripper) http.RoundTripper { return archivedStore{} })
	check(t, err)
	s, err := objstore.New(b, "0123456789abcdef")
	check(t, err)
	log := tier.LogID{Table: "orders", Name: "0"}
	k := tier.ObjectKey{Log: log, Epoch: 1, Attempt: tier.AttemptID{1}, Name: "0.log"}
	check(t, s.StatFile(t.Context(), k, 1000))
	_, errFact := s.Fact(t.Context(), log, 0, tier.AttemptID{1})
	for _, err := range []error{errFact, s.ReadFile(t.Context(), k, 0, make([]byte, 1000)),
		s.VerifyFile(t.Context(), k, tier.FileDigest{Name: "0.log", Size: 1000}, tier.VerifyFull, nil)} {
		if err == nil || errors.Is(err, tier.ErrVanished) || errors.Is(err, tier.ErrDamaged) ||
			!strings.Contains(err.Error(), "storage class") {
			t.Errorf("%v", err)
		}
	}
}
