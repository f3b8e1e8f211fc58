package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// subject is a package whose own benchmarks are measured.
type subject struct {
	name    string // for -only
	pkg     string // its directory
	pattern string // for -bench
	time    string // for -benchtime
	// rounds is how often the benchmarks are run by turns; 0 is as often as everything else.
	rounds      int
	comparisons []comparison
}

// comparison is a row that compares a metric with another one. With no against there is no other.
type comparison struct {
	what    string
	tierd   metric
	against string
	other   metric
	target  *target
}

// metric is one number of a benchmark's line, named by its unit there.
type metric struct{ bench, unit string }

// units says what the units of benchmarks' lines are.
var units = map[string]struct {
	unit  unit
	scale float64
}{
	"ns/op":      {seconds, 1e-9},
	"ns/segment": {seconds, 1e-9},
	"ns/history": {seconds, 1e-9},

	"evaluations-ns/history": {seconds, 1e-9},

	"gate-ns/decision": {seconds, 1e-9},
	"opa-ns/decision":  {seconds, 1e-9},

	"min-ns/segment": {seconds, 1e-9},
	"min-ns/load":    {seconds, 1e-9},

	"start-s":   {seconds, 1},
	"records/s": {perSecond, 1},
	"steps/s":   {perSecond, 1},

	"removals/s":  {perSecond, 1},
	"deletions/s": {perSecond, 1},

	"records/commit": {number, 1},
	"questions/log":  {number, 1},
	"bytes/segment":  {octets, 1},

	"ns/segment-of-1000":   {seconds, 1e-9},
	"ns/segment-of-10000":  {seconds, 1e-9},
	"ns/segment-of-100000": {seconds, 1e-9},
}

// rows runs the benchmarks and makes the comparisons.
func (s *subject) rows(b *bench) ([]row, error) {
	binary, err := b.compile(s.pkg)
	if err != nil {
		return nil, err
	}
	rounds := s.rounds
	if rounds == 0 {
		rounds = b.rounds
	}
	found := results{}
	for round := range rounds {
		b.say("  %d/%d %s %s", round+1, rounds, s.pkg, s.pattern)
		output, err := b.goBench(binary, s)
		if err == nil {
			err = found.read(output)
		}
		if err != nil {
			return nil, err
		}
	}
	var out []row
	for _, c := range s.comparisons {
		mine, err := found.figures(c.tierd, rounds)
		var others []figure
		if err == nil && c.against != "" {
			others, err = found.figures(c.other, rounds)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, compared(c.what, mine, c.against, others, c.target))
	}
	return out, nil
}

// compile makes the package's test binary.
func (b *bench) compile(pkg string) (string, error) {
	binary := filepath.Join(b.dir, strings.ReplaceAll(pkg, "/", "-")+".test")
	cmd := exec.CommandContext(b.ctx, "go", "test", "-c", "-o", binary, "./"+pkg)
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile the tests of %s: %w\n%s", pkg, err, said)
	}
	return binary, nil
}

// goBench runs the benchmarks once, as "go test" does: in the package's directory.
func (b *bench) goBench(binary string, s *subject) (string, error) {
	cmd := exec.CommandContext(b.ctx, binary, "-test.run", "^$", "-test.bench", s.pattern,
		"-test.benchtime", s.time, "-test.timeout", "20m")
	cmd.Dir = s.pkg
	cmd.Env = append(os.Environ(), "TMPDIR="+b.dir)
	output, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("benchmarks of %s: %w\n%s", s.pkg, err, output)
	}
	return string(output), nil
}

// results has the numbers of each metric, one for each round.
type results map[metric][]float64

// read takes the lines of a run in:
//
//	BenchmarkAppend/callers=10-2    9752    1283140 ns/op    5.400 records/commit
//
// Source: https://go.dev/design/14313-benchmark-format.
func (r results) read(output string) error {
	lines := bufio.NewScanner(strings.NewReader(output))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 4 || !strings.HasPrefix(words[0], "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(words[0], "Benchmark")
		if i := strings.LastIndexByte(name, '-'); i >= 0 { // the number of processors, unless it is 1
			if _, err := strconv.Atoi(name[i+1:]); err == nil {
				name = name[:i]
			}
		}
		for i := 2; i+1 < len(words); i += 2 {
			v, err := strconv.ParseFloat(words[i], 64)
			if err != nil {
				return fmt.Errorf("%q: %w", lines.Text(), err)
			}
			m := metric{name, words[i+1]}
			r[m] = append(r[m], v)
		}
	}
	return lines.Err()
}

// figures returns the metric's number of each round.
func (r results) figures(m metric, rounds int) ([]figure, error) {
	known, ok := units[m.unit]
	if !ok {
		return nil, fmt.Errorf("%s of %s: no such unit", m.unit, m.bench)
	}
	if len(r[m]) != rounds {
		return nil, fmt.Errorf("%s of Benchmark%s was printed %d times, want %d", m.unit,
			m.bench, len(r[m]), rounds)
	}
	out := make([]figure, rounds)
	for i, v := range r[m] {
		out[i] = figure{Value: v * known.scale, Unit: known.unit}
	}
	return out, nil
}
