//go:build measure

package interop_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// What each log of the broker has: so many full segments of so many bytes, and the beginning of
// another one.
const (
	logSegments  = 8
	segmentBytes = 64 << 20
)

// Offsets that mean something else in ListOffsets. Source: ListOffsetsRequest of Apache Kafka.
const (
	earliestLocal = -4
	latestTiered  = -5
)

// measureBroker compares tierd beside a broker with the broker's own tiered storage, by its
// LocalTieredStorage, which copies into a directory: how long each takes to tier a log, how much
// memory it holds, and how fast a client reads what is remote then.
func measureBroker(t *testing.T) []string {
	t.Helper()
	remote := filepath.Join(t.TempDir(), "remote")
	// The options are those of Kafka's own start script.
	k := startKafka(t, kafkaConfig{nodes: 1, from: "tiered", jvm: []string{"-Xmx1G", "-Xms1G",
		"-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
		"-XX:+ExplicitGCInvokesConcurrent"},
		extra: []string{"remote.log.storage.system.enable=true",
			"remote.log.storage.manager.class.name=" +
				"org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
			"remote.log.metadata.manager.listener.name=PLAINTEXT", "rsm.config.dir=" + remote,
			"rlmm.config.remote.log.metadata.topic.num.partitions=1",
			"rlmm.config.remote.log.metadata.topic.replication.factor=1",
			"remote.log.manager.task.interval.ms=500"}})
	k.large("warm", 1)
	k.tier("warm") // the broker's own log of remote segments is made by this
	topics := []string{"ours", "local"}
	for i := range *roundsFlag {
		topics = append(topics, fmt.Sprintf("theirs-%d", i))
	}
	for _, topic := range topics {
		k.large(topic, logSegments)
	}
	r, rows := measureTiering(t, k)
	return append(rows, measureFetches(t, k, r)...)
}

// large makes a topic with so many full segments, and waits until the broker has synced them.
func (k *kafka) large(topic string, segments int) {
	k.t.Helper()
	settings := map[string]*string{}
	for _, line := range []string{fmt.Sprintf("segment.bytes=%d", segmentBytes), "retention.ms=-1"} {
		key, value, _ := strings.Cut(line, "=")
		settings[key] = &value
	}
	k.create(topic, 1, 1, settings)
	client := k.connect(kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(20*time.Millisecond),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	defer client.Close()
	data := make([]byte, 1<<20)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(data) // it has no errors
	const size = 1000
	for i := range segments*segmentBytes/size + segmentBytes/size/4 {
		at := i * 7919 % (len(data) - size)
		client.Produce(context.Background(), &kgo.Record{Value: data[at : at+size]},
			func(_ *kgo.Record, err error) {
				if err != nil {
					k.t.Errorf("%s: %v", topic, err)
				}
			})
	}
	if err := client.Flush(context.Background()); err != nil {
		k.t.Fatal(err)
	}
	eventually(k.t, topic+" is synced", func() error {
		at := filepath.Join(k.nodes[0].data(), "recovery-point-offset-checkpoint")
		text, err := os.ReadFile(at)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			var point int64
			if n, _ := fmt.Sscanf(line, topic+" 0 %d", &point); n == 1 && point >= k.closed(topic) {
				return nil
			}
		}
		return fmt.Errorf("want %d: %s", k.closed(topic), text)
	})
	if n := len(k.nodes[0].logs(topic + "-0")); n < segments+1 {
		k.t.Fatalf("%s has %d segments, want %d", topic, n, segments+1)
	}
}

// closed is where the newest segment of the topic's only log begins.
func (k *kafka) closed(topic string) int64 {
	k.t.Helper()
	names := k.nodes[0].logs(topic + "-0")
	at, err := strconv.ParseInt(strings.TrimSuffix(names[len(names)-1], ".log"), 10, 64)
	if err != nil {
		k.t.Fatal(err)
	}
	return at
}

// bytes are those of the topic's closed segments on disk, without indexes.
func (k *kafka) bytes(topic string) (total int64) {
	k.t.Helper()
	names := k.nodes[0].logs(topic + "-0")
	for _, name := range names[:len(names)-1] {
		info, err := os.Stat(filepath.Join(k.nodes[0].data(), topic+"-0", name))
		if err != nil {
			k.t.Fatal(err)
		}
		total += info.Size()
	}
	return total
}

// warm has the system hold the topic's files in memory, as it does what was written lately. tierd
// lets go of what it has read.
func (k *kafka) warm(topic string) {
	k.t.Helper()
	paths, err := filepath.Glob(filepath.Join(k.nodes[0].data(), topic+"-0", "*"))
	if err != nil {
		k.t.Fatal(err)
	}
	for _, path := range paths {
		if _, err := os.ReadFile(path); err != nil {
			k.t.Fatal(err)
		}
	}
}

// set changes settings of the topic.
func (k *kafka) set(topic string, settings ...string) {
	k.t.Helper()
	var alter []kadm.AlterConfig
	for _, line := range settings {
		key, value, _ := strings.Cut(line, "=")
		alter = append(alter, kadm.AlterConfig{Name: key, Value: &value})
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answers, err := k.admin().AlterTopicConfigs(ctx, alter, topic)
	if err == nil {
		_, err = answers.On(topic, nil)
	}
	for _, a := range answers {
		err = errors.Join(err, a.Err)
	}
	if err != nil {
		k.t.Fatal(err)
	}
}

// tier has the broker tier the topic, and returns how long it takes until all that is closed is,
// and until that is on disk too.
func (k *kafka) tier(topic string) (tiered, synced time.Duration) {
	k.t.Helper()
	want, client := k.closed(topic), k.connect()
	k.warm(topic)
	syscall.Sync()
	began := time.Now()
	k.set(topic, "remote.storage.enable=true")
	k.reaches(client, topic, latestTiered, want-1)
	tiered = time.Since(began)
	syscall.Sync()
	return tiered, time.Since(began)
}

// reaches waits until the offset that ListOffsets gives for the special time is the one wanted.
func (k *kafka) reaches(client *kgo.Client, topic string, special, want int64) {
	k.t.Helper()
	eventually(k.t, fmt.Sprintf("%s: offset %d of %d", topic, special, want), func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		req := kmsg.NewPtrListOffsetsRequest()
		req.ReplicaID = -1
		in := kmsg.NewListOffsetsRequestTopic()
		in.Topic = topic
		part := kmsg.NewListOffsetsRequestTopicPartition()
		part.Timestamp, part.CurrentLeaderEpoch = special, -1
		in.Partitions = append(in.Partitions, part)
		req.Topics = append(req.Topics, in)
		answer, err := client.Broker(k.nodes[0].id).Request(ctx, req)
		if err != nil {
			return err
		}
		got := answer.(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
		if err := kerr.ErrorForCode(got.ErrorCode); err != nil || got.Offset != want {
			return errors.Join(err, fmt.Errorf("offset %d", got.Offset))
		}
		return nil
	})
}

// measureTiering times the tiering of logs with the same content by turns, and returns the tierd
// that did it last.
func measureTiering(t *testing.T, k *kafka) (last *rig, rows []string) {
	t.Helper()
	var speed, theirSpeed, theirSynced, memory, theirMemory []float64
	mib := float64(k.bytes("ours")) / (1 << 20)
	pid := k.nodes[0].process.cmd.Process.Pid
	turns := []func(round int){
		func(int) {
			s := filesystem(t)
			last = beside(t, s, k, k.nodes[0], "defaults: {table.log.ttl: 0, table.log.local-ttl: 1s}",
				"tables: [{name: ours}, {name: '*', remote.storage.enable: false}]")
			k.warm("ours")
			took := timed(t, last.dir, nil, command, "run", "--once", "--no-delete")
			if n := len(s.records(t)); n != logSegments {
				t.Fatalf("%d segments are in the store, want %d", n, logSegments)
			}
			speed, memory = append(speed, mib/took.seconds), append(memory, took.peakMiB)
			t.Logf("tierd: %+v", took)
		},
		func(round int) {
			at := fmt.Sprintf("/proc/%d/clear_refs", pid)
			if err := os.WriteFile(at, []byte("5"), 0); err != nil { // the peak begins anew
				t.Fatal(err)
			}
			took, synced := k.tier(fmt.Sprintf("theirs-%d", round))
			theirSpeed = append(theirSpeed, mib/took.Seconds())
			theirSynced = append(theirSynced, mib/synced.Seconds())
			peak, err := peakMiB(pid)
			if err != nil {
				t.Fatal(err)
			}
			theirMemory = append(theirMemory, peak)
			t.Logf("broker: %s, on disk: %s", took, synced)
		},
	}
	for round := range *roundsFlag {
		for i := range turns {
			turns[(i+round)%len(turns)](round)
		}
	}
	what := fmt.Sprintf("of a Kafka log of %d segments of %d MiB", logSegments, segmentBytes>>20)
	return last, []string{
		compared{what: "tier the closed segments " + what + ", until they are on disk",
			unit: "MiB/s", mine: speed, against: "the broker's own tiered storage, and `sync`",
			others: theirSynced, least: 2}.row(),
		compared{what: "the same", unit: "MiB/s", mine: speed,
			against: "the broker's own tiered storage alone, which syncs nothing", others: theirSpeed,
			least: 2}.row(),
		compared{what: "peak memory while tiering the closed segments " + what, unit: "MiB",
			mine: memory, against: "the broker, which has a heap of 1 GiB", others: theirMemory,
			most: 0.25}.row(),
	}
}

// measureFetches reads the same log by turns: from tierd's endpoint, where all of it is remote,
// from the broker's remote storage, and from the broker's disk.
func measureFetches(t *testing.T, k *kafka, r *rig) (rows []string) {
	t.Helper()
	ends := map[string]int64{}
	for _, topic := range []string{"ours", "theirs-0", "local"} {
		ends[topic] = k.closed(topic)
	}
	endpoint, broker := freeAddress(t), k.nodes[0].client
	r.configure(r.text() + fmt.Sprintf("\nkafka: {listen: %q}\nread: {cache_bytes: 0}", endpoint))
	r.daemon().listens(endpoint)
	eventually(t, "the broker drops what is tierd's", func() error {
		at, _, err := k.bounds("ours", 0)
		if err == nil && at != ends["ours"] {
			err = fmt.Errorf("its log begins at %d", at)
		}
		return err
	})
	k.set("theirs-0", "local.retention.ms=1")
	k.reaches(k.connect(), "theirs-0", earliestLocal, ends["theirs-0"])
	for _, ask := range []int32{1 << 20, 8 << 20} {
		var mine, tiered, local []float64
		turns := []func(){
			func() { mine = append(mine, sequential(t, endpoint, "ours", ends["ours"], ask)) },
			func() { tiered = append(tiered, sequential(t, broker, "theirs-0", ends["theirs-0"], ask)) },
			func() { local = append(local, sequential(t, broker, "local", ends["local"], ask)) },
		}
		for round := range *roundsFlag {
			for i := range turns {
				turns[(i+round)%len(turns)]()
			}
		}
		t.Logf("%d bytes at a time: tierd %v, tiered %v, local %v", ask, mine, tiered, local)
		what := fmt.Sprintf("read a remote log of %d segments of %d MiB, %d MiB at a time", logSegments,
			segmentBytes>>20, ask>>20)
		rows = append(rows, compared{what: what, unit: "MiB/s", mine: mine,
			against: "the broker's own tiered fetch", others: tiered, least: 1.5}.row(),
			compared{what: what, unit: "MiB/s", mine: mine, against: "the broker's local fetch",
				others: local, least: 0.6}.row())
	}
	return rows
}

// sequential reads the log up to the offset, with one request after the other, each for so many
// bytes, and returns MiB per second.
func sequential(t *testing.T, address, topic string, end int64, ask int32) float64 {
	t.Helper()
	versions := kversion.Stable()
	versions.SetMaxKeyVersion(int16(kmsg.Fetch), 11) // the last one with names of topics and no tags
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.MaxVersions(versions))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	total, next, began := int64(0), int64(0), time.Now()
	for next < end {
		req := kmsg.NewPtrFetchRequest()
		req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes = -1, 500, 1, ask
		in := kmsg.NewFetchRequestTopic()
		in.Topic = topic
		part := kmsg.NewFetchRequestTopicPartition()
		part.FetchOffset, part.PartitionMaxBytes, part.CurrentLeaderEpoch = next, ask, -1
		in.Partitions = append(in.Partitions, part)
		req.Topics = append(req.Topics, in)
		answer, err := client.SeedBrokers()[0].Request(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		got := answer.(*kmsg.FetchResponse).Topics[0].Partitions[0]
		if err := kerr.ErrorForCode(got.ErrorCode); err != nil {
			t.Fatalf("%s at %d: %v", topic, next, err)
		}
		for b := got.RecordBatches; len(b) >= 27 && next < end; {
			size := 12 + int(binary.BigEndian.Uint32(b[8:]))
			if size > len(b) {
				break // cut off, as brokers may
			}
			next = int64(binary.BigEndian.Uint64(b)) + int64(binary.BigEndian.Uint32(b[23:])) + 1
			total, b = total+int64(size), b[size:]
		}
	}
	return float64(total) / (1 << 20) / time.Since(began).Seconds()
}
