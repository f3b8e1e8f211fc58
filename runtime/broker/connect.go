package broker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/tierd/tierd/runtime/vfs"
)

// ErrSetup is wrapped by errors about what tierd itself brings along: a certificate, a password. No
// request was made.
var ErrSetup = errors.New("broker: setup")

// How long tierd waits for brokers. A broker that is down must not look like one that is slow.
const (
	dialTimeout    = 10 * time.Second
	requestTimeout = 20 * time.Second
	retryTimeout   = 30 * time.Second
)

// Config is how a cluster is reached.
type Config struct {
	Bootstrap []string // host:port
	TLS       TLS
	SASL      SASL
}

// TLS is how connections are encrypted. The files are read anew for each connection.
type TLS struct {
	Enable     bool
	CAFile     string // PEM; empty: the system's authorities
	CertFile   string // PEM, the client's certificate; may be empty
	KeyFile    string // PEM
	ServerName string // empty: the host that is dialled
}

// SASL is who the client says that it is; nobody where Mechanism is empty.
type SASL struct {
	Mechanism    string // PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512
	Username     string
	Password     string
	PasswordFile string // read for each connection, where Password is empty
}

// Options are those of a client of the cluster. Making it connects to nobody.
func Options(c Config) ([]kgo.Opt, error) {
	opts := []kgo.Opt{
		kgo.SeedBrokers(c.Bootstrap...),
		kgo.ClientID("tierd"),
		kgo.DialTimeout(dialTimeout),
		kgo.RequestTimeoutOverhead(requestTimeout),
		kgo.RetryTimeout(retryTimeout),
		kgo.DisableClientMetrics(),
	}
	if c.TLS.Enable {
		opts = append(opts, kgo.Dialer(c.TLS.dial))
	}
	mechanism, err := c.SASL.mechanism()
	if err != nil || mechanism == nil {
		return opts, err
	}
	return append(opts, kgo.SASL(mechanism)), nil
}

// dial connects with the certificates that are there now.
func (t TLS) dial(ctx context.Context, network, host string) (net.Conn, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if cfg.ServerName == "" {
		name, _, err := net.SplitHostPort(host)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrSetup, err)
		}
		cfg.ServerName = name
	}
	if t.CAFile != "" {
		pem, err := vfs.ReadRegular(t.CAFile, PEMBytesMax)
		if err != nil {
			return nil, fmt.Errorf("%w: ca_file: %w", ErrSetup, err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%w: ca_file: %s: no certificate in PEM", ErrSetup, t.CAFile)
		}
	}
	if t.CertFile != "" {
		cert, err := KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("%w: cert_file and key_file: %w", ErrSetup, err)
		}
		cfg.Certificates = []tls.Certificate{cert}
	}
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: dialTimeout}, Config: cfg}
	return d.DialContext(ctx, network, host)
}

// The bounds of files with secrets.
const (
	PEMBytesMax      = 4 << 20 // of certificates or of a key
	passwordBytesMax = 64 << 10
)

// KeyPair reads a certificate and its key, in PEM. As every file that a configuration names they
// are bounded, and a pipe in the place of one holds up nobody.
func KeyPair(certFile, keyFile string) (tls.Certificate, error) {
	cert, err := vfs.ReadRegular(certFile, PEMBytesMax)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := vfs.ReadRegular(keyFile, PEMBytesMax)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

// mechanism is the client's side of the authentication; nil where there is none.
func (s SASL) mechanism() (sasl.Mechanism, error) {
	auth := func(context.Context) (scram.Auth, error) {
		pass, err := s.password()
		return scram.Auth{User: s.Username, Pass: pass}, err
	}
	switch s.Mechanism {
	case "":
		return nil, nil
	case "PLAIN":
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			pass, err := s.password()
			return plain.Auth{User: s.Username, Pass: pass}, err
		}), nil
	case "SCRAM-SHA-256":
		return scram.Sha256(auth), nil
	case "SCRAM-SHA-512":
		return scram.Sha512(auth), nil
	}
	return nil, fmt.Errorf("sasl mechanism %q: want PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512",
		s.Mechanism)
}

func (s SASL) password() (string, error) {
	if s.PasswordFile == "" {
		return s.Password, nil
	}
	text, err := vfs.ReadRegular(s.PasswordFile, passwordBytesMax)
	if err != nil {
		return "", fmt.Errorf("%w: password_file: %w", ErrSetup, err)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), nil
}
