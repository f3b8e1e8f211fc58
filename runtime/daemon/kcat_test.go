//go:build clients

package daemon

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/tierd/tierd/runtime/kafka/kafkatest"
)

// TestKcatReadsBothTiers does with kcat, and so with librdkafka, what TestKafkaClientsReadBothTiers
// does with franz-go. It wants kcat on the PATH: see `make clients`.
func TestKcatReadsBothTiers(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("kcat"); err != nil {
		t.Fatal("kcat is missing: apt-get install kcat")
	}
	for _, set := range []string{"v4", "magic0", "magic1"} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.kafkaLogs(set, "")
			r := s.run(s.options())
			addr := s.endpoint(r)
			for _, p := range kafkatest.Expected(t, filepath.Join("../../testdata/kafka", set)) {
				if p.LogStart == p.HighWatermark {
					continue
				}
				if !strings.Contains(p.Topic, "compacted") {
					s.tiered(r, p.ID())
				}
				compareKcat(t, &p, "read_uncommitted", kcat(t, addr, &p, "read_uncommitted"),
					p.ReadUncommitted)
				compareKcat(t, &p, "read_committed", kcat(t, addr, &p, "read_committed"),
					p.ReadCommitted)
			}
		})
	}
}

// TestKcatLogsIn over TLS, as a user.
func TestKcatLogsIn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.kafkaLogs("v4-live", `, tls: {cert_file: cert.pem, key_file: key.pem}, users_file: users.yaml`)
	ca := newAuthority(t)
	cert, key := ca.sign(2)
	s.put("cert.pem", cert)
	s.put("key.pem", key)
	s.put("ca.pem", block("CERTIFICATE", ca.cert.Raw))
	hash, err := bcrypt.GenerateFromPassword([]byte("tea"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	s.put("users.yaml", "ann: "+string(hash)+"\n")
	_, port, err := net.SplitHostPort(s.endpoint(s.run(s.options())))
	if err != nil {
		t.Fatal(err)
	}
	for password, ok := range map[string]bool{"tea": true, "coffee": false} {
		out, err := exec.CommandContext(t.Context(), "kcat", "-b", "localhost:"+port, "-L", "-m", "5",
			"-X", "security.protocol=SASL_SSL", "-X", "sasl.mechanism=PLAIN", "-X", "sasl.username=ann",
			"-X", "sasl.password="+password, "-X", "ssl.ca.location="+filepath.Join(s.dir, "ca.pem"),
		).CombinedOutput()
		if (err == nil) != ok || strings.Contains(string(out), `topic "events"`) != ok {
			t.Errorf("password %s: %v\n%s", password, err, out)
		}
	}
}

// compareKcat compares what kcat read with what a consumer of Kafka's own got from the broker. Of
// headers kcat prints what cannot be read back.
func compareKcat(t *testing.T, p *kafkatest.Partition, how string, got, want kafkatest.Digest) {
	t.Helper()
	if strings.HasPrefix(p.Topic, "headers") {
		got.SHA256, want.SHA256 = "", ""
	}
	if got != want {
		t.Errorf("%v %s: got %+v, want %+v", p.ID(), how, got, want)
	}
}

// kcat reads a partition from its beginning to its end.
func kcat(t *testing.T, addr string, p *kafkatest.Partition, isolation string) kafkatest.Digest {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "kcat", "-b", addr, "-C", "-q", "-e", "-t", p.Topic,
		"-p", fmt.Sprint(p.Partition), "-o", fmt.Sprint(p.LogStart), "-X", "check.crcs=true",
		"-X", "isolation.level="+isolation, "-f", "%o %T %K %S %k%s")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kcat %v: %v\n%s", p.ID(), err, errs.String())
	}
	var seq kafkatest.Sequence
	for r := bufio.NewReader(bytes.NewReader(out)); ; {
		var head [4]int64 // offset, timestamp, and the lengths of key and value
		for i := range head {
			text, err := r.ReadString(' ')
			if err == io.EOF && text == "" && i == 0 {
				return seq.Digest()
			}
			if head[i], err = strconv.ParseInt(strings.TrimSuffix(text, " "), 10, 64); err != nil {
				t.Fatalf("kcat %v: %v", p.ID(), err)
			}
		}
		if head[1] == 0 && p.Topic != "odd-times" {
			head[1] = -1 // what librdkafka makes of a record without a timestamp
		}
		seq.Add(head[0], head[1], take(t, r, head[2]), take(t, r, head[3]), nil)
	}
}

// take reads n bytes; nil where n is negative.
func take(t *testing.T, r io.Reader, n int64) []byte {
	t.Helper()
	if n < 0 {
		return nil
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		t.Fatal(err)
	}
	return b
}
