package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// copyTarget is the throughput that copying must have, relative to the tools that do its work one
// after the other without its guarantees.
const copyTarget = 0.9

// contender copies, makes durable and hashes the segments of a source.
type contender struct {
	name string
	run  func(*bench, *source) (figure, error)
}

// copyContenders are measured by turns. The first two are what tierd is compared with.
var copyContenders = []contender{
	{"`cp`, `sync` of each file, `sha256sum`", (*bench).tools},
	{"the same steps in turn, in Go", (*bench).steps},
	{"verify: sample", func(b *bench, s *source) (figure, error) { return b.once(s, "sample") }},
	{"verify: full", func(b *bench, s *source) (figure, error) { return b.once(s, "full") }},
}

// copyRows compares "tierd run --once" on an empty data_dir and bucket with the others.
func (s *source) copyRows(b *bench) ([]row, error) {
	if err := s.make(filepath.Join(b.dir, "source")); err != nil {
		return nil, fmt.Errorf("make %s: %w", s.what, err)
	}
	figures, err := b.byTurns(s)
	if err != nil {
		return nil, err
	}
	return compare(s, figures), errors.Join(b.clear(), os.RemoveAll(s.dir))
}

// byTurns lets the contenders copy the source, all of them in each round, and returns what each
// took. Which one begins changes: what the one before left to the disk must not burden always the
// same.
func (b *bench) byTurns(s *source) ([][]figure, error) {
	out := make([][]figure, len(copyContenders))
	for round := range b.rounds {
		for i := range copyContenders {
			i = (i + round) % len(copyContenders)
			if err := b.settle(s); err != nil {
				return nil, err
			}
			f, err := copyContenders[i].run(b, s)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", s.what, copyContenders[i].name, err)
			}
			f = rate(s.bytes, f)
			b.say("  %d/%d %s, %s: %s", round+1, b.rounds, s.what, copyContenders[i].name, f)
			out[i] = append(out[i], f)
		}
	}
	return out, nil
}

// compare makes the rows of one source.
func compare(s *source, figures [][]figure) []row {
	var rows []row
	for t, tierd := range copyContenders[2:] {
		for o, other := range copyContenders[:2] {
			var promised *target
			if o == 0 {
				promised = atLeast(copyTarget)
			}
			rows = append(rows, compared(fmt.Sprintf("copy %s, %s", s.what, tierd.name),
				figures[2+t], other.name, figures[o], promised))
		}
	}
	return rows
}
