package broker_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tierd/tierd/runtime/broker"
)

// certificate makes one for 127.0.0.1 that is its own authority, and writes it in PEM.
func certificate(t *testing.T, dir string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "k"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<34, 0), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, bytes []byte) []byte {
		text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes})
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
		return text
	}
	cert, err := tls.X509KeyPair(write("cert.pem", "CERTIFICATE", der),
		write("key.pem", "PRIVATE KEY", private))
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func ping(t *testing.T, c broker.Config) error {
	t.Helper()
	opts, err := broker.Options(c)
	if err != nil {
		return err
	}
	cl, err := kgo.NewClient(append(opts, kgo.RequestRetries(0))...)
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return cl.Ping(ctx)
}

// TestOptions connects in every way that tierd knows, to a server that wants exactly that.
func TestOptions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert := certificate(t, dir)
	secret := filepath.Join(dir, "password")
	if err := os.WriteFile(secret, []byte("s3cr3t\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	encrypted := broker.TLS{Enable: true, CAFile: filepath.Join(dir, "cert.pem")}
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(),
			kfake.Superuser(mechanism, "tierd", "s3cr3t"),
			kfake.TLS(&tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		good := broker.Config{Bootstrap: c.ListenAddrs(), TLS: encrypted,
			SASL: broker.SASL{Mechanism: mechanism, Username: "tierd", PasswordFile: secret}}
		if err := ping(t, good); err != nil {
			t.Errorf("%s: %v", mechanism, err)
		}
		for name, spoil := range map[string]func(*broker.Config){
			"wrong password": func(c *broker.Config) { c.SASL.PasswordFile, c.SASL.Password = "", "x" },
			"wrong user":     func(c *broker.Config) { c.SASL.Username = "nobody" },
			"nobody":         func(c *broker.Config) { c.SASL = broker.SASL{} },
			"not encrypted":  func(c *broker.Config) { c.TLS = broker.TLS{} },
			"not trusted":    func(c *broker.Config) { c.TLS.CAFile = "" },
			"other name":     func(c *broker.Config) { c.TLS.ServerName = "elsewhere" },
		} {
			bad := good
			spoil(&bad)
			if err := ping(t, bad); err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s, %s: %v", mechanism, name, err)
			}
		}
	}
}

// TestOptionsNameWhatIsMissing: what tierd brings along and cannot read is named, and nobody is
// asked.
func TestOptionsNameWhatIsMissing(t *testing.T) {
	t.Parallel()
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*broker.Config){
		"ca_file missing": func(c *broker.Config) { c.TLS.CAFile = filepath.Join(dir, "none") },
		"ca_file empty":   func(c *broker.Config) { c.TLS.CAFile = empty },
		"cert_file":       func(c *broker.Config) { c.TLS.CertFile, c.TLS.KeyFile = empty, empty },
	} {
		bad := broker.Config{Bootstrap: c.ListenAddrs(), TLS: broker.TLS{Enable: true}}
		change(&bad)
		if err := ping(t, bad); !errors.Is(err, broker.ErrSetup) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := broker.Options(broker.Config{SASL: broker.SASL{Mechanism: "GSSAPI"}}); err == nil {
		t.Error("GSSAPI is taken")
	}
}
