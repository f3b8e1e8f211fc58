//go:build measure

package interop_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	roundsFlag = flag.Int("rounds", 3, "how often what is compared is measured by turns")
	tableFlag  = flag.String("table", "", "where to write the table of BENCHMARKS.md")
)

// TestMeasure measures tierd beside what others use for the same work, by turns, and writes the
// table of BENCHMARKS.md. A target that is missed is no failure: the table says so.
func TestMeasure(t *testing.T) {
	t.Parallel()
	rows := []string{"| what | tierd | against | ratio | target |", "| --- | --- | --- | --- | --- |"}
	rows = append(rows, measureCopies(t)...)
	rows = append(rows, measureBroker(t)...)
	text := strings.Join(rows, "\n") + "\n"
	if *tableFlag != "" {
		if err := os.WriteFile(*tableFlag, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("\n%s", text)
}

// compared is one row: what tierd and the other did in each round, in a unit, and what the median
// of the rounds' ratios is to be.
type compared struct {
	what, unit   string
	mine, others []float64
	against      string
	least, most  float64 // of the ratio; 0 where nothing is promised
}

func (c compared) row() string {
	ratios := make([]float64, len(c.mine))
	for i := range ratios {
		ratios[i] = c.mine[i] / c.others[i]
	}
	ratio, target, met := median(ratios), "", true
	switch {
	case c.least > 0:
		target, met = fmt.Sprintf("at least %.2f", c.least), ratio >= c.least
	case c.most > 0:
		target, met = fmt.Sprintf("at most %.2f", c.most), ratio <= c.most
	}
	if target != "" && met {
		target += ": met"
	} else if target != "" {
		target += ": **missed**"
	}
	return fmt.Sprintf("| %s | %.0f %s | %s: %.0f %s | %.2f | %s |", c.what, median(c.mine), c.unit,
		c.against, median(c.others), c.unit, ratio, target)
}

// median is the middle of the values, of an even number the mean of the two in the middle.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// spent is what a process took.
type spent struct{ seconds, cpu, peakMiB float64 }

// timed runs a program to its end, after everything that was written before is on disk.
func timed(t *testing.T, dir string, env []string, program string, args ...string) spent {
	t.Helper()
	syscall.Sync()
	var out strings.Builder
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = &out, &out
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// The system counts the memory of whoever started a process as the process's own peak, so that
	// is looked at while it runs.
	ended, peak := make(chan struct{}), make(chan float64)
	go func() {
		most := 0.0
		for {
			if now, err := peakMiB(cmd.Process.Pid); err == nil {
				most = max(most, now)
			}
			select {
			case <-ended:
				peak <- most
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	err := cmd.Wait()
	took := time.Since(began)
	close(ended)
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out.String())
	}
	return spent{seconds: took.Seconds(), peakMiB: <-peak,
		cpu: (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()}
}

// peakMiB is the most memory that the process has held.
func peakMiB(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		var kib float64
		if n, _ := fmt.Sscanf(line, "VmHWM: %f kB", &kib); n == 1 {
			return kib / 1024, nil
		}
	}
	return 0, errors.New("the system does not say how much memory a process has held")
}

// What is copied to the store: so many closed files of so many bytes.
const (
	filesCopied = 16
	fileBytes   = 64 << 20
)

// measureCopies copies the same files to the same S3 server by tierd and by rclone, four at a time.
func measureCopies(t *testing.T) []string {
	t.Helper()
	if _, err := exec.LookPath("rclone"); err != nil {
		t.Fatalf("%v: apt-get install rclone", err)
	}
	s := s3(t)
	files := filepath.Join(t.TempDir(), "wal")
	random(t, filepath.Join(files, "a"), filesCopied+1, fileBytes)
	open := fmt.Sprintf("%020d.log", filesCopied*1000)
	env := []string{"RCLONE_CONFIG_S3_TYPE=s3", "RCLONE_CONFIG_S3_PROVIDER=Other",
		"RCLONE_CONFIG_S3_ACCESS_KEY_ID=interop", "RCLONE_CONFIG_S3_SECRET_ACCESS_KEY=interop-secret",
		"RCLONE_CONFIG_S3_ENDPOINT=http://" + s.address,
		"RCLONE_CONFIG_S3_REGION=us-east-1",
		"RCLONE_S3_NO_CHECK_BUCKET=true", "AWS_CA_BUNDLE="}
	var mine, others []float64
	turns := []func(round int){
		func(int) {
			r := newRig(t)
			r.configure(strings.Join([]string{
				fmt.Sprintf("sources: [{name: wal, layout: plain, path: %s}]", files),
				"bucket: " + s.bucket(s.address, credentials{}), "http: {listen: off}",
				"copy: {workers: 4}", "defaults: {table.log.ttl: 0, table.log.local-ttl: 0}"}, "\n"))
			took := timed(t, r.dir, nil, command, "run", "--once")
			mine = append(mine, filesCopied*fileBytes/(1<<20)/took.seconds)
			t.Logf("tierd: %+v", took)
		},
		func(round int) {
			took := timed(t, files, env, "rclone", "copy", files, fmt.Sprintf("s3:archive/%d", round),
				"--exclude", open, "--transfers", "4", "--checkers", "4", "--config", "/dev/null")
			others = append(others, filesCopied*fileBytes/(1<<20)/took.seconds)
			t.Logf("rclone: %+v", took)
		},
	}
	for round := range *roundsFlag {
		for i := range turns {
			turns[(i+round)%len(turns)](round)
			if n := len(s.records(t)); n != filesCopied {
				t.Fatalf("%d files are in the store, want %d", n, filesCopied)
			}
			empty(t, filepath.Join(s.dir, "archive"))
		}
	}
	return []string{compared{what: fmt.Sprintf("copy %d files of %d MiB to an S3 server, 4 at a time",
		filesCopied, fileBytes>>20), unit: "MiB/s", mine: mine,
		against: "`rclone copy --transfers 4`", others: others, least: 1}.row()}
}

// random makes n files of size bytes each that cannot be compressed, named as a plain log's are.
func random(t *testing.T, dir string, n, size int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	source := rand.NewChaCha8([32]byte{1})
	data := make([]byte, size)
	for i := range n {
		_, _ = source.Read(data) // it has no errors
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%020d.log", i*1000)), data,
			0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// empty removes all that is in the directory.
func empty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
}
