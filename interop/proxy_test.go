package interop_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fault is what a proxy does instead of handing a request on; false where it hands it on after all.
type fault func(w http.ResponseWriter, r *http.Request) bool

// proxy stands between tierd and a store.
type proxy struct {
	address string
	passed  atomic.Int64
	faults  atomic.Int64

	mu    sync.Mutex
	every int // a fault at each so-manieth request; 0 is never
	next  int
	kinds []fault
}

func newProxy(t *testing.T, s *store) *proxy {
	t.Helper()
	p := &proxy{}
	to := &url.URL{Scheme: "http", Host: s.address}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			if r.Out.Host = s.address; s.signsHost {
				r.Out.Host = r.In.Host
			}
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if do := p.turn(); do != nil {
			p.faults.Add(1)
			if do(w, r) {
				return
			}
		}
		p.passed.Add(1)
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p.address = strings.TrimPrefix(server.URL, "http://")
	return p
}

// set makes each so-manieth request meet one of the faults, in turn.
func (p *proxy) set(every int, kinds ...fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.every, p.next, p.kinds = every, 0, kinds
}

func (p *proxy) turn() fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.every == 0 {
		return nil
	}
	p.next++
	if p.next%p.every != 0 {
		return nil
	}
	return p.kinds[p.next/p.every%len(p.kinds)]
}

// delay hands the request on, late.
func delay(_ http.ResponseWriter, r *http.Request) bool {
	select {
	case <-time.After(300 * time.Millisecond):
	case <-r.Context().Done():
	}
	return false
}

// cut ends the connection without an answer, after half of what was sent.
func cut(_ http.ResponseWriter, r *http.Request) bool {
	_, _ = io.CopyN(io.Discard, r.Body, r.ContentLength/2)
	panic(http.ErrAbortHandler)
}

// cutAnswer begins an answer and ends the connection in the middle.
func cutAnswer(w http.ResponseWriter, _ *http.Request) bool {
	w.Header().Set("Content-Length", "1000")
	_, _ = io.WriteString(w, "half of it")
	panic(http.ErrAbortHandler)
}

// refuse answers with the status.
func refuse(code int) fault {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(code)
		return true
	}
}

// expired answers as S3 does where a session is over.
func expired(w http.ResponseWriter, _ *http.Request) bool {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(http.StatusForbidden)
	_, _ = io.WriteString(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>ExpiredToken</Code>`+
		`<Message>The provided token has expired.</Message></Error>`)
	return true
}

// expiredAzure answers as Azure does where a signature is over.
func expiredAzure(w http.ResponseWriter, _ *http.Request) bool {
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("X-Ms-Error-Code", "AuthenticationFailed")
	w.WriteHeader(http.StatusForbidden)
	_, _ = io.WriteString(w, `<?xml version="1.0" encoding="utf-8"?><Error>`+
		`<Code>AuthenticationFailed</Code><Message>Server failed to authenticate the request.</Message>`+
		`<AuthenticationErrorDetail>Signature not valid in the specified time frame`+
		`</AuthenticationErrorDetail></Error>`)
	return true
}

// expiredGoogle answers as Google does where a token is over.
func expiredGoogle(w http.ResponseWriter, _ *http.Request) bool {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnauthorized)
	_, _ = io.WriteString(w, `{"error":{"code":401,"message":"Invalid Credentials","errors":`+
		`[{"message":"Invalid Credentials","domain":"global","reason":"authError",`+
		`"locationType":"header","location":"Authorization"}]}}`)
	return true
}
