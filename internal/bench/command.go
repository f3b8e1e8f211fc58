package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// config is what the measured command runs with: the defaults, but for what is the matter here.
// Nothing expires, whatever the timestamps say.
const config = `data_dir: %q
sources: [{name: source, layout: %s, path: %q, local_delete: never}]
bucket: {type: FILESYSTEM, config: {directory: %q}}
defaults: {table.log.ttl: 0}
copy: {verify: %s}
`

// once lets tierd copy the source in one pass, and sees that it did.
func (b *bench) once(s *source, verify string) (figure, error) {
	f, _, err := b.pass(s, verify)
	return f, err
}

// peak lets tierd copy the source and returns the most memory that it held at one time.
func (b *bench) peak(s *source, verify string) (figure, error) {
	_, ended, err := b.pass(s, verify)
	if err != nil {
		return figure{}, err
	}
	usage, ok := ended.SysUsage().(*syscall.Rusage)
	if !ok {
		return figure{}, fmt.Errorf("the system does not say how much memory %s took", b.tierd)
	}
	return figure{Value: float64(usage.Maxrss) / 1024, Unit: mebibytes}, nil // Linux counts KiB
}

// pass is one pass of tierd over the source, checked, with its time and its ended process.
func (b *bench) pass(s *source, verify string) (figure, *os.ProcessState, error) {
	path := filepath.Join(b.dir, "tierd.yaml")
	text := fmt.Sprintf(config, b.data(), s.layout, s.dir, b.bucket(), verify)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		return figure{}, nil, err
	}
	cmd := b.copying(path)
	f, err := timed(cmd)
	if err == nil {
		err = b.check(s)
	}
	return f, cmd.ProcessState, err
}

// copying is the command that copies what there is, and ends.
func (b *bench) copying(config string) *exec.Cmd {
	return exec.CommandContext(b.ctx, b.tierd, "run", "--once", "--config", config,
		"--log-level", "warn")
}

// check sees that the bucket holds as many files of segments as the source, and as many bytes. What
// is in them, tierd has checked.
func (b *bench) check(s *source) error {
	var files int
	var bytes int64
	err := walkFiles([]string{b.bucket()}, func(path string, size int64) error {
		if !strings.HasSuffix(path, ".json") {
			files++
			bytes += size
		}
		return nil
	})
	if err == nil && (files != s.files || bytes != s.bytes) {
		err = fmt.Errorf("%s: the bucket has %d files of %d bytes, want %d of %d", s.what, files,
			bytes, s.files, s.bytes)
	}
	return err
}
