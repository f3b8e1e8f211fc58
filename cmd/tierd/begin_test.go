package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tierd/tierd/runtime/api"
)

// TestAHangupBeforeTheCommandIsKnown is one that came before the command line was read: a daemon
// loads the configuration anew, and every other command ends.
func TestAHangupBeforeTheCommandIsKnown(t *testing.T) {
	t.Parallel()
	l := newLab(t, labConfig)
	hungUp := func(logged string) (system, *watched, *bytes.Buffer) {
		stdout, stderr := &bytes.Buffer{}, &watched{want: logged, seen: make(chan struct{})}
		sys := l.system(stdout, stderr)
		sys.hangups = make(chan os.Signal, 1)
		sys.hangups <- syscall.SIGHUP
		return sys, stderr, stdout
	}
	for _, args := range []string{"run --once", "status", "check"} {
		sys, stderr, stdout := hungUp("hangup")
		args := append(strings.Fields(args), "--config", l.path("tierd.yaml"))
		if code := run(t.Context(), args, sys); code != exitRuntime || stdout.Len() > 0 {
			t.Errorf("%v: %d %s%s", args, code, stdout, stderr.text.String())
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	sys, stderr, _ := hungUp("generation=2")
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, []string{"run", "--config", l.path("tierd.yaml")}, sys) }()
	select {
	case <-stderr.seen:
	case code := <-ended:
		t.Fatalf("it ended with %d:\n%s", code, stderr.text.String())
	}
	stop()
	if code := <-ended; code != exitOK {
		t.Errorf("it ended with %d:\n%s", code, stderr.text.String())
	}
}

// TestNothingIsCopiedWithoutASocket: where something else has the socket's name, a run fails before
// it does anything.
func TestNothingIsCopiedWithoutASocket(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"run", "--once"}, {"run"}} {
		l := newLab(t, labConfig)
		socket := api.SocketPath(l.path("data"), l.dir)
		if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(socket, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, stderr := l.tierd(args...)
		if code != exitRuntime || !strings.Contains(stderr, "something else has that name") {
			t.Errorf("%v: %d %s", args, code, stderr)
		}
		if entries, err := os.ReadDir(l.path("bucket")); err == nil && len(entries) > 0 {
			t.Errorf("%v: in the store is %v", args, entries)
		}
	}
}
