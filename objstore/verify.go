package objstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/tierd/tierd/runtime/tier"
)

// sampleBytes is the size of the three blocks that VerifySample compares.
const sampleBytes = 64 << 10

// streamBytes is how much of an object one request of VerifyFull reads: little enough for one
// deadline and for a repetition, enough that requests cost nothing.
const streamBytes = 32 << 20

// bufferBytes is the memory that a verification takes.
const bufferBytes = 256 << 10

// buffers are of *[bufferBytes]byte. All stores of a process share them.
var buffers = sync.Pool{New: func() any { return new([bufferBytes]byte) }}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// StatFile checks that the object is there with the size.
func (s *Store) StatFile(ctx context.Context, k tier.ObjectKey, size int64) error {
	key, err := s.keys.File(k)
	if err != nil {
		return err
	}
	return s.stat(ctx, key, size)
}

func (s *Store) stat(ctx context.Context, key string, size int64) error {
	a, err := s.bucket.Attributes(ctx, key)
	if err != nil {
		return s.missing(ctx, "stat", key, err)
	}
	if a.Size != size {
		return fmt.Errorf("stat %s: %d bytes, want %d: %w", key, a.Size, size, tier.ErrDamaged)
	}
	return nil
}

// VerifyFile compares the stored object with the digest: its size always, and of its content what
// mode says, read back. VerifySample compares the head, the tail and one block between them, whose
// place follows from the SHA-256, with the same bytes of local; of a small file all of it, with the
// digest. VerifyFull compares checksums of every byte, and local may be nil. A missing object is
// tier.ErrVanished, a wrong one tier.ErrDamaged; any other error leaves the question open.
func (s *Store) VerifyFile(ctx context.Context, k tier.ObjectKey, d tier.FileDigest,
	mode tier.VerifyMode, local io.ReaderAt) error {
	key, err := s.keys.File(k)
	if err != nil {
		return err
	}
	switch mode {
	case tier.VerifySize, tier.VerifyFull:
	case tier.VerifySample:
		if local == nil {
			return fmt.Errorf("verify %s: mode sample needs the local file", key)
		}
	default:
		return fmt.Errorf("verify %s: mode %q: want size, sample or full", key, mode)
	}
	if err := s.stat(ctx, key, d.Size); err != nil {
		return err
	}
	// A range of an empty object is refused by stores, and there is nothing to compare.
	if d.Size == 0 && mode != tier.VerifyFull {
		return nil
	}
	switch {
	case mode == tier.VerifyFull, mode == tier.VerifySample && d.Size <= wholeBytes:
		return s.verifyFull(ctx, key, d)
	case mode == tier.VerifySample:
		return s.verifySample(ctx, key, d, local)
	}
	return nil
}

// wholeBytes is up to which size a sample is the whole object. Then it is compared with the digest:
// the local file may have other bytes than when it was checked, and the upload, too.
const wholeBytes = 3 * sampleBytes

// sampleBlocks are the ranges that a sample compares of a file of more than wholeBytes.
func sampleBlocks(d tier.FileDigest) []tier.Range {
	size := tier.Offset(d.Size)
	room := uint64(size - wholeBytes)
	middle := sampleBytes + tier.Offset(binary.BigEndian.Uint64(d.SHA256[:8])%(room+1))
	return []tier.Range{
		{Base: 0, Next: sampleBytes},
		{Base: middle, Next: middle + sampleBytes},
		{Base: size - sampleBytes, Next: size},
	}
}

func (s *Store) verifySample(ctx context.Context, key string, d tier.FileDigest,
	local io.ReaderAt) error {
	for _, block := range sampleBlocks(d) {
		want := make([]byte, block.Next-block.Base)
		n, err := local.ReadAt(want, int64(block.Base))
		if n < len(want) {
			if err == io.EOF {
				err = tier.ErrChanged
			}
			return fmt.Errorf("verify %s: the local file at %d: %w", key, block.Base, err)
		}
		at := int64(block.Base)
		err = s.stream(ctx, key, block, func(got []byte) error {
			part := want[at-int64(block.Base):][:len(got)]
			if i := difference(got, part); i >= 0 {
				return fmt.Errorf("differs from the local file at byte %d: %w",
					at+int64(i), tier.ErrDamaged)
			}
			at += int64(len(got))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// difference is the index of the first byte that differs between a and b, which have one length;
// -1 if none does.
func difference(a, b []byte) int {
	if bytes.Equal(a, b) {
		return -1
	}
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

func (s *Store) verifyFull(ctx context.Context, key string, d tier.FileDigest) error {
	sha, crc := sha256.New(), crc32.New(castagnoli)
	for at := int64(0); at < d.Size; at += streamBytes {
		part := tier.Range{Base: tier.Offset(at), Next: tier.Offset(min(at+streamBytes, d.Size))}
		err := s.stream(ctx, key, part, func(got []byte) error {
			sha.Write(got)
			crc.Write(got)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if got := tier.SHA256(sha.Sum(nil)); got != d.SHA256 {
		return fmt.Errorf("verify %s: sha256 %s, want %s: %w", key, got, d.SHA256, tier.ErrDamaged)
	}
	if got := crc.Sum32(); got != d.CRC32C {
		return fmt.Errorf("verify %s: crc32c %08x, want %08x: %w", key, got, d.CRC32C, tier.ErrDamaged)
	}
	return nil
}

// stream gives exactly the bytes of the range to f, in pieces. A store that gives fewer or more is
// tier.ErrDamaged. The error names the key.
func (s *Store) stream(ctx context.Context, key string, r tier.Range, f func([]byte) error) error {
	want := int64(r.Next - r.Base)
	rc, err := s.bucket.GetRange(ctx, key, int64(r.Base), want)
	if err != nil {
		return s.missing(ctx, "get", key, err)
	}
	buf := buffers.Get().(*[bufferBytes]byte)
	err = pieces(rc, want, buf[:], f)
	buffers.Put(buf)
	closeErr := rc.Close()
	switch {
	case errors.Is(err, tier.ErrDamaged):
		return fmt.Errorf("verify %s: %w", key, err)
	case err != nil || closeErr != nil:
		return s.missing(ctx, "get", key, join(err, closeErr))
	}
	return nil
}

func pieces(r io.Reader, want int64, buf []byte, f func([]byte) error) error {
	buf = buf[:min(want+1, int64(len(buf)))] // one byte more than right, to notice that
	done := int64(0)
	for empty := 0; ; {
		n, err := r.Read(buf)
		if done += int64(n); done > want {
			return fmt.Errorf("the store gives more than the %d bytes asked for: %w",
				want, tier.ErrDamaged)
		}
		if n > 0 {
			if err := f(buf[:n]); err != nil {
				return err
			}
			empty = 0
		} else if empty++; empty > 100 {
			return io.ErrNoProgress
		}
		switch {
		case err == io.EOF && done < want:
			return fmt.Errorf("the store gives %d of %d bytes: %w", done, want, tier.ErrDamaged)
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}
