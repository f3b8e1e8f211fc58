package logdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/tierd/tierd/runtime/logdir/kbatch"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// readEpochs reads the leader epochs that the partition in dir keeps on record; none where it keeps
// none. What cannot be read says nothing: it is a witness, and the batches are the truth.
func readEpochs(root vfs.Dir, dir string) ([]tier.EpochStart, error) {
	text, err := readText(root, path.Join(dir, fileLeaderEpochs))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseEpochs(fileLeaderEpochs, text)
}

// Batches calls fn with the offsets [base, next) and the leader epoch of each batch on disk that
// has an offset in r, ascending, also in the segment that still grows; an error of fn ends the
// walk. It goes by headers alone, also of a batch that is cut short: the checksum of a batch does
// not cover its epoch. A batch of an old magic is of tier.NoLeaderEpoch; files of which tierd does
// not know what is in them have no batches. An error wraps tier.ErrChanged or tier.ErrVanished
// where the log was written meanwhile.
func (s *Source) Batches(ctx context.Context, id tier.LogID, r tier.Range,
	fn func(batch tier.Range, epoch tier.LeaderEpoch) error) (err error) {
	format, ok := kbatch.FormatOf(s.cfg.Layout)
	if !ok {
		return nil
	}
	root, err := s.root()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	dir, infos, err := s.locate(root, id)
	if err != nil {
		return err
	}
	l := s.layout.group(infos)
	if !l.whole {
		return fmt.Errorf("log %s: not everything of it can be read", id)
	}
	for i, seg := range l.segments {
		next, followed := l.next(i)
		if seg.base >= r.Next || followed && next <= r.Base {
			continue
		}
		if err := walkBatches(ctx, root, format, path.Join(dir, seg.name), r, fn); err != nil {
			return fmt.Errorf("segment %s: %w", seg.name, gone(err))
		}
	}
	return nil
}

// walkBatches goes through one segment, up to its end or to what is no batch. One that is cut short
// is the last: its header, if that is whole, says whose it is.
func walkBatches(ctx context.Context, root vfs.Dir, format kbatch.Format, name string, r tier.Range,
	fn func(tier.Range, tier.LeaderEpoch) error) (err error) {
	file, err := root.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	var pos int64
	var end tier.Offset
	for pos < info.Size { // every step goes forward by at least the smallest batch
		if err := ctx.Err(); err != nil {
			return err
		}
		b, err := format.Next(file, pos, info.Size)
		if errors.Is(err, kbatch.ErrTorn) && b.Size > 0 {
			err = nil // only its records are not whole
		}
		if errors.Is(err, tier.ErrDamaged) || err == nil && b.Base < end || b.Base >= r.Next {
			return nil // it is being written, or lies beyond; damage is for the copy to find
		}
		if err != nil {
			return err
		}
		pos, end = pos+b.Size, b.Next()
		if end <= r.Base {
			continue
		}
		if err := fn(tier.Range{Base: b.Base, Next: end}, b.Epoch); err != nil {
			return err
		}
	}
	return nil
}
