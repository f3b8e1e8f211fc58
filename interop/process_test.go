package interop_test

import (
	"bytes"
	"context"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait for another process. The machines of CI are small.
const patience = 3 * time.Minute

// pause is between two looks.
const pause = 50 * time.Millisecond

// given are the ports that this process has handed out.
var given sync.Map

// freeAddress is one of the loopback interface that nobody listens on. Its port is below those that
// the kernel gives to clients (from 32768 on, unless a machine is set up otherwise): while a server
// is down that its clients look for, one of them could be given the very port, and keep the server
// from coming back.
func freeAddress(t *testing.T) string {
	t.Helper()
	const first, last, tries = 12_000, 32_000, 1000
	for range tries {
		port := first + mathrand.IntN(last-first)
		if _, taken := given.LoadOrStore(port, true); taken {
			continue
		}
		address := fmt.Sprintf("127.0.0.1:%d", port)
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		_ = l.Close()
		return address
	}
	t.Fatalf("no port of %d tried from %d to %d is free", tries, first, last)
	return ""
}

// eventually waits until look says that it is so. An error of look says why it is not yet.
func eventually(t *testing.T, what string, look func() error) {
	t.Helper()
	within(t, patience, what, look)
}

func within(t *testing.T, limit time.Duration, what string, look func() error) {
	t.Helper()
	err := look()
	for deadline := time.Now().Add(limit); err != nil; err = look() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s: %v", limit, what, err)
		}
		<-time.After(pause)
	}
}

// process is one that a test started, and that ends with it.
type process struct {
	t    *testing.T
	name string
	log  string // path of what it wrote
	cmd  *exec.Cmd
	done chan struct{}
	mu   sync.Mutex
	err  error
}

// start runs a program in dir and writes its output to dir/name.log.
func start(t *testing.T, dir, name string, env []string, program string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: name, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(program, args...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, out, out
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		err := p.cmd.Wait()
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
		_ = out.Close()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("the end of %s:\n%s", p.log, p.tail())
		}
	})
	return p
}

// kill ends the process as a crash would, and waits for its end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// stop asks the process to end, and waits until it has.
func (p *process) stop() {
	p.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("%s does not end", p.name)
	}
}

// ended is an error once the process has ended.
func (p *process) ended() error {
	select {
	case <-p.done:
		p.mu.Lock()
		defer p.mu.Unlock()
		return fmt.Errorf("%s ended: %v\n%s", p.name, p.err, p.tail())
	default:
		return nil
	}
}

// listens waits until the process takes connections.
func (p *process) listens(address string) {
	p.t.Helper()
	eventually(p.t, p.name+" listens", func() error {
		if err := p.ended(); err != nil {
			p.t.Fatal(err)
		}
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			_ = c.Close()
		}
		return err
	})
}

// tail is the end of what the process wrote.
func (p *process) tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	const lines = 40
	all := bytes.Split(text, []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}

// output runs a program to its end and returns what it wrote to both outputs, and its exit code.
func output(t *testing.T, dir string, env []string, program string, args ...string) (
	stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &errs
	cmd.Env = append(os.Environ(), env...)
	err := cmd.Run()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() < 0 {
		t.Fatalf("%s %v: %v\n%s", filepath.Base(program), args, err, errs.String())
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}
