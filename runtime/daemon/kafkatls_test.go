package daemon

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{t: t, key: key}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true,
		Subject:               pkix.Name{CommonName: "authority"}, // OpenSSL wants one
		BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// sign makes a certificate of localhost, and its key, as PEM.
func (a *authority) sign(serial int64) (cert, key string) {
	a.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), DNSNames: []string{"localhost"},
		NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	return block("CERTIFICATE", der), block("PRIVATE KEY", raw)
}

// TestKafkaTLS encrypts, wants clients' certificates, and takes a renewed one without a restart.
func TestKafkaTLS(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.kafkaLogs("v4-live",
		`, tls: {cert_file: cert.pem, key_file: key.pem, client_ca_file: ca.pem}`)
	ca := newAuthority(t)
	renew := func(serial int64) {
		cert, key := ca.sign(serial)
		s.put("cert.pem", cert)
		s.put("key.pem", key)
	}
	renew(2)
	s.put("ca.pem", block("CERTIFICATE", ca.cert.Raw))
	_, port, err := net.SplitHostPort(s.endpoint(s.run(s.options())))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	var seen *big.Int // the serial number of the endpoint's certificate
	ping := func(of *authority) error {
		cfg := &tls.Config{RootCAs: roots, VerifyConnection: func(c tls.ConnectionState) error {
			seen = c.PeerCertificates[0].SerialNumber
			return nil
		}}
		if of != nil {
			cert, err := tls.X509KeyPair(pair(of.sign(9)))
			if err != nil {
				t.Fatal(err)
			}
			cfg.Certificates = []tls.Certificate{cert}
		}
		cl, err := kgo.NewClient(kgo.SeedBrokers("localhost:"+port), kgo.DialTLSConfig(cfg),
			kgo.RetryTimeout(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		return cl.Ping(ctx)
	}
	if err := ping(ca); err != nil || seen.Int64() != 2 {
		t.Errorf("%v, certificate %v\n%s", err, seen, s.log.String())
	}
	if ping(nil) == nil || ping(newAuthority(t)) == nil {
		t.Error("who shows no certificate, or one of somebody else, is let in")
	}
	renew(3)
	if err := ping(ca); err != nil || seen.Int64() != 3 {
		t.Errorf("after it was renewed: %v, certificate %v", err, seen)
	}
}

func pair(cert, key string) ([]byte, []byte) { return []byte(cert), []byte(key) }
