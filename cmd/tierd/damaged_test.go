package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/tierd/tierd/runtime/api"
)

// damagedLab has a real Kafka log with a damaged segment, [140, 280).
func damagedLab(t *testing.T) (l *lab, log, sound string) {
	t.Helper()
	l = newLab(t, damagedConfig)
	log = "kafka/codec-none-0/00000000000000000140.log"
	if err := os.CopyFS(l.path("kafka"), os.DirFS("../../testdata/kafka/v4")); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(l.path(log))
	if err != nil {
		t.Fatal(err)
	}
	sound = string(content)
	content[5000] ^= 1
	l.write(log, string(content))
	return l, log, sound
}

// TestStatusWithoutADaemon: it says that it did not read what waits, and what was given up does not
// wait.
func TestStatusWithoutADaemon(t *testing.T) {
	t.Parallel()
	l, _, _ := damagedLab(t)
	l.write("tierd.yaml", damagedConfig+"defaults: {table.log.ttl: 0}\n") // else it expires
	once := func(want int) {
		t.Helper()
		if code, out, stderr := l.tierd("run", "--once", "--retry-for", "0s"); code != want {
			t.Fatalf("run --once: %d %s%s", code, out, stderr)
		}
	}
	waits := func(want bool) {
		t.Helper()
		_, text, _ := l.tierd("status", "--table", "codec-none")
		_, out, _ := l.tierd("status", "--table", "codec-none", "-o", "json")
		var s api.Status
		if err := json.Unmarshal([]byte(out), &s); err != nil {
			t.Fatal(err)
		}
		if told := strings.Contains(text, "was not read"); told != want ||
			(s.Logs[0].Lag.Segments > 0) != want {
			t.Errorf("want something that waits %v: %s", want, text)
		}
	}
	once(exitRuntime)
	waits(true)
	if code, out, stderr := l.tierd("accept-loss", "codec-none/0@140"); code != exitOK {
		t.Fatalf("accept-loss: %d %s%s", code, out, stderr)
	}
	once(exitOK) // what is behind it
	waits(false)
}

// TestCheckNamesADamagedSegment: a check says of a segment that waits to be copied what a run says,
// before any run, after it, and no more once its loss is accepted.
func TestCheckNamesADamagedSegment(t *testing.T) {
	t.Parallel()
	l, log, sound := damagedLab(t)
	alarm := func(out string) string {
		_, text, _ := strings.Cut(out, "quarantined: ")
		text, _, _ = strings.Cut(text, "\n")
		return text
	}
	code, before, _ := l.tierd("check")
	told := alarm(before)
	if code != exitCheck || !strings.Contains(before, "! source broker (") ||
		!strings.Contains(told, "00000000000000000140.log") ||
		!strings.Contains(told, "tierd accept-loss codec-none/0@140") ||
		!strings.Contains(before, "1 of 2 do not work") {
		t.Errorf("check: %d %s", code, before)
	}
	code, out, _ := l.tierd("run", "--once", "--retry-for", "0s")
	if ran := alarm(out); code != exitRuntime || ran != told {
		t.Errorf("run --once: %d %q, and check %q", code, ran, told)
	}
	if code, out, _ = l.tierd("check"); code != exitCheck || alarm(out) != told {
		t.Errorf("check after a run: %d %s", code, out)
	}
	if code, out, _ = l.tierd("accept-loss", "codec-none/0@140"); code != exitOK {
		t.Errorf("accept-loss: %d %s", code, out)
	}
	if code, out, _ = l.tierd("check"); code != exitOK {
		t.Errorf("check of an accepted loss: %d %s", code, out)
	}
	l.write(log, sound)
	if code, out, _ = l.tierd("check"); code != exitOK {
		t.Errorf("check of a sound segment: %d %s", code, out)
	}
	l.start("msg=ready")
	if code, out, _ = l.tierd("check"); code != exitOK || strings.Contains(out, "ledger") {
		t.Errorf("check beside a daemon: %d %s", code, out)
	}
}
