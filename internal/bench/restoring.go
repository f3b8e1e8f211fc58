package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// restoreTarget is the throughput that restoring must have, relative to the tools that copy the
// same files, make them durable and hash them.
const restoreTarget = 0.8

// restoreRows compares "tierd restore" from a local bucket with those tools.
func (s *source) restoreRows(b *bench) ([]row, error) {
	if err := s.make(filepath.Join(b.dir, "source")); err != nil {
		return nil, fmt.Errorf("make %s: %w", s.what, err)
	}
	// Kept beside what the rounds write: all of them restore from the same bucket.
	archive := filepath.Join(b.dir, "archive")
	path := filepath.Join(b.dir, "restore.yaml")
	bucket := filepath.Join(archive, "bucket")
	text := fmt.Sprintf(config, filepath.Join(archive, "data"), s.layout, s.dir, bucket, "size")
	err := errors.Join(os.MkdirAll(bucket, 0o777), os.WriteFile(path, []byte(text), 0o666))
	if err != nil {
		return nil, err
	}
	if _, err := timed(b.copying(path)); err != nil {
		return nil, err
	}
	var mine, others []figure
	for round := range b.rounds {
		turns := []func() error{
			func() error {
				f, err := b.tools(s)
				others = append(others, rate(s.bytes, f))
				return err
			},
			func() error {
				f, err := timed(exec.CommandContext(b.ctx, b.tierd, "restore", "orders", "--config", path,
					"--to", b.mine("restored")))
				mine = append(mine, rate(s.bytes, f))
				return err
			},
		}
		for i := range turns {
			if err := b.settle(s); err != nil {
				return nil, err
			}
			// The objects are in the page cache too, as the originals are for the tools.
			if err := walkFiles([]string{bucket}, func(path string, _ int64) error {
				_, err := hashFile(path)
				return err
			}); err != nil {
				return nil, err
			}
			if err := turns[(i+round)%len(turns)](); err != nil {
				return nil, err
			}
		}
		b.say("  %d/%d restore %s: %s, by the tools %s", round+1, b.rounds, s.what, mine[round],
			others[round])
	}
	rows := []row{compared("restore "+s.what, mine, copyContenders[0].name, others,
		atLeast(restoreTarget))}
	return rows, errors.Join(b.clear(), os.RemoveAll(s.dir), os.RemoveAll(archive))
}
