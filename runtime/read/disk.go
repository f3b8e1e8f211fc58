package read

import (
	"cmp"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"
	"strings"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// castagnoli never changes; making it once lets the hardware instruction be used.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	chunkSuffix = ".v2"
	halfSuffix  = ".half" // of a file that is still being written
	sumBytes    = 4
)

// openDisk takes over what an earlier cache left, the newest first. Halves are removed, and chunks
// of another format.
func (x *Cache) openDisk() error {
	infos, err := x.c.Dir.List(".")
	if err != nil {
		return err
	}
	slices.SortStableFunc(infos, func(a, b vfs.Info) int { return cmp.Compare(a.ModTime, b.ModTime) })
	var gone []string
	for _, i := range infos {
		switch {
		case !i.Regular():
		case strings.HasSuffix(i.Name, chunkSuffix) && i.Size > sumBytes:
			x.disk.add(&kept{name: i.Name, size: i.Size, at: i.ModTime})
		default:
			gone = append(gone, i.Name)
		}
	}
	x.removeFiles(append(gone, x.disk.excess(x.c.DiskBytes, x.oldest())...))
	return nil
}

// fromDisk reads chunk n from its file into f, and tells when the store was asked for it. A file
// that is too old or not what was written is removed.
func (x *Cache) fromDisk(o object, n int64, f *flight) (at tier.Time, ok bool) {
	name := o.name(n)
	x.mu.Lock()
	k := x.disk.get(name)
	if k != nil && k.at < x.oldest() {
		x.disk.remove(name)
		x.mu.Unlock()
		x.removeFiles([]string{name})
		return 0, false
	}
	x.mu.Unlock()
	if k == nil {
		return 0, false
	}
	data, err := x.readFile(name, o.bytesOf(n))
	if err != nil {
		x.stats.diskErrors.Add(1)
		x.mu.Lock()
		x.disk.remove(name)
		x.mu.Unlock()
		x.removeFiles([]string{name})
		return 0, false
	}
	x.stats.diskHits.Add(1)
	f.data = data
	return k.at, true
}

func (x *Cache) readFile(name string, size int64) (data []byte, err error) {
	f, err := x.c.Dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buf := make([]byte, size+sumBytes)
	if _, err := io.ReadFull(f, buf); err != nil {
		return nil, err
	}
	data = buf[:size:size]
	if chunkSum(name, data) != binary.BigEndian.Uint32(buf[size:]) {
		return nil, tier.ErrDamaged
	}
	return data, nil
}

// chunkSum is the CRC32C of a chunk's name and bytes: a file that has the name of another is none.
func chunkSum(name string, data []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte(name), castagnoli), castagnoli, data)
}

// toDisk writes the chunks of the run to their files, and returns which others had to make room. A
// cache that cannot be written is one that does not help: nobody is told but the statistics.
func (x *Cache) toDisk(o object, n int64, run []*flight, at tier.Time) []string {
	if x.c.Dir == nil || x.c.DiskBytes <= 0 {
		return nil
	}
	for i, f := range run {
		name := o.name(n + int64(i))
		if err := x.writeFile(name, f.data); err != nil {
			x.stats.diskErrors.Add(1)
			continue
		}
		x.mu.Lock()
		x.disk.add(&kept{name: name, size: int64(len(f.data)) + sumBytes, at: at})
		x.mu.Unlock()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.disk.excess(x.c.DiskBytes, x.oldest())
}

// writeFile writes a chunk under a name of its own first: whoever reads it sees all of it or
// nothing. It is not synced, since a crash may well take it.
func (x *Cache) writeFile(name string, data []byte) (err error) {
	half := strings.TrimSuffix(name, chunkSuffix) + halfSuffix
	f, err := x.c.Dir.Create(half)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		_, err = f.Write(binary.BigEndian.AppendUint32(nil, chunkSum(name, data)))
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = x.c.Dir.Replace(half, name)
	}
	if err != nil {
		return errors.Join(err, x.c.Dir.Remove(half))
	}
	return nil
}

// removeFiles removes files that are in nobody's index any more. One that is not there is removed.
func (x *Cache) removeFiles(names []string) {
	for _, name := range names {
		if x.c.Dir == nil {
			return
		}
		if err := x.c.Dir.Remove(name); err != nil {
			x.stats.diskErrors.Add(1)
		}
	}
}
