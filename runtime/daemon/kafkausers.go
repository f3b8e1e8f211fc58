package daemon

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/bcrypt"

	"github.com/tierd/tierd/runtime/broker"
	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/vfs"
)

// kafkaUsersBytesMax bounds the file of users.
const kafkaUsersBytesMax = 1 << 20

// kafkaUsers are who may read through the Kafka endpoint: a file of names and bcrypt hashes. It is
// read again when it has changed, so that a user is added or barred without a restart.
type kafkaUsers struct {
	path string
	warn func(error)

	mu     sync.Mutex
	hashes map[string]string
	// decoy is the dearest of the hashes. Names that are not there are compared with it, so that they
	// take as long as others.
	decoy   string
	modTime time.Time
	size    int64
}

// openKafkaUsers reads the file.
func openKafkaUsers(path string, warn func(error)) (*kafkaUsers, error) {
	u := &kafkaUsers{path: path, warn: warn}
	_, _, err := u.current()
	return u, err
}

// current is the file's content as it is now, and the decoy.
func (u *kafkaUsers) current() (hashes map[string]string, decoy string, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	info, err := os.Stat(u.path)
	if err != nil {
		return nil, "", fmt.Errorf("kafka.users_file: %w", err)
	}
	if u.hashes != nil && info.ModTime().Equal(u.modTime) && info.Size() == u.size {
		return u.hashes, u.decoy, nil
	}
	text, err := vfs.ReadRegular(u.path, kafkaUsersBytesMax)
	if err != nil {
		return nil, "", fmt.Errorf("kafka.users_file: %w", err)
	}
	hashes = map[string]string{}
	if err := yaml.Unmarshal(text, &hashes); err != nil {
		return nil, "", fmt.Errorf("kafka.users_file: %s: %w; want lines of NAME: BCRYPT-HASH", u.path,
			err)
	}
	most := 0
	for name, hash := range hashes {
		cost, err := bcrypt.Cost([]byte(hash))
		if err != nil || name == "" {
			return nil, "", fmt.Errorf("kafka.users_file: %s: the user %q has no bcrypt hash; "+
				"make one with htpasswd -nB USER", u.path, name)
		}
		if cost > most {
			most, decoy = cost, hash
		}
	}
	u.hashes, u.decoy, u.modTime, u.size = hashes, decoy, info.ModTime(), info.Size()
	return hashes, decoy, nil
}

// check reports whether the password is that of the user. Where the file cannot be read, nobody is
// let in.
func (u *kafkaUsers) check(user, password string) bool {
	hashes, decoy, err := u.current()
	if err != nil {
		u.warn(err)
		return false
	}
	hash, known := hashes[user]
	if !known {
		hash = decoy
	}
	return bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)) == nil && known
}

// kafkaTLS is how connections are encrypted; nil where they are not. The files are read for each
// connection.
func kafkaTLS(t config.KafkaTLS) (*tls.Config, error) {
	if !t.Enabled() {
		return nil, nil
	}
	load := func() (*tls.Config, error) {
		cert, err := broker.KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("kafka.tls: %w", err)
		}
		c := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
		if t.ClientCAFile == "" {
			return c, nil
		}
		pem, err := vfs.ReadRegular(t.ClientCAFile, broker.PEMBytesMax)
		if err != nil {
			return nil, fmt.Errorf("kafka.tls: %w", err)
		}
		c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !c.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("kafka.tls: " + t.ClientCAFile + ": no certificate is in it")
		}
		return c, nil
	}
	if _, err := load(); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return load() }}, nil
}
