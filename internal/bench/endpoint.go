package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// endpointTarget is the throughput of the Kafka endpoint, relative to a plain HTTP server.
const endpointTarget = 0.5

// slowClients is how many clients take nothing of what they ask for, and slowMiB what the endpoint
// may hold then, in MiB: 64 KiB for each and 64 MiB for all, beside what tierd has anyway, and as
// much again for the garbage collector.
const (
	slowClients = 1000
	slowMiB     = 512
)

// fetchBytes is how much the measured client asks for at one time: what common clients do.
const fetchBytes = 8 << 20

// archive is what is read.
var archive = source{name: "archive", what: "8 Kafka segments of 64 MiB", layout: "kafka",
	fill: kafkaSegments(1, 8, 64<<20)}

// endpointConfig copies everything to a local bucket, deletes it where it was, and serves it. What
// was read is not kept: each round reads from the bucket.
const endpointConfig = `data_dir: %q
sources: [{name: source, layout: kafka, path: %q, local_delete: unlink}]
bucket: {type: FILESYSTEM, config: {directory: %q}}
defaults: {table.log.ttl: 0, table.log.local-ttl: 1ms}
http: {listen: off}
read: {cache_bytes: 0}
kafka: {listen: %q, max_connections: 2000}
`

// endpointRows measures what clients get of an archive that is in a local bucket alone.
func endpointRows(b *bench) (rows []row, err error) {
	s := &archive
	if err := s.make(filepath.Join(b.dir, "source")); err != nil {
		return nil, err
	}
	if err := b.settle(s); err != nil {
		return nil, err
	}
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	d, err := b.serve(s, addr)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.stop(), b.clear(), os.RemoveAll(s.dir)) }()
	speed, err := b.endpointSpeed(s, addr)
	if err != nil {
		return nil, err
	}
	memory, err := b.slowReaders(d, addr)
	return append(speed, memory), err
}

// freeAddress is one that nobody listened on a moment ago.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// server is a process that serves until it is told to stop.
type server struct {
	cmd  *exec.Cmd
	said strings.Builder
}

// startServer starts a process, and keeps what it says for its error.
func startServer(cmd *exec.Cmd) (*server, error) {
	s := &server{cmd: cmd}
	cmd.Stdout, cmd.Stderr = &s.said, &s.said
	return s, cmd.Start()
}

// stop ends it and waits.
func (s *server) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := s.cmd.Wait(); err != nil && s.cmd.ProcessState.ExitCode() > 0 {
		return fmt.Errorf("%s: %w\n%s", s.cmd.Path, err, s.said.String())
	}
	return nil
}

// serve starts tierd, and waits until the archive is in the bucket alone.
func (b *bench) serve(s *source, addr string) (*server, error) {
	// A broker leaves its lock file behind.
	if err := os.WriteFile(filepath.Join(s.dir, ".lock"), nil, 0o666); err != nil {
		return nil, err
	}
	path := filepath.Join(b.dir, "tierd.yaml")
	text := fmt.Sprintf(endpointConfig, b.data(), s.dir, b.bucket(), addr)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		return nil, err
	}
	d, err := startServer(exec.CommandContext(b.ctx, b.tierd, "run", "--config", path,
		"--log-level", "warn"))
	if err != nil {
		return nil, err
	}
	if err := b.until(100*time.Millisecond, func() (bool, error) {
		left, err := filepath.Glob(filepath.Join(s.logs[0], "*.log"))
		return len(left) == 1, err
	}); err != nil {
		return nil, errors.Join(fmt.Errorf("wait for the archive in the bucket: %w", err), d.stop())
	}
	return d, nil
}

// endpointSpeed reads the archive by turns through the endpoint and from a plain HTTP server, which
// is a process of its own as tierd is.
func (b *bench) endpointSpeed(s *source, addr string) ([]row, error) {
	files, bytes, err := b.archived()
	if err != nil {
		return nil, err
	}
	httpAddr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	h, err := startServer(exec.CommandContext(b.ctx, self, "-files", b.bucket(), "-listen", httpAddr))
	if err != nil {
		return nil, err
	}
	defer func() { _ = h.stop() }() // what it was for is over
	var mine, others []figure
	for round := range b.rounds {
		turns := []func() error{
			func() error {
				f, err := timedRead(bytes, func() (int64, error) {
					total, _, err := fetchAll(addr)
					return total, err
				})
				mine = append(mine, f)
				return err
			},
			func() error {
				f, err := timedRead(bytes, func() (int64, error) { return getAll(httpAddr, files) })
				others = append(others, f)
				return err
			},
		}
		for i := range turns {
			if err := turns[(i+round)%len(turns)](); err != nil {
				return nil, err
			}
		}
		b.say("  %d/%d endpoint %s, HTTP %s", round+1, b.rounds, mine[round], others[round])
	}
	return []row{compared("read "+s.what+" from a local bucket through the Kafka endpoint", mine,
		"a plain HTTP server sends the same files", others, atLeast(endpointTarget))}, nil
}

// archived are the files with records in the bucket, by their paths below it, and their size.
func (b *bench) archived() (files []string, bytes int64, err error) {
	err = walkFiles([]string{b.bucket()}, func(path string, size int64) error {
		if strings.HasSuffix(path, ".log") {
			name, err := filepath.Rel(b.bucket(), path)
			if err != nil {
				return err
			}
			files, bytes = append(files, filepath.ToSlash(name)), bytes+size
		}
		return nil
	})
	return files, bytes, err
}

// timedRead says how fast read was, and sees that it was all.
func timedRead(bytes int64, read func() (int64, error)) (figure, error) {
	began := time.Now()
	got, err := read()
	took := figure{Value: time.Since(began).Seconds(), Unit: seconds}
	if err == nil && got != bytes {
		err = fmt.Errorf("%d bytes were read, want %d", got, bytes)
	}
	return rate(bytes, took), err
}

// serveFiles is the plain HTTP server.
func serveFiles(ctx context.Context, dir, addr string) error {
	s := &http.Server{Addr: addr, Handler: http.FileServer(http.Dir(dir)),
		ReadHeaderTimeout: time.Minute}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() }) // it has served its purpose
	defer stop()
	if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// getAll gets the files one after the other over one connection.
func getAll(addr string, files []string) (total int64, err error) {
	buf := make([]byte, bufferBytes)
	for _, name := range files {
		resp, err := getWhenUp("http://" + addr + "/" + name)
		if err != nil {
			return total, err
		}
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, resp.Body, buf)
		total += n
		if err = errors.Join(err, resp.Body.Close()); err != nil {
			return total, err
		}
	}
	return total, nil
}

// getWhenUp gives a server that has just been started a moment to listen.
func getWhenUp(url string) (*http.Response, error) {
	for try := 0; ; try++ {
		resp, err := http.Get(url)
		if err == nil || try == 50 {
			return resp, err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// fetchAll reads the partition from its beginning to its end over one connection: so many bytes of
// batches, up to the offset.
func fetchAll(addr string) (total, end int64, err error) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, nc.Close()) }()
	r := bufio.NewReaderSize(nc, bufferBytes)
	for {
		if _, err := nc.Write(fetchRequest(end)); err != nil {
			return total, end, err
		}
		var size [4]byte
		if _, err := io.ReadFull(r, size[:]); err != nil {
			return total, end, err
		}
		n, after, err := batches(r, int64(binary.BigEndian.Uint32(size[:])))
		if err != nil || n == 0 {
			return total, end, err
		}
		total, end = total+n, after
	}
}

// fetchRequest asks for the partition from the offset on.
func fetchRequest(from int64) []byte {
	req := kmsg.NewPtrFetchRequest()
	req.SetVersion(11)
	req.MaxBytes = fetchBytes
	t := kmsg.NewFetchRequestTopic()
	t.Topic = "orders"
	p := kmsg.NewFetchRequestTopicPartition()
	p.FetchOffset, p.PartitionMaxBytes = from, fetchBytes
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench")).AppendRequest(nil, req, 1)
}

// responseHead is what stands before the records of a response of version 11 with one partition
// of "orders": correlation id, throttling, error, session, one topic, its name, one partition, its
// number, error and offsets, no aborted transactions, a replica, and the size of the records.
const responseHead = 4 + 4 + 2 + 4 + 4 + 2 + len("orders") + 4 + 4 + 2 + 8 + 8 + 8 + 4 + 4 + 4

// batches reads a response of the size, and gives the size of its batches and the offset behind
// them.
func batches(r *bufio.Reader, size int64) (total, next int64, err error) {
	head := make([]byte, responseHead)
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, 0, err
	}
	at := len(head) - 4
	if code := binary.BigEndian.Uint16(head[at-4-4-8-8-8-2:]); code != 0 {
		return 0, 0, fmt.Errorf("the endpoint answers with error %d", code)
	}
	left := int64(int32(binary.BigEndian.Uint32(head[at:])))
	if int64(responseHead)+left != size {
		return 0, 0, fmt.Errorf("%d bytes of records in a response of %d", left, size)
	}
	for total < left {
		batch, err := r.Peek(27)
		if err != nil {
			return total, next, err
		}
		n := 12 + int64(binary.BigEndian.Uint32(batch[8:]))
		next = int64(binary.BigEndian.Uint64(batch)) + int64(binary.BigEndian.Uint32(batch[23:])) + 1
		if _, err := r.Discard(int(n)); err != nil {
			return total, next, err
		}
		total += n
	}
	return total, next, nil
}

// slowReaders lets many clients ask for as much as they can get, each from a place of its own on,
// and take nothing of it.
func (b *bench) slowReaders(d *server, addr string) (row, error) {
	before, err := resident(d.cmd.Process.Pid)
	if err != nil {
		return row{}, err
	}
	_, end, err := fetchAll(addr)
	if err != nil {
		return row{}, err
	}
	for i := range slowClients {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			return row{}, err
		}
		defer func() { _ = nc.Close() }() // it has served its purpose
		// What the kernel takes for the client is not the server's any more.
		if err := nc.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			return row{}, err
		}
		if _, err := nc.Write(fetchRequest(end * int64(i) / slowClients)); err != nil {
			return row{}, err
		}
	}
	for range 5 {
		select {
		case <-b.ctx.Done():
			return row{}, b.ctx.Err()
		case <-time.After(time.Second):
		}
	}
	after, err := resident(d.cmd.Process.Pid)
	b.say("  %d slow clients: %s, before %s", slowClients, after, before)
	return compared(fmt.Sprintf("peak memory, serving %d clients that take nothing", slowClients),
		[]figure{after}, "without them", []figure{before}, figureUpTo(slowMiB)), err
}

// resident is the most memory that a process has held so far.
func resident(pid int) (figure, error) {
	bytes, err := memoryOf(pid, "VmHWM")
	return figure{Value: bytes / (1 << 20), Unit: mebibytes}, err
}

// memoryOf reads one of the kernel's counts of a process's memory, in bytes. Source: proc(5),
// /proc/PID/status.
func memoryOf(pid int, count string) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, count+":"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 64)
			return kib * 1024, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/status does not tell %s", pid, count)
}
