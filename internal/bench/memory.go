package main

import (
	"errors"
	"os"
	"path/filepath"
)

// memoryRows compares the peak memory of copying a small segment with that of a huge one, read
// back in full. The memory is what the kernel counted when the process ended. It counts from before
// the command took over the process, when the memory was this program's: which must be little.
func memoryRows(b *bench) ([]row, error) {
	var peaks []figure
	for _, s := range memorySources {
		if err := s.make(filepath.Join(b.dir, "source")); err != nil {
			return nil, err
		}
		if err := b.settle(s); err != nil {
			return nil, err
		}
		f, err := b.peak(s, "full")
		if err != nil {
			return nil, err
		}
		b.say("  %s: %s", s.what, f)
		peaks = append(peaks, f)
		if err := errors.Join(b.clear(), os.RemoveAll(s.dir)); err != nil {
			return nil, err
		}
	}
	return []row{compared("peak memory, copying a segment of 4 GiB, verify: full", peaks[1:],
		"a segment of 64 MiB", peaks[:1], figureUpTo(128))}, nil
}
