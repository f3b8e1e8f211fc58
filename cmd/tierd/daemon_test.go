package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/tierd/tierd/runtime/api"
)

// watched is a writer that tells when a text has been written to it.
type watched struct {
	mu   sync.Mutex // guards what follows
	text bytes.Buffer
	want string
	seen chan struct{}
}

// Write implements io.Writer.
func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	had := strings.Contains(w.text.String(), w.want)
	n, err := w.text.Write(p)
	if !had && strings.Contains(w.text.String(), w.want) {
		close(w.seen)
	}
	return n, err
}

// lab is a directory with a configuration and a plain log, and the commands that run in it.
type lab struct {
	t   *testing.T
	dir string
}

func newLab(t *testing.T, config string) *lab {
	t.Helper()
	l := &lab{t: t, dir: t.TempDir()}
	l.write("tierd.yaml", config)
	l.write("wal/orders/0.log", "12345678\n")
	l.write("wal/orders/100.log", "abcdefgh\n")
	return l
}

func (l *lab) path(name string) string { return filepath.Join(l.dir, name) }

func (l *lab) write(name, content string) {
	l.t.Helper()
	if err := os.MkdirAll(filepath.Dir(l.path(name)), 0o700); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(l.path(name), []byte(content), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// system gives commands the writers and an environment of their own.
func (l *lab) system(stdout, stderr io.Writer) system {
	return system{strings.NewReader(""), stdout, stderr, func(name string) (string, bool) {
		if name == "XDG_RUNTIME_DIR" {
			return l.dir, true
		}
		return "", false
	}, nil}
}

// tierd runs a command to its end.
func (l *lab) tierd(args ...string) (code int, stdout, stderr string) {
	l.t.Helper()
	var out, err bytes.Buffer
	args = append(args, "--config", l.path("tierd.yaml"))
	code = run(context.Background(), args, l.system(&out, &err))
	return code, out.String(), err.String()
}

// start runs the daemon until the end of the test, which checks that it stops well. It returns when
// the daemon has logged the text.
func (l *lab) start(logged string) {
	l.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	stderr := &watched{want: logged, seen: make(chan struct{})}
	args := []string{"run", "--config", l.path("tierd.yaml")}
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, args, l.system(io.Discard, stderr)) }()
	l.t.Cleanup(func() {
		stop()
		if code := <-ended; code != exitOK {
			l.t.Errorf("the daemon ended with %d:\n%s", code, stderr.text.String())
		}
	})
	select {
	case <-stderr.seen:
	case code := <-ended:
		ended <- code
		l.t.Fatalf("the daemon ended with %d before it logged %q", code, logged)
	}
}

// request asks the daemon's socket.
func (l *lab) request(method, path string) (status int, body string) {
	l.t.Helper()
	socket := api.SocketPath(l.path("data"), l.dir)
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequest(method, "http://tierd"+path, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		l.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

const labConfig = `
data_dir: data
sources: [{name: wal, layout: plain, path: wal}]
bucket: {type: FILESYSTEM, config: {directory: bucket}}
defaults: {table.log.local-ttl: 1ms}
http: {listen: "127.0.0.1:0"}
`

// TestCommandsAskTheDaemon: while a daemon runs, commands answer from it, also when the file has
// become wrong since, and a second daemon is refused.
func TestCommandsAskTheDaemon(t *testing.T) {
	t.Parallel()
	l := newLab(t, labConfig)
	l.start("msg=ready")
	code, out, err := l.tierd("status")
	if code != exitOK || !strings.Contains(out, "running for") {
		t.Errorf("status: %d %s%s", code, out, err)
	}
	code, out, err = l.tierd("ls", "wal/orders")
	if code != exitOK || !strings.Contains(out, "100") {
		t.Errorf("ls: %d %s%s", code, out, err)
	}
	if code, _, err := l.tierd("ls", "wal/none"); code != exitUsage {
		t.Errorf("ls of no log: %d %s", code, err)
	}
	if code, _, err := l.tierd("resume", "wal"); code != exitRuntime ||
		!strings.Contains(err, "not paused") {
		t.Errorf("resume of a table that is not paused: %d %s", code, err)
	}
	if code, _, err := l.tierd("accept-loss", "wal/orders@0"); code != exitRuntime {
		t.Errorf("accept-loss of a healthy segment: %d %s", code, err)
	}
	if code, _, err := l.tierd("run"); code != exitRuntime || !strings.Contains(err, "data_dir") {
		t.Errorf("a second daemon: %d %s", code, err)
	}

	l.write("tierd.yaml", "data_dir: data\ninteval: 3s\n")
	status, body := l.request("POST", "/-/reload")
	if status != http.StatusUnprocessableEntity || !strings.Contains(body, "did you mean") {
		t.Errorf("reload of a wrong file: %d %s", status, body)
	}
	code, out, err = l.tierd("status")
	if code != exitOK || !strings.Contains(out, "reload was refused") {
		t.Errorf("status after it: %d %s%s", code, out, err)
	}
	l.write("tierd.yaml", labConfig+"interval: 10s\n")
	if status, body = l.request("POST", "/-/reload"); status != http.StatusOK {
		t.Errorf("reload: %d %s", status, body)
	}
	code, out, err = l.tierd("reload")
	if code != exitOK || !strings.HasPrefix(out, "generation 3 of "+l.path("tierd.yaml")+
		" is in force; policies ") {
		t.Errorf("reload: %d %s%s", code, out, err)
	}
	if status, _ = l.request("GET", "/-/reload"); status != http.StatusMethodNotAllowed {
		t.Errorf("GET /-/reload: %d", status)
	}
}

// TestMetricsAreDocumented compares what the daemon exports with docs/metrics.md.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	l := newLab(t, labConfig)
	if code, _, err := l.tierd("run", "--once"); code != exitOK {
		t.Fatalf("run --once: %d %s", code, err)
	}
	l.write("wal/orders/200.log", "one more\n")
	l.start("msg=ready")
	docs, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	_, body := l.request("GET", "/metrics")
	names := regexp.MustCompile(`(?m)^# TYPE (tierd_[a-z_]+)`).FindAllStringSubmatch(body, -1)
	if len(names) < 20 {
		t.Fatalf("only %d metrics:\n%s", len(names), body)
	}
	for _, m := range names {
		if !strings.Contains(string(docs), "`"+m[1]+"`") {
			t.Errorf("docs/metrics.md says nothing of %s", m[1])
		}
	}
}

const damagedConfig = `
data_dir: data
sources: [{name: broker, layout: kafka, path: kafka}]
bucket: {type: FILESYSTEM, config: {directory: bucket}}
http: {listen: "off"}
`

// TestAcceptLoss: a damaged segment of a real Kafka log blocks it, run --once fails and names it,
// and accepting its loss lets copying go on behind it.
func TestAcceptLoss(t *testing.T) {
	t.Parallel()
	l := newLab(t, damagedConfig)
	const log = "kafka/codec-none-0/00000000000000000140.log"
	if err := os.CopyFS(l.path("kafka"), os.DirFS("../../testdata/kafka/v4")); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(l.path(log))
	if err != nil {
		t.Fatal(err)
	}
	content[5000] ^= 1
	l.write(log, string(content))

	code, out, stderr := l.tierd("run", "--once", "--retry-for", "0s")
	if code != exitRuntime || !strings.Contains(out, "accept-loss codec-none/0@140") {
		t.Errorf("run --once: %d %s%s", code, out, stderr)
	}
	l.start("code=damaged")
	// The line is written a moment before the engine knows.
	for range 1000 {
		if code, out, stderr = l.tierd("accept-loss", "codec-none/0@150"); code == exitOK {
			break
		}
	}
	if code != exitOK || !strings.Contains(out, "[140, 280)") {
		t.Fatalf("accept-loss: %d %s%s", code, out, stderr)
	}
	if code, out, _ = l.tierd("ls", "codec-none/0"); !strings.Contains(out, "loss-accepted") {
		t.Errorf("ls: %d %s", code, out)
	}
}
