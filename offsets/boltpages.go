package offsets

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"os"

	"github.com/tierd/tierd/runtime/tier"
)

// The pages of a bbolt file, as its format version 2 lays them out, in the byte order of the
// machine. bbolt itself checks little of this; its Check follows a circle of pages for ever.
//
//	page     id u64, flags u16, count u16, overflow u32, then what flags says
//	meta     magic u32, version u32, page size u32, flags u32, root bucket {page u64, sequence u64},
//	         freelist page u64, pages in use u64, transaction u64, FNV-1a of all that u64
//	branch   count times {key at u32, key size u32, child page u64}, then the keys
//	leaf     count times {flags u32, key at u32, key size u32, value size u32}, then the pairs
//	freelist count page ids u64; if count is 0xffff the first of them is the count
//
// "at" counts from the element itself. A leaf element with flag 1 is a bucket: its value begins
// {page u64, sequence u64}, and where page is 0 a leaf page follows in the value.
const (
	pageHeaderBytes = 16
	elementBytes    = 16
	bucketBytes     = 16
	metaBytes       = 64

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagFreelist = 0x10
	flagBucket   = 0x01

	boltMagic   = 0xED0CDAED
	boltVersion = 2
	noFreelist  = ^uint64(0)
	depthMax    = 64 // of a tree; each level at least doubles the pages
)

// pageCheck walks over all pages in use. Every one must be reached once: from the root bucket, or
// from the list of free pages.
type pageCheck struct {
	r        io.ReaderAt
	pageSize int
	pages    uint64 // in use or free; the file has at least as many
	seen     []bool
	buffers  [depthMax][]byte // the page of each level under way
}

// checkPages checks the structure of a bbolt file: that every page is where it belongs, and that
// every key can be found. It does not look at values. Errors wrap tier.ErrDamaged.
func checkPages(f *os.File, pageSize int) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	root, freelist, pages, err := newestMeta(f, pageSize)
	if err != nil {
		return err
	}
	if pages > uint64(info.Size())/uint64(pageSize) {
		return fmt.Errorf("%w: it has %d bytes, but %d pages of %d", tier.ErrDamaged, info.Size(),
			pages, pageSize)
	}
	c := &pageCheck{r: f, pageSize: pageSize, pages: pages, seen: make([]bool, pages)}
	c.seen[0], c.seen[1] = true, true
	if err := c.tree(root, nil, nil, 0); err != nil {
		return err
	}
	if err := c.free(freelist); err != nil {
		return err
	}
	for id, seen := range c.seen {
		if !seen {
			return damagedPage(uint64(id), "is neither in use nor free")
		}
	}
	return nil
}

func damagedPage(id uint64, format string, args ...any) error {
	return fmt.Errorf("%w: page %d %s", tier.ErrDamaged, id, fmt.Sprintf(format, args...))
}

// newestMeta reads the two meta pages and returns what the valid one with the higher transaction
// says.
func newestMeta(r io.ReaderAt, pageSize int) (root, freelist, pages uint64, err error) {
	var newest uint64
	found := false
	for i := range int64(2) {
		b := make([]byte, metaBytes)
		if _, err := r.ReadAt(b, i*int64(pageSize)+pageHeaderBytes); err != nil {
			continue
		}
		sum := fnv.New64a()
		sum.Write(b[:56])
		txid := binary.NativeEndian.Uint64(b[48:])
		if binary.NativeEndian.Uint32(b) != boltMagic ||
			binary.NativeEndian.Uint32(b[4:]) != boltVersion ||
			binary.NativeEndian.Uint64(b[56:]) != sum.Sum64() || found && txid < newest {
			continue
		}
		found, newest = true, txid
		root = binary.NativeEndian.Uint64(b[16:])
		freelist = binary.NativeEndian.Uint64(b[32:])
		pages = binary.NativeEndian.Uint64(b[40:])
	}
	if !found || pages < 4 {
		return 0, 0, 0, fmt.Errorf("%w: it has no valid meta page", tier.ErrDamaged)
	}
	return root, freelist, pages, nil
}

// page reads a page with its overflow into buf, grown as needed, and marks it as seen.
func (c *pageCheck) page(id uint64, buf []byte) ([]byte, error) {
	if id < 2 || id >= c.pages {
		return nil, damagedPage(id, "is referred to, but there are %d pages", c.pages)
	}
	buf = grow(buf, c.pageSize)
	at := int64(id) * int64(c.pageSize)
	if _, err := c.r.ReadAt(buf, at); err != nil {
		return nil, damagedPage(id, "cannot be read: %v", err)
	}
	if own := binary.NativeEndian.Uint64(buf); own != id {
		return nil, damagedPage(id, "says that it is page %d", own)
	}
	overflow := uint64(binary.NativeEndian.Uint32(buf[12:]))
	if id+overflow >= c.pages {
		return nil, damagedPage(id, "goes on for %d pages, there are %d", overflow, c.pages)
	}
	for i := id; i <= id+overflow; i++ {
		if c.seen[i] {
			return nil, damagedPage(i, "is in use twice")
		}
		c.seen[i] = true
	}
	if overflow > 0 {
		buf = grow(buf, c.pageSize*int(1+overflow))
		if _, err := c.r.ReadAt(buf, at); err != nil {
			return nil, damagedPage(id, "cannot be read: %v", err)
		}
	}
	return buf, nil
}

func grow(buf []byte, n int) []byte {
	if cap(buf) < n {
		return make([]byte, n)
	}
	return buf[:n]
}

// tree checks the tree below page id, whose keys must lie in [low, high); nil is no bound.
func (c *pageCheck) tree(id uint64, low, high []byte, depth int) error {
	if depth >= depthMax {
		return damagedPage(id, "lies deeper than %d levels", depthMax)
	}
	p, err := c.page(id, c.buffers[depth])
	if err != nil {
		return err
	}
	c.buffers[depth] = p
	switch flags := binary.NativeEndian.Uint16(p[8:]); flags {
	case flagBranch:
		return c.branch(id, p, low, high, depth)
	case flagLeaf:
		return c.leaf(id, p, low, high, depth)
	default:
		return damagedPage(id, "has the unexpected type %#x", flags)
	}
}

// elements returns how many elements a page has, if they fit into it.
func elements(id uint64, p []byte) (int, error) {
	n := int(binary.NativeEndian.Uint16(p[10:]))
	if pageHeaderBytes+n*elementBytes > len(p) {
		return 0, damagedPage(id, "has more elements than room, %d", n)
	}
	return n, nil
}

// part returns the bytes that an element points at, if they lie behind the n elements of the page.
func part(id uint64, p []byte, n, i int, at, size uint32) ([]byte, error) {
	from := uint64(pageHeaderBytes+i*elementBytes) + uint64(at)
	to := from + uint64(size)
	if from < uint64(pageHeaderBytes+n*elementBytes) || to > uint64(len(p)) {
		return nil, damagedPage(id, "has element %d outside of it", i)
	}
	return p[from:to:to], nil
}

func inOrder(id uint64, i int, before, key, high []byte) error {
	if i > 0 && bytes.Compare(before, key) >= 0 || bytes.Compare(before, key) > 0 ||
		high != nil && bytes.Compare(key, high) >= 0 {
		return damagedPage(id, "has key %d, %x, out of order", i, key)
	}
	return nil
}

func (c *pageCheck) branch(id uint64, p, low, high []byte, depth int) error {
	n, err := elements(id, p)
	if err != nil {
		return err
	}
	if n == 0 {
		return damagedPage(id, "has no children")
	}
	key := func(i int) ([]byte, error) {
		e := p[pageHeaderBytes+i*elementBytes:]
		return part(id, p, n, i, binary.NativeEndian.Uint32(e), binary.NativeEndian.Uint32(e[4:]))
	}
	for i := range n {
		own, err := key(i)
		if err != nil {
			return err
		}
		if err := inOrder(id, i, low, own, high); err != nil {
			return err
		}
		next := high
		if i+1 < n {
			if next, err = key(i + 1); err != nil {
				return err
			}
		}
		child := binary.NativeEndian.Uint64(p[pageHeaderBytes+i*elementBytes+8:])
		if err := c.tree(child, own, next, depth+1); err != nil {
			return err
		}
		low = own
	}
	return nil
}

func (c *pageCheck) leaf(id uint64, p, low, high []byte, depth int) error {
	n, err := elements(id, p)
	if err != nil {
		return err
	}
	for i := range n {
		e := p[pageHeaderBytes+i*elementBytes:]
		flags, at := binary.NativeEndian.Uint32(e), binary.NativeEndian.Uint32(e[4:])
		keySize, size := binary.NativeEndian.Uint32(e[8:]), binary.NativeEndian.Uint32(e[12:])
		key, err := part(id, p, n, i, at, keySize)
		if err != nil {
			return err
		}
		value, err := part(id, p, n, i, at+keySize, size)
		if err != nil {
			return err
		}
		if err := inOrder(id, i, low, key, high); err != nil {
			return err
		}
		low = key
		switch {
		case flags == 0:
		case flags != flagBucket || len(value) < bucketBytes:
			return damagedPage(id, "has the unexpected element %d of type %#x", i, flags)
		default:
			if err := c.bucket(id, value, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// bucket checks what a bucket's value, found on page id, leads to.
func (c *pageCheck) bucket(id uint64, value []byte, depth int) error {
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		return c.tree(root, nil, nil, depth+1)
	}
	inline := value[bucketBytes:]
	if len(inline) < pageHeaderBytes || binary.NativeEndian.Uint16(inline[8:]) != flagLeaf {
		return damagedPage(id, "has a bucket without content")
	}
	if depth+1 >= depthMax {
		return damagedPage(id, "has a bucket deeper than %d levels", depthMax)
	}
	return c.leaf(id, inline, nil, nil, depth+1)
}

// free marks the pages of the freelist and those that it names.
func (c *pageCheck) free(id uint64) error {
	if id == noFreelist {
		return fmt.Errorf("%w: it has no list of free pages", tier.ErrDamaged)
	}
	p, err := c.page(id, nil)
	if err != nil {
		return err
	}
	if flags := binary.NativeEndian.Uint16(p[8:]); flags != flagFreelist {
		return damagedPage(id, "has the unexpected type %#x", flags)
	}
	n := uint64(binary.NativeEndian.Uint16(p[10:]))
	ids := p[pageHeaderBytes:]
	if n == 0xffff && len(ids) >= 8 {
		n = binary.NativeEndian.Uint64(ids)
		ids = ids[8:]
	}
	if n > uint64(len(ids))/8 {
		return damagedPage(id, "lists more free pages than it has room for, %d", n)
	}
	for i := range n {
		page := binary.NativeEndian.Uint64(ids[8*i:])
		if page >= c.pages || c.seen[page] {
			return damagedPage(page, "is free, and in use or not there")
		}
		c.seen[page] = true
	}
	return nil
}
