package objstore

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/tier"
)

var modes = []tier.VerifyMode{tier.VerifySize, tier.VerifySample, tier.VerifyFull}

func TestVerifyFindsWhatItSaysItFinds(t *testing.T) {
	t.Parallel()
	content := noise(1 << 20)
	d := digest("f", content)
	blocks := sampleBlocks(d)
	middle := int(blocks[1].Base)
	// A byte that no block of the sample holds.
	outside := sampleBytes
	if blocks[1].Contains(tier.Offset(outside)) {
		outside = len(content) - sampleBytes - 1
	}
	tests := []struct {
		name   string
		mangle func([]byte) []byte
		found  map[tier.VerifyMode]bool
	}{
		{"sound", fault.Cut(len(content)), nil},
		{"one byte short", fault.Cut(len(content) - 1), map[tier.VerifyMode]bool{
			tier.VerifySize: true, tier.VerifySample: true, tier.VerifyFull: true}},
		{"one byte more", fault.Pad(1), map[tier.VerifyMode]bool{
			tier.VerifySize: true, tier.VerifySample: true, tier.VerifyFull: true}},
		{"empty", fault.Cut(0), map[tier.VerifyMode]bool{
			tier.VerifySize: true, tier.VerifySample: true, tier.VerifyFull: true}},
		{"first byte", fault.Flip(0), map[tier.VerifyMode]bool{
			tier.VerifySample: true, tier.VerifyFull: true}},
		{"last byte", fault.Flip(-1), map[tier.VerifyMode]bool{
			tier.VerifySample: true, tier.VerifyFull: true}},
		{"first byte of the middle block", fault.Flip(middle), map[tier.VerifyMode]bool{
			tier.VerifySample: true, tier.VerifyFull: true}},
		{"last byte of the middle block", fault.Flip(middle + sampleBytes - 1),
			map[tier.VerifyMode]bool{tier.VerifySample: true, tier.VerifyFull: true}},
		{"a byte outside the sample", fault.Flip(outside), map[tier.VerifyMode]bool{
			tier.VerifyFull: true}},
	}
	k := file(0, "f")
	for _, test := range tests {
		b := newBench(t)
		b.mem.Put(fileKey(t, b.Store, k), test.mangle(content))
		for _, mode := range modes {
			err := b.VerifyFile(t.Context(), k, d, mode, at(content))
			if test.found[mode] != errors.Is(err, tier.ErrDamaged) || !test.found[mode] && err != nil {
				t.Errorf("%s, verify %s: %v", test.name, mode, err)
			}
			if err != nil && !strings.Contains(err.Error(), fileKey(t, b.Store, k)) {
				t.Errorf("%s, verify %s: %v does not name the key", test.name, mode, err)
			}
		}
		err := b.StatFile(t.Context(), k, d.Size)
		if test.found[tier.VerifySize] != errors.Is(err, tier.ErrDamaged) {
			t.Errorf("%s, stat: %v", test.name, err)
		}
	}
}

func TestVerifyOfAMissingObject(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	k := file(0, "f")
	for _, mode := range modes {
		err := b.VerifyFile(t.Context(), k, tier.FileDigest{Size: 10}, mode, at(noise(10)))
		if !errors.Is(err, tier.ErrVanished) || !strings.Contains(err.Error(), fileKey(t, b.Store, k)) {
			t.Errorf("verify %s: %v", mode, err)
		}
	}
	// It goes between two looks.
	content := noise(10)
	b.mem.Put(fileKey(t, b.Store, k), content)
	b.faults.SetHook(fault.On(fault.OpGetRange, fault.Effect{Err: fault.ErrNotFound}))
	err := b.VerifyFile(t.Context(), k, digest("f", content), tier.VerifyFull, nil)
	if !errors.Is(err, tier.ErrVanished) {
		t.Errorf("gone after its size was seen: %v", err)
	}
}

func TestVerifyNoticesBadReads(t *testing.T) {
	t.Parallel()
	content := noise(300 << 10)
	d := digest("f", content)
	k := file(0, "f")
	b := newBench(t)
	if err := b.PutFile(t.Context(), k, at(content), d.Size); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []tier.VerifyMode{tier.VerifySample, tier.VerifyFull} {
		for name, mangle := range map[string]func([]byte) []byte{
			"short": fault.Cut(100), "long": fault.Pad(1), "empty": fault.Cut(0), "wrong": fault.Flip(77),
			"much too long":  fault.Pad(10 << 20),
			"one byte short": func(data []byte) []byte { return data[:len(data)-1] },
		} {
			b.faults.SetHook(fault.On(fault.OpGetRange, fault.Effect{Mangle: mangle}))
			err := b.VerifyFile(t.Context(), k, d, mode, at(content))
			if !errors.Is(err, tier.ErrDamaged) {
				t.Errorf("verify %s, %s read: %v", mode, name, err)
			}
		}
		// What breaks off leaves the question open.
		torn := fault.Effect{Mangle: fault.Cut(100), Err: io.ErrUnexpectedEOF}
		b.faults.SetHook(fault.On(fault.OpGetRange, torn))
		err := b.VerifyFile(t.Context(), k, d, mode, at(content))
		if !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, tier.ErrDamaged) {
			t.Errorf("verify %s, broken off: %v", mode, err)
		}
	}
}

func TestVerifyFullChecksBothSums(t *testing.T) {
	t.Parallel()
	content := noise(1000)
	k := file(0, "f")
	b := newBench(t)
	if err := b.PutFile(t.Context(), k, at(content), 1000); err != nil {
		t.Fatal(err)
	}
	sha, crc := digest("f", content), digest("f", content)
	sha.SHA256[0] ^= 1
	crc.CRC32C ^= 1
	for name, d := range map[string]tier.FileDigest{"sha256": sha, "crc32c": crc} {
		err := b.VerifyFile(t.Context(), k, d, tier.VerifyFull, nil)
		if !errors.Is(err, tier.ErrDamaged) || !strings.Contains(err.Error(), name) {
			t.Errorf("wrong %s: %v", name, err)
		}
	}
	empty := tier.FileDigest{Name: "e"}
	if err := b.PutFile(t.Context(), file(0, "e"), at(nil), 0); err != nil {
		t.Fatal(err)
	}
	err := b.VerifyFile(t.Context(), file(0, "e"), empty, tier.VerifyFull, nil)
	if !errors.Is(err, tier.ErrDamaged) {
		t.Errorf("an empty object with a wrong sha256: %v", err)
	}
}

// A file of many requests, with a size that no block divides.
func TestVerifyFullAcrossRequests(t *testing.T) {
	t.Parallel()
	content := make([]byte, streamBytes+streamBytes/2+1)
	copy(content[streamBytes-100:], noise(200))
	k := file(0, "f")
	b := newBench(t)
	if err := b.PutFile(t.Context(), k, at(content), int64(len(content))); err != nil {
		t.Fatal(err)
	}
	before := b.faults.Calls()
	d := digest("f", content)
	if err := b.VerifyFile(t.Context(), k, d, tier.VerifyFull, nil); err != nil {
		t.Error(err)
	}
	if n := b.faults.Calls() - before; n != 3 {
		t.Errorf("%d calls, want 3: the size and two ranges", n)
	}
}

func TestVerifySampleNeedsTheLocalFile(t *testing.T) {
	t.Parallel()
	content := noise(wholeBytes + 1000)
	d := digest("f", content)
	k := file(0, "f")
	b := newBench(t)
	if err := b.PutFile(t.Context(), k, at(content), d.Size); err != nil {
		t.Fatal(err)
	}
	if err := b.VerifyFile(t.Context(), k, d, tier.VerifySample, nil); err == nil {
		t.Error("without a local file: no error")
	}
	if err := b.VerifyFile(t.Context(), k, d, "some", at(content)); err == nil {
		t.Error("an unknown mode: no error")
	}
	err := b.VerifyFile(t.Context(), k, d, tier.VerifySample, at(content[:d.Size-1]))
	if !errors.Is(err, tier.ErrChanged) || errors.Is(err, tier.ErrDamaged) {
		t.Errorf("a local file that shrank: %v; want ErrChanged, and nothing of the object", err)
	}
	broken := readerFunc(func([]byte, int64) (int, error) { return 0, errBoom })
	err = b.VerifyFile(t.Context(), k, d, tier.VerifySample, broken)
	if !errors.Is(err, errBoom) || errors.Is(err, tier.ErrDamaged) {
		t.Errorf("a local file that cannot be read: %v", err)
	}
}

// A sample of a small file is all of it, and is compared with what was checked, and not with what
// the disk gives now: what rots between check and upload is the same in both.
func TestVerifySampleOfASmallFileNeedsNoSoundLocalFile(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 1000, wholeBytes} {
		content := noise(size)
		d := digest("f", content)
		k := file(0, "f")
		b := newBench(t)
		rotten := at(fault.Flip(size / 2)(slices.Clone(content)))
		if err := b.PutFile(t.Context(), k, rotten, d.Size); err != nil {
			t.Fatal(err)
		}
		err := b.VerifyFile(t.Context(), k, d, tier.VerifySample, rotten)
		if !errors.Is(err, tier.ErrDamaged) {
			t.Errorf("%d bytes rotted before their upload: %v", size, err)
		}
		if err := b.PutFile(t.Context(), k, at(content), d.Size); err != nil {
			t.Fatal(err)
		}
		if err := b.VerifyFile(t.Context(), k, d, tier.VerifySample, rotten); err != nil {
			t.Errorf("%d bytes rotted after their upload: %v", size, err)
		}
	}
}

type readerFunc func([]byte, int64) (int, error)

func (f readerFunc) ReadAt(p []byte, off int64) (int, error) { return f(p, off) }

// Head and tail always, three separate blocks within the file, and the same ones each time.
func TestSampleBlocks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := tier.FileDigest{Size: rapid.Int64Range(wholeBytes+1, 1<<40).Draw(t, "size")}
		copy(d.SHA256[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "sha256"))
		blocks := sampleBlocks(d)
		var total, end tier.Offset
		for _, r := range blocks {
			if r.Empty() || r.Base < end {
				t.Fatalf("blocks %v of %d bytes", blocks, d.Size)
			}
			total, end = total+r.Next-r.Base, r.Next
		}
		if blocks[0].Base != 0 || end != tier.Offset(d.Size) ||
			total != wholeBytes {
			t.Fatalf("blocks %v of %d bytes", blocks, d.Size)
		}
	})
}
