package interop_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
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
	k.create("salaries", 1, 1, smallSegments())
	_, stop := k.produce("salaries", 300, 1500)
	stop()
	_, stop = k.produce("orders", 300, 1500)
	stop()
	allow(t, k, "orders")
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
		hidden(t, r)
		d := r.daemon()
		k.progress(mechanism+": the broker drops something", beyond)
		refused(t, r, k, "salaries", "broker")
		eventually(t, "status names the topic", func() error { return r.says("broker", "salaries") })
		d.stop()
		_, stop := k.produce("orders", 300, 1500)
		stop()
		var err error
		if beyond, _, err = k.bounds("orders", 0); err != nil {
			t.Fatal(err)
		}
	}
}

// hidden wants check to name the topic that tierd may not describe, and to find nothing else.
func hidden(t *testing.T, r *rig) {
	t.Helper()
	stdout, stderr, code := r.tierd("check")
	said := stdout + stderr
	if code != 1 || !strings.Contains(said, "describe configs of the topic salaries") ||
		strings.Contains(said, "orders") {
		t.Errorf("exit code %d, want 1 and the topic salaries:\n%s", code, said)
	}
}

// allow lets the user tierd do with the topic what docs/kafka.md says that it must be allowed.
func allow(t *testing.T, k *kafka, topic string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	acls := kadm.NewACLs().Topics(topic).Allow("User:tierd").AllowHosts("*").
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
// compacted topic that is named; one that is not named is left alone, and one that was compacted
// only once is tiered.
func TestTopicSettings(t *testing.T) {
	t.Parallel()
	k := startKafka(t, kafkaConfig{nodes: 1, extra: []string{"log.cleaner.backoff.ms=500"}})
	k.create("hasty", 1, 1, smallSegments("retention.ms=3600000"))
	k.create("compacted", 1, 1, smallSegments("cleanup.policy=compact"))
	k.create("once", 1, 1, smallSegments("cleanup.policy=compact", "min.cleanable.dirty.ratio=0"))
	_, stop := k.produce("compacted", 100, 1500)
	stop()
	onceCompacted(t, k)
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
	r.configure(config("defaults: {table.log.local-ttl: 1d}"))
	d := r.daemon()
	eventually(t, "status has the alarm", func() error {
		return r.says("broker-retention", "hasty")
	})
	eventually(t, "the compacted topic is skipped, the other one copied", func() error {
		skipped, err := r.log("compacted/0")
		if err != nil {
			return err
		}
		once, err := r.log("once/0")
		if err != nil || once.CopiedOffset == nil {
			return errors.Join(err, fmt.Errorf("%s, %s", skipped, once))
		}
		for _, why := range skipped.Reasons {
			if why.Code == "compacted" && !why.Alarm && *once.CopiedOffset > 100 {
				return nil
			}
		}
		return fmt.Errorf("%s, %s", skipped, once)
	})
	d.stop()
	r.configure(config("defaults: {table.log.local-ttl: 1h}"))
	r.must("check")
}

// onceCompacted has the broker compact the topic once, and then no more.
func onceCompacted(t *testing.T, k *kafka) {
	t.Helper()
	_, stop := k.produce("once", 200, 1500)
	stop()
	at := filepath.Join(k.nodes[0].data(), "cleaner-offset-checkpoint")
	eventually(t, "the broker has compacted it", func() error {
		text, err := os.ReadFile(at)
		if err == nil && !strings.Contains(string(text), "once 0 ") {
			err = fmt.Errorf("%q", text)
		}
		return err
	})
	value := "delete"
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := k.admin().AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "cleanup.policy",
		Value: &value}}, "once")
	if err != nil {
		t.Fatal(err)
	}
	_, stop = k.produce("once", 100, 1500)
	stop()
}

// says is an error unless the only source has an alarm of the code, about what the text has.
func (r *rig) says(code, text string) error {
	r.t.Helper()
	st, err := r.status()
	if err != nil {
		return err
	}
	for _, why := range st.Sources[0].Reasons {
		if why.Code == code && why.Alarm && strings.Contains(why.Text, text) {
			return nil
		}
	}
	return fmt.Errorf("%+v", st.Sources)
}
