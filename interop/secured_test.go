package interop_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// certificate makes one for 127.0.0.1 that is its own authority: key and certificate in one file of
// PEM, as a broker reads it, and the certificate alone in another.
func certificate(t *testing.T, dir string) (both, alone string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kafka"},
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
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	secret := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	both, alone = filepath.Join(dir, "both.pem"), filepath.Join(dir, "ca.pem")
	for path, text := range map[string][]byte{both: append(secret, cert...), alone: cert} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return both, alone
}

// TestSecured: a broker that wants TLS and a name, and lets each name do what it may. tierd says
// what was wrong, by check and in status, and nothing is deleted; with the right ones it is.
func TestSecured(t *testing.T) {
	t.Parallel()
	dir, secure := t.TempDir(), freeAddress(t)
	both, ca := certificate(t, dir)
	jaas := func(mechanism, module, rest string) string {
		return "listener.name.secure." + mechanism + ".sasl.jaas.config=org.apache.kafka.common." +
			"security." + module + " required" + rest + ";"
	}
	k := startKafka(t, kafkaConfig{nodes: 1, secure: secure, extra: []string{
		"ssl.keystore.type=PEM", "ssl.keystore.location=" + both,
		"sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
		jaas("plain", "plain.PlainLoginModule", ` user_tierd="s3cr3t" user_stranger="s3cr3t"`),
		jaas("scram-sha-256", "scram.ScramLoginModule", ""),
		jaas("scram-sha-512", "scram.ScramLoginModule", ""),
		"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users=User:ANONYMOUS"}})
	k.create("orders", 1, 1, smallSegments())
	_, stop := k.produce("orders", 300, 1500)
	stop()
	allow(t, k)
	source := func(mechanism, user, password, ca string) string {
		return fmt.Sprintf("sources: [{name: broker, layout: kafka, path: %s,\n"+
			"  local_delete: delete-records, kafka: {bootstrap: %q, tls: {ca_file: %q},\n"+
			"  sasl: {mechanism: %s, username: %s, password: %s}}}]", k.nodes[0].data(), secure, ca,
			mechanism, user, password)
	}
	for name, c := range map[string]struct{ source, says string }{
		"password":  {source("SCRAM-SHA-256", "tierd", "wrong", ca), "SASL_AUTHENTICATION_FAILED"},
		"user":      {source("PLAIN", "nobody", "s3cr3t", ca), "SASL_AUTHENTICATION_FAILED"},
		"authority": {source("PLAIN", "tierd", "s3cr3t", ""), "certificate"},
		"stranger":  {source("PLAIN", "stranger", "s3cr3t", ca), "AUTHORIZATION_FAILED"},
	} {
		s, r := filesystem(t), newRig(t)
		text := strings.ReplaceAll(c.source, `tls: {ca_file: ""}`, "tls: {}")
		r.configure(text + "\nbucket: " + s.bucket("", credentials{}) +
			"\nhttp: {listen: off}\ninterval: 500ms\n" + shortTTL)
		stdout, stderr, code := r.tierd("check")
		if code != 1 || !strings.Contains(stdout+stderr, c.says) ||
			strings.Contains(stdout+stderr, "s3cr3t") {
			t.Errorf("%s: exit code %d, want 1 and %s:\n%s%s", name, code, c.says, stdout, stderr)
		}
		d := r.daemon()
		refused(t, r, k, "orders", "broker")
		d.stop()
	}
	beyond := int64(0)
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		s, r := filesystem(t), newRig(t)
		r.configure(source(mechanism, "tierd", "s3cr3t", ca) + "\nbucket: " +
			s.bucket("", credentials{}) + "\nhttp: {listen: off}\ninterval: 500ms\n" + shortTTL)
		r.must("check")
		d := r.daemon()
		eventually(t, mechanism+": the broker drops something", func() error {
			start, _, err := k.bounds("orders", 0)
			if err == nil && start <= beyond {
				err = fmt.Errorf("the log begins at %d", start)
			}
			beyond = max(beyond, start)
			return err
		})
		d.stop()
		_, stop := k.produce("orders", 300, 1500)
		stop()
		var err error
		if beyond, _, err = k.bounds("orders", 0); err != nil {
			t.Fatal(err)
		}
	}
}

// allow lets the user tierd do what docs/kafka.md says that it must be allowed.
func allow(t *testing.T, k *kafka) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	acls := kadm.NewACLs().Topics("*").Allow("User:tierd").AllowHosts("*").
		Operations(kadm.OpDescribe, kadm.OpDescribeConfigs, kadm.OpDelete).
		ResourcePatternType(kadm.ACLPatternLiteral)
	results, err := k.admin().CreateACLs(ctx, acls)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
}

// TestTopicSettings: check and status name a broker's retention that is shorter than tierd's, and a
// compacted topic that is named; one that was compacted only once is tiered.
func TestTopicSettings(t *testing.T) {
	t.Parallel()
	k := newKafka(t, 1)
	k.create("hasty", 1, 1, smallSegments("retention.ms=3600000"))
	k.create("compacted", 1, 1, smallSegments("cleanup.policy=compact"))
	s, r := filesystem(t), newRig(t)
	config := func(more string) string {
		return fmt.Sprintf("sources: [{name: broker, layout: kafka, path: %s, "+
			"kafka: {bootstrap: %q}}]\nbucket: %s\nhttp: {listen: off}\ninterval: 500ms\n%s",
			k.nodes[0].data(), k.bootstrap(), s.bucket("", credentials{}), more)
	}
	r.configure(config("defaults: {table.log.local-ttl: 1d}\n" +
		"tables: [{name: compacted}, {name: '*'}]"))
	stdout, stderr, code := r.tierd("check")
	for _, want := range []string{"retention.ms of the topic hasty is 1h",
		"topic compacted is compacted"} {
		if code != 1 || !strings.Contains(stdout+stderr, want) {
			t.Errorf("exit code %d, want 1 and %q:\n%s%s", code, want, stdout, stderr)
		}
	}
	d := r.daemon()
	eventually(t, "status has the alarm", func() error {
		st, err := r.status()
		if err != nil {
			return err
		}
		for _, why := range st.Sources[0].Reasons {
			if why.Code == "broker-retention" && why.Alarm && strings.Contains(why.Text, "hasty") {
				return nil
			}
		}
		return fmt.Errorf("%+v", st.Sources)
	})
	d.stop()
	r.configure(config("defaults: {table.log.local-ttl: 1h}"))
	r.must("check")
}
