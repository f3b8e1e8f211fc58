package kafka_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/tierd/tierd/runtime/kafka/kafkatest"
	"github.com/tierd/tierd/runtime/tier"
)

// certificate makes one for the name, signed by itself.
func certificate(t *testing.T, name string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// TestTLSAndLogin reads over TLS as a user. The name that the client asked for is the one that it
// is told to go on with: the address would not be in the certificate.
func TestTLSAndLogin(t *testing.T) {
	t.Parallel()
	cert, pool := certificate(t, "localhost")
	logs, fixtures := load(t, "v4-live")
	cfg := config(logs)
	cfg.Authenticate = func(user, password string) bool { return user == "ann" && password == "tea" }
	e := start(t, cfg, func(l net.Listener) net.Listener {
		return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}})
	})
	_, port, _ := net.SplitHostPort(e.addr)
	client := func(password string) *kgo.Client {
		cl, err := kgo.NewClient(kgo.SeedBrokers("localhost:"+port), kgo.ConsumeTopics("events"),
			kgo.DialTLSConfig(&tls.Config{RootCAs: pool}), kgo.RetryTimeout(time.Second),
			kgo.SASL(plain.Auth{User: "ann", Pass: password}.AsMechanism()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(cl.Close)
		return cl
	}
	want := map[tier.LogID]kafkatest.Digest{}
	for _, p := range fixtures {
		if p.Topic == "events" {
			want[p.ID()] = p.ReadUncommitted
		}
	}
	for id, got := range kafkatest.Consume(t, client("tea"), want) {
		if got != want[id] {
			t.Errorf("%v: got %+v, want %+v", id, got, want[id])
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := client("coffee").Ping(ctx)
	if err == nil || !strings.Contains(err.Error(), "SASL_AUTHENTICATION_FAILED") {
		t.Errorf("with a wrong password: %v", err)
	}
}

// login is a connection to a server that wants one.
func login(t *testing.T) (*endpoint, *wire) {
	t.Helper()
	cfg := config(orders(t))
	cfg.Authenticate = func(user, password string) bool { return user == "ann" && password == "tea" }
	e := start(t, cfg)
	return e, dial(t, e)
}

func handshake(w *wire, mechanism string) *kmsg.SASLHandshakeResponse {
	w.t.Helper()
	req := kmsg.NewPtrSASLHandshakeRequest()
	req.Mechanism = mechanism
	return ask[*kmsg.SASLHandshakeResponse](w, 1, req)
}

func TestLoginIsWanted(t *testing.T) {
	t.Parallel()
	_, w := login(t)
	ask[*kmsg.ApiVersionsResponse](w, 4, kmsg.NewPtrApiVersionsRequest()) // allowed before
	req := kmsg.NewPtrMetadataRequest()
	req.SetVersion(12)
	if _, err := w.Write(formatter.AppendRequest(nil, req, 7)); err != nil {
		t.Fatal(err)
	}
	w.ended()
}

func TestLogins(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		message string
		code    *kerr.Error
	}{
		{"\x00ann\x00tea", nil},
		{"ann\x00ann\x00tea", nil},
		{"bob\x00ann\x00tea", kerr.SaslAuthenticationFailed},
		{"\x00ann\x00coffee", kerr.SaslAuthenticationFailed},
		{"\x00\x00", kerr.SaslAuthenticationFailed},
		{"ann tea", kerr.SaslAuthenticationFailed},
		{"\x00ann\x00tea\x00", kerr.SaslAuthenticationFailed},
		{"", kerr.SaslAuthenticationFailed},
	} {
		_, w := login(t)
		if r := handshake(w, "SCRAM-SHA-256"); r.ErrorCode != kerr.UnsupportedSaslMechanism.Code ||
			len(r.SupportedMechanisms) != 1 {
			t.Errorf("another mechanism: %+v", r)
		}
		if r := handshake(w, "PLAIN"); r.ErrorCode != 0 {
			t.Errorf("PLAIN: %+v", r)
		}
		req := kmsg.NewPtrSASLAuthenticateRequest()
		req.SASLAuthBytes = []byte(c.message)
		r := ask[*kmsg.SASLAuthenticateResponse](w, 2, req)
		if code := kerr.TypedErrorForCode(r.ErrorCode); code != c.code {
			t.Errorf("%q: %v, want %v", c.message, code, c.code)
		}
		if c.code != nil {
			w.ended()
			continue
		}
		if r := ask[*kmsg.MetadataResponse](w, 12, kmsg.NewPtrMetadataRequest()); len(r.Topics) != 1 {
			t.Errorf("%q: %+v", c.message, r)
		}
	}
}

func TestLoginOutOfTurn(t *testing.T) {
	t.Parallel()
	_, w := login(t)
	req := kmsg.NewPtrSASLAuthenticateRequest()
	req.SASLAuthBytes = []byte("\x00ann\x00tea")
	if r := ask[*kmsg.SASLAuthenticateResponse](w, 2, req); r.ErrorCode !=
		kerr.IllegalSaslState.Code {
		t.Errorf("without a mechanism: %+v", r)
	}
	w.ended()
	w = dial(t, start(t, config(orders(t))))
	if r := handshake(w, "PLAIN"); r.ErrorCode != kerr.IllegalSaslState.Code {
		t.Errorf("where no login is wanted: %+v", r)
	}
}

// TestBareLogins: after version 0 of the handshake, which librdkafka wants to see listed whatever
// it uses, the login comes without a header, and the answer to it is empty.
func TestBareLogins(t *testing.T) {
	t.Parallel()
	for message, ok := range map[string]bool{"\x00ann\x00tea": true, "\x00ann\x00coffee": false,
		"": false, "\x00\x00": false} {
		_, w := login(t)
		req := kmsg.NewPtrSASLHandshakeRequest()
		req.Mechanism = "PLAIN"
		if r := ask[*kmsg.SASLHandshakeResponse](w, 0, req); r.ErrorCode != 0 {
			t.Fatalf("%+v", r)
		}
		if _, err := w.Write(frame([]byte(message))); err != nil {
			t.Fatal(err)
		}
		if !ok {
			w.ended()
			continue
		}
		if body := w.frame(); len(body) > 0 {
			t.Errorf("an answer of %d bytes, want none", len(body))
		}
		if r := ask[*kmsg.MetadataResponse](w, 12, kmsg.NewPtrMetadataRequest()); len(r.Topics) != 1 {
			t.Errorf("%q: %+v", message, r)
		}
	}
}

// TestLargeRequestsWaitForTheLogin: who has not logged in cannot make the server hold much.
func TestLargeRequestsWaitForTheLogin(t *testing.T) {
	t.Parallel()
	e, w := login(t)
	if _, err := w.Write(frame(bytes.Repeat([]byte{0}, 20<<10))[:100]); err != nil {
		t.Fatal(err)
	}
	w.ended()
	e.finish()
	if len(e.errs) != 1 || !strings.Contains(e.errs[0].Error(),
		"20480 bytes, where 8 to 16384 are allowed") {
		t.Errorf("%v", e.errs)
	}
}
