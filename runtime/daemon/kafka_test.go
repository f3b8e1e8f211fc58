package daemon

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"golang.org/x/crypto/bcrypt"

	"github.com/tierd/tierd/runtime/kafka/kafkatest"
	"github.com/tierd/tierd/runtime/tier"
)

const endpointSite = `
data_dir: data
interval: 10ms
sources: [{name: broker, layout: kafka, path: kafka, local_delete: unlink}]
bucket: {type: FILESYSTEM, config: {directory: bucket}}
defaults: {table.log.ttl: 0, table.log.local-ttl: 1ms}
limits: {max_delete_segments: 100000}
copy: {workers: 8}
kafka: {listen: "127.0.0.1:0"%s}
`

// kafkaLogs makes the site's source a copy of a real broker's directory, without its broker.
func (s *site) kafkaLogs(set, more string) {
	s.t.Helper()
	dir := filepath.Join(s.dir, "kafka")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("../../testdata/kafka", set))); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "expected.json")); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".lock"), nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.configure(fmt.Sprintf(endpointSite, more))
}

// endpoint waits until the daemon is ready, and gives the address of the Kafka endpoint.
func (s *site) endpoint(r *running) (addr string) {
	s.t.Helper()
	s.until("the Kafka endpoint is ready", func() bool {
		st, err := r.Status(s.t.Context())
		if err == nil && st.Ready && st.Kafka != nil {
			addr = *st.Kafka
		}
		return addr != ""
	})
	return addr
}

// tiered waits until all of the log but its last segment is in the store alone.
func (s *site) tiered(r *running, id tier.LogID) {
	s.t.Helper()
	s.until(id.String()+" is copied, and deleted where it was", func() bool {
		files, err := filepath.Glob(filepath.Join(s.dir, "kafka", id.Table+"-"+id.Name, "*.log"))
		return err == nil && len(files) == 1
	})
}

// TestKafkaClientsReadBothTiers copies real logs to the store, deletes what is closed of them, and
// lets a real client read all of it from the beginning to the end. What it gets is what a consumer
// of Kafka's own got from the broker.
func TestKafkaClientsReadBothTiers(t *testing.T) {
	t.Parallel()
	for _, set := range []string{"v4", "magic0", "magic1"} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.kafkaLogs(set, "")
			r := s.run(s.options())
			addr := s.endpoint(r)
			uncommitted, committed := map[tier.LogID]kafkatest.Digest{},
				map[tier.LogID]kafkatest.Digest{}
			starts := map[string]map[int32]kgo.Offset{}
			for _, p := range kafkatest.Expected(t, filepath.Join("../../testdata/kafka", set)) {
				if set == "magic0" && p.Topic == "codec-lz4" {
					continue // the client cannot read it, from a broker either
				}
				tiers := !strings.Contains(p.Topic, "compacted")
				if tiers && p.LogStart < p.HighWatermark {
					s.tiered(r, p.ID())
				}
				uncommitted[p.ID()], committed[p.ID()] = p.ReadUncommitted, p.ReadCommitted
				if starts[p.Topic] == nil {
					starts[p.Topic] = map[int32]kgo.Offset{}
				}
				// The broker's own start can lie within a segment. Records below it are in the copy
				// too, since files are copied whole.
				starts[p.Topic][p.Partition] = kgo.NewOffset().At(int64(p.LogStart))
			}
			read := func(want map[tier.LogID]kafkatest.Digest, opts ...kgo.Opt) {
				cl, err := kgo.NewClient(append(opts, kgo.SeedBrokers(addr),
					kgo.FetchMaxWait(50*time.Millisecond), kgo.ConsumePartitions(starts))...)
				if err != nil {
					t.Fatal(err)
				}
				for id, got := range kafkatest.Consume(t, cl, want) {
					if got != want[id] {
						t.Errorf("%v: got %+v, want %+v", id, got, want[id])
					}
				}
			}
			read(uncommitted)
			read(committed, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
			if err := r.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestKafkaClientsSeeWhatComes lets a client wait at the end of a log that grows.
func TestKafkaClientsSeeWhatComes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.kafkaLogs("v4", "")
	dir := filepath.Join(s.dir, "kafka")
	// The last of three segments comes later, and with it the high watermark.
	last := filepath.Join(dir, "transactions-0", "00000000000000000208.log")
	content, err := os.ReadFile(last)
	if err != nil {
		t.Fatal(err)
	}
	marks := filepath.Join(dir, "replication-offset-checkpoint")
	high, err := os.ReadFile(marks)
	if err != nil {
		t.Fatal(err)
	}
	mark := func(n int) {
		text := strings.Replace(string(high), "transactions 0 211", fmt.Sprint("transactions 0 ", n), 1)
		// As a broker does: who reads it meanwhile must not find it empty.
		if err := os.WriteFile(marks+".tmp", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(marks+".tmp", marks); err != nil {
			t.Fatal(err)
		}
	}
	mark(208)
	if err := os.Truncate(last, 0); err != nil {
		t.Fatal(err)
	}
	addr := s.endpoint(s.run(s.options()))
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.KeepControlRecords(),
		kgo.FetchMaxWait(20*time.Second), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
			"transactions": {0: kgo.NewOffset().At(208)}}))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := os.WriteFile(last, content, 0o600); err != nil {
		t.Fatal(err)
	}
	mark(211)
	if got := cl.PollFetches(ctx); got.NumRecords() != 3 {
		t.Errorf("%d records, %v, want the 3 that came\n%s", got.NumRecords(), got.Errors(),
			s.log.String())
	}
}

// TestKafkaUsers lets in who is in the file now.
func TestKafkaUsers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.kafkaLogs("v4-live", `, users_file: users.yaml`)
	users := func(lines string) { s.put("users.yaml", lines) }
	hash, err := bcrypt.GenerateFromPassword([]byte("tea"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	users("ann: " + string(hash) + "\n")
	addr := s.endpoint(s.run(s.options()))
	ping := func(user, password string) error {
		cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RetryTimeout(time.Second),
			kgo.SASL(plain.Auth{User: user, Pass: password}.AsMechanism()))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		return cl.Ping(ctx)
	}
	if err := ping("ann", "tea"); err != nil {
		t.Errorf("ann: %v", err)
	}
	for _, x := range [][2]string{{"ann", "coffee"}, {"bob", "nobody"}, {"bob", "tea"}} {
		if ping(x[0], x[1]) == nil {
			t.Errorf("%s is let in with %s", x[0], x[1])
		}
	}
	users("bob: " + string(hash) + "\ncid: " + string(hash) + "\n")
	if err := ping("bob", "tea"); err != nil {
		t.Errorf("bob, once he is in the file: %v", err)
	}
	if ping("ann", "tea") == nil {
		t.Error("ann is let in, and no longer in the file")
	}
	users("bob: plain text\n")
	if ping("bob", "tea") == nil {
		t.Error("bob is let in by a file that is not right")
	}
	if !strings.Contains(s.log.String(), `the user \"bob\" has no bcrypt hash`) {
		t.Errorf("the log does not say what is wrong with the file:\n%s", s.log.String())
	}
}

// TestKafkaWrongStarts are errors before anything is done.
func TestKafkaWrongStarts(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for more, want := range map[string]string{
		`, users_file: none.yaml`:                       "kafka.users_file: ",
		`, tls: {cert_file: none.pem, key_file: k.pem}`: "kafka.tls: ",
		"":                             "kafka.listen: ",
		`, users_file: passwords.yaml`: `the user "ann" has no bcrypt hash; make one with htpasswd`,
		`, users_file: pipe`:           "pipe: it is no regular file, and nothing else is read",
		`, tls: {cert_file: pipe, key_file: pipe}`: "pipe: it is no regular file, and nothing else",
	} {
		s := newSite(t)
		s.kafkaLogs("v4-live", more)
		s.put("passwords.yaml", "ann: tea\n")
		if err := syscall.Mkfifo(filepath.Join(s.dir, "pipe"), 0o600); err != nil {
			t.Fatal(err)
		}
		if more == "" {
			s.configure(strings.Replace(endpointSite, `127.0.0.1:0"%s`, taken.Addr().String()+`"`, 1))
		}
		err := Run(t.Context(), s.options(), quietly, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", more, err, want)
		}
	}
}

// TestKafkaTurnsAway who comes when too many are there, and cuts off who sends nonsense; each is
// one line of the log, and counted.
func TestKafkaTurnsAway(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.kafkaLogs("v4-live", `, max_connections: 1`)
	opts := s.options()
	addr := s.endpoint(s.run(opts))
	first, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s.until("one is connected", func() bool {
		return s.metric(opts, "tierd_kafka_connections") == 1
	})
	second, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := second.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes for one too many", n)
	}
	if _, err := first.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	s.until("the first is cut off", func() bool {
		return s.metric(opts, "tierd_kafka_connections_cut_total") == 1 &&
			s.metric(opts, "tierd_kafka_connections") == 0
	})
	if n := s.metric(opts, "tierd_kafka_connections_refused_total"); n != 1 {
		t.Errorf("%v are counted as turned away, want 1", n)
	}
	for _, want := range []string{"a Kafka client is turned away", "the client speaks HTTP"} {
		if n := strings.Count(s.log.String(), want); n != 1 {
			t.Errorf("%q stands %d times in the log, want once", want, n)
		}
	}
}

// metric is the value of one without labels.
func (s *site) metric(opts Options, name string) float64 {
	s.t.Helper()
	families, err := opts.Registry.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			m := f.GetMetric()[0]
			return m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	s.t.Fatalf("there is no metric %s", name)
	return 0
}
