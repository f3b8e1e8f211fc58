// Command bench measures tierd and prints the table of BENCHMARKS.md: "make bench" runs it.
//
// Machines differ, and one machine differs from hour to hour. So whatever can be is a ratio of two
// things that were measured in the same run, by turns, several times; the table has medians, and a
// ratio is the median of the rounds' ratios. What a user would wait for is measured on the real
// command, in a process of its own; the rest is read from the benchmarks that stand beside the
// code. It needs Linux and the GNU core utilities, which it measures against.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// diskBytes is what a run needs at most, with room to spare.
const diskBytes = 12 << 30

// group is a part of the table.
type group struct {
	name string // for -only
	rows func(*bench) ([]row, error)
}

// groups are in the order of the table.
func groups() []group {
	var all []group
	for _, s := range copySources {
		all = append(all, group{"copy-" + s.name, s.copyRows})
	}
	for _, s := range copySources {
		all = append(all, group{"restore-" + s.name, s.restoreRows})
	}
	all = append(all, group{"memory", memoryRows}, group{"endpoint", endpointRows})
	all = append(all, group{"grown", grownRows}, group{"disable", disableRows})
	for _, s := range subjects {
		all = append(all, group{s.name, s.rows})
	}
	return all
}

// bench is one run.
type bench struct {
	ctx      context.Context
	dir      string    // scratch, removed at the end
	tierd    string    // the command, by its absolute path
	rounds   int       // of what is measured by turns
	progress io.Writer // for whoever waits

	turn int   // of measurements that write
	left int64 // bytes that they may have left
}

// say tells whoever waits what is being done.
func (b *bench) say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.progress, format+"\n", args...) // nothing is measured by it
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	tierd := flags.String("tierd", "bin/tierd", "the command to measure")
	asJSON := flags.Bool("json", false, "print JSON instead of a table")
	rounds := flags.Int("rounds", 5, "how often what is compared is measured by turns")
	only := flags.String("only", "", "measure these parts, separated by commas, and not all")
	files := flags.String("files", "", "serve this directory by HTTP, and do nothing else")
	listen := flags.String("listen", "", "where to serve it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *files != "" {
		return serveFiles(ctx, *files, *listen)
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	if *rounds < 1 {
		return fmt.Errorf("-rounds %d: want 1 or more", *rounds)
	}
	path, err := filepath.Abs(*tierd)
	if err != nil {
		return err
	}
	if _, err := exec.LookPath(path); err != nil {
		return fmt.Errorf("-tierd: %w; run: make build", err)
	}
	dir, err := scratch()
	if err != nil {
		return err
	}
	b := &bench{ctx: ctx, dir: dir, tierd: path, rounds: *rounds, progress: stderr}
	rows, err := b.measure(chosen)
	err = errors.Join(err, os.RemoveAll(dir))
	if *asJSON {
		return errors.Join(err, printJSON(stdout, rows))
	}
	return errors.Join(err, printTable(stdout, rows))
}

// choose finds the groups with the names; all of them where none is given.
func choose(names string) ([]group, error) {
	all := groups()
	if names == "" {
		return all, nil
	}
	var out []group
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(g group) bool { return g.name == name })
		if i < 0 {
			var known []string
			for _, g := range all {
				known = append(known, g.name)
			}
			return nil, fmt.Errorf("-only %s: want some of %s", name, strings.Join(known, ","))
		}
		out = append(out, all[i])
	}
	return out, nil
}

// scratch makes a directory for what is measured: in TMPDIR, else in bin/, which lies on a disk
// where /tmp may lie in memory, and which Git ignores.
func scratch() (string, error) {
	above := os.Getenv("TMPDIR")
	if above == "" {
		above = "bin"
	}
	above, err := filepath.Abs(above)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(above, 0o777); err != nil {
		return "", err
	}
	var s unix.Statfs_t
	if err := unix.Statfs(above, &s); err != nil {
		return "", fmt.Errorf("statfs %s: %w", above, err)
	}
	if free := int64(s.Bavail) * s.Bsize; free < diskBytes {
		return "", fmt.Errorf("%s has %d MiB free: want %d; set TMPDIR to a directory on a larger disk",
			above, free>>20, diskBytes>>20)
	}
	return os.MkdirTemp(above, "bench-")
}

// measure measures one part after the other. An error ends it, and leaves the rows before it.
func (b *bench) measure(chosen []group) (rows []row, err error) {
	for _, g := range chosen {
		b.say("%s", g.name)
		more, err := g.rows(b)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", g.name, err)
		}
		rows = append(rows, more...)
	}
	return rows, nil
}
