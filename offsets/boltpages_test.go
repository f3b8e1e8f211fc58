package offsets

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierd/tierd/runtime/tier"
)

const pageBytes = 4096

// pageFile is the bytes of a bbolt file, to be damaged with care.
type pageFile struct {
	b []byte
	// of the pages with a certain role:
	freelist, branch, leaf, free uint64
}

// pagesOf reads the file of a closed ledger, and finds a page of each role.
func pagesOf(t *testing.T, path string) *pageFile {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := &pageFile{b: b}
	f.freelist = f.u64(f.newest() + 32)
	head := int(f.freelist)*pageBytes + pageHeaderBytes
	f.free = f.u64(head)
	pages := f.u64(f.newest() + 40)
	isFree := map[uint64]bool{}
	for i := range int(binary.NativeEndian.Uint16(b[head-6:])) {
		isFree[f.u64(head+8*i)] = true
	}
	for id := uint64(2); id < pages; id++ {
		switch flags := binary.NativeEndian.Uint16(b[id*pageBytes+8:]); {
		case isFree[id]:
		case flags == flagBranch:
			f.branch = id
		case flags == flagLeaf:
			f.leaf = id
		}
	}
	if f.branch == 0 || f.leaf == 0 || f.free == 0 {
		t.Fatalf("the file lacks pages: branch %d, leaf %d, free %d", f.branch, f.leaf, f.free)
	}
	return f
}

// newest is where the valid meta with the higher transaction begins.
func (f *pageFile) newest() int {
	first, second := pageHeaderBytes, pageBytes+pageHeaderBytes
	if f.u64(first+48) > f.u64(second+48) {
		return first
	}
	return second
}

func (f *pageFile) u64(at int) uint64       { return binary.NativeEndian.Uint64(f.b[at:]) }
func (f *pageFile) put64(at int, v uint64)  { binary.NativeEndian.PutUint64(f.b[at:], v) }
func (f *pageFile) at(page uint64) int      { return int(page) * pageBytes }
func (f *pageFile) element(page uint64) int { return f.at(page) + pageHeaderBytes }

// addFree names one more free page.
func (f *pageFile) addFree(id uint64) {
	n := binary.NativeEndian.Uint16(f.b[f.at(f.freelist)+10:])
	binary.NativeEndian.PutUint16(f.b[f.at(f.freelist)+10:], n+1)
	f.put64(f.element(f.freelist)+8*int(n), id)
}

// TestPages damages one thing of a file's structure at a time.
func TestPages(t *testing.T) {
	t.Parallel()
	l, m := onDisk(t, 60)
	path := m.path
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		says   string // "" where nothing is wrong
		damage func(f *pageFile)
	}{
		{"nothing", "", func(*pageFile) {}},
		{"a free page may hold anything", "", func(f *pageFile) {
			clear(f.b[f.at(f.free):][:pageBytes])
		}},
		{"a page in use is listed as free", "is free, and in use", func(f *pageFile) {
			f.addFree(f.leaf)
		}},
		{"a page is listed as free twice", "is free, and in use", func(f *pageFile) {
			f.addFree(f.free)
		}},
		{"a page that is not there is listed as free", "or not there", func(f *pageFile) {
			f.addFree(1 << 40)
		}},
		{"a free page is not listed", "neither in use nor free", func(f *pageFile) {
			binary.NativeEndian.PutUint16(f.b[f.at(f.freelist)+10:], 0)
		}},
		{"the free list is too long", "more free pages than it has room for", func(f *pageFile) {
			binary.NativeEndian.PutUint16(f.b[f.at(f.freelist)+10:], 4000)
		}},
		{"a branch leads to itself", "is in use twice", func(f *pageFile) {
			f.put64(f.element(f.branch)+8, f.branch)
		}},
		{"a branch leads to a free page", "damaged: page", func(f *pageFile) {
			f.put64(f.element(f.branch)+8, f.free)
		}},
		{"a branch leads out of the file", "is referred to, but there are", func(f *pageFile) {
			f.put64(f.element(f.branch)+8, 1<<50)
		}},
		{"a branch has no children", "has no children", func(f *pageFile) {
			binary.NativeEndian.PutUint16(f.b[f.at(f.branch)+10:], 0)
		}},
		{"a page takes its neighbour in", "is in use twice", func(f *pageFile) {
			first := min(f.leaf, f.branch, f.freelist)
			last := max(f.leaf, f.branch, f.freelist)
			binary.NativeEndian.PutUint32(f.b[f.at(first)+12:], uint32(last-first))
		}},
		{"a page is called by another number", "says that it is page", func(f *pageFile) {
			f.put64(f.at(f.leaf), f.leaf+1)
		}},
		{"a leaf has more elements than room", "more elements than room", func(f *pageFile) {
			binary.NativeEndian.PutUint16(f.b[f.at(f.leaf)+10:], 5000)
		}},
		{"a key lies outside of its page", "outside of it", func(f *pageFile) {
			binary.NativeEndian.PutUint32(f.b[f.element(f.leaf)+4:], 5000)
		}},
		{"a key is larger than its page", "outside of it", func(f *pageFile) {
			binary.NativeEndian.PutUint32(f.b[f.element(f.leaf)+8:], 1<<31)
		}},
		{"a leaf became something else", "unexpected type", func(f *pageFile) {
			f.b[f.at(f.leaf)+8] = 0x40
		}},
		{"a value became a bucket", "unexpected element", func(f *pageFile) {
			f.b[f.element(f.leaf)] = 2
		}},
		{"both metas are gone", "invalid database", func(f *pageFile) { clear(f.b[:2*pageBytes]) }},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := pagesOf(t, path)
			tc.damage(f)
			file := filepath.Join(t.TempDir(), "ledger.db")
			if err := os.WriteFile(file, f.b, 0o600); err != nil {
				t.Fatal(err)
			}
			m, err := OpenBolt(file, BoltOptions{})
			if err == nil {
				m.Close()
			}
			if tc.says == "" {
				if err != nil {
					t.Errorf("a sound file: got error %v", err)
				}
				return
			}
			if !errors.Is(err, tier.ErrDamaged) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got error %v, want damage: %q", err, tc.says)
			}
		})
	}
}
