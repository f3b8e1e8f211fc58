package interop_test

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// reader is a client that reads orders from tierd's endpoint, from its beginning on and for ever,
// while what it reads from is killed and comes back.
type reader struct {
	t    *testing.T
	name string
	// read are the records so far: the value of each, after its offset and a blank where the
	// client gives offsets too.
	read func() []string
	// offsets is set where the client gives them.
	offsets bool
}

// follow starts one of each kind of client.
func follow(t *testing.T, k *kafka, endpoint string) []*reader {
	t.Helper()
	java := k.nodes[0].java("org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server",
		endpoint, "--topic", "orders", "--partition", "0")
	return []*reader{
		followGo(t, endpoint),
		followBy(t, "console-consumer", false, func(next int) []string {
			return append([]string{"java"}, append(java, "--offset", fmt.Sprint(next))...)
		}),
		// It ends when it loses all brokers, and is started again where it was.
		followBy(t, "kcat", true, func(next int) []string {
			return []string{"kcat", "-b", endpoint, "-C", "-t", "orders", "-p", "0", "-o",
				fmt.Sprint(next), "-u", "-q", "-f", "%o %s\\n"}
		}),
	}
}

// followBy runs a program that writes a line for each record from the next one on. Where again is
// set it may end, and is run again; it is one that gives offsets too.
func followBy(t *testing.T, name string, again bool, command func(next int) []string) *reader {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	var mu sync.Mutex
	var lines []string
	run := func() error {
		args := command(len(lines))
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return err
		}
		for in := bufio.NewReader(out); ; {
			line, err := in.ReadString('\n')
			if err != nil {
				break // what has no end was not written whole
			}
			mu.Lock()
			lines = append(lines, strings.TrimSuffix(line, "\n"))
			mu.Unlock()
		}
		if err := cmd.Wait(); !again && ctx.Err() == nil {
			return fmt.Errorf("it ended: %v", err)
		}
		return nil
	}
	done := make(chan struct{})
	var failed error
	go func() {
		defer close(done)
		for ctx.Err() == nil && failed == nil {
			failed = run()
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		if failed != nil {
			t.Errorf("%s: %v", name, failed)
		}
	})
	return &reader{t: t, name: name, offsets: again, read: func() []string {
		mu.Lock()
		defer mu.Unlock()
		return lines[:len(lines):len(lines)]
	}}
}

// followGo starts a client of franz-go.
func followGo(t *testing.T, endpoint string) *reader {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(endpoint), kgo.ConsumePartitions(
		map[string]map[int32]kgo.Offset{"orders": {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var mu sync.Mutex
	var lines []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
				mu.Lock()
				defer mu.Unlock()
				lines = append(lines, fmt.Sprintf("%d %s", r.Offset, r.Value))
			})
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		client.Close()
	})
	return &reader{t: t, name: "franz-go", offsets: true, read: func() []string {
		mu.Lock()
		defer mu.Unlock()
		return lines[:len(lines):len(lines)]
	}}
}

// whole waits until the reader is at the end, and wants it to have read every record once, in
// order, and each as it was acknowledged.
func (r *reader) whole(h *history, end int64) {
	r.t.Helper()
	var lines []string
	eventually(r.t, fmt.Sprintf("%s reads up to %d", r.name, end), func() error {
		if lines = r.read(); int64(len(lines)) < end {
			return fmt.Errorf("%d records", len(lines))
		}
		return nil
	})
	for i, got := range lines {
		want := h.values[int64(i)]
		if r.offsets {
			want = fmt.Sprintf("%d %s", i, want)
		}
		if got != want {
			r.t.Fatalf("%s: record %d of %d is %.40q, want %.40q", r.name, i, len(lines), got, want)
		}
	}
	if int64(len(lines)) != end {
		r.t.Fatalf("%s: %d records of %d", r.name, len(lines), end)
	}
}
