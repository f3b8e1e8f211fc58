package fault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	thanos "github.com/thanos-io/objstore"
)

// ErrNotFound is what Mem says of an object that is not there.
var ErrNotFound = errors.New("object not found")

// ErrDenied is an error that IsAccessDeniedErr knows.
var ErrDenied = errors.New("access denied")

// keyBytesMax is the longest key that S3, GCS and Azure all take.
const keyBytesMax = 1024

// Mem is a bucket in memory whose LastModified comes from a clock that it is given. It is as strict
// as the strictest provider: an upload must know its size and keep to it, a range must begin within
// the object, deleting what is not there is an error, and a name is an object or a directory, never
// both. All methods are safe for concurrent use.
type Mem struct {
	now     func() time.Time
	mu      sync.Mutex
	objects map[string]*object
	sorted  []*object      // ascending by key
	dirs    map[string]int // how many objects lie below the directory
	changes uint64
}

type object struct {
	key      string
	data     []byte // never changed in place
	modified time.Time
}

var _ thanos.Bucket = (*Mem)(nil)

// NewMem returns an empty bucket.
func NewMem(now func() time.Time) *Mem {
	return &Mem{now: now, objects: map[string]*object{}, dirs: map[string]int{}}
}

// Keys returns the keys of all objects, ascending.
func (m *Mem) Keys() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := make([]string, len(m.sorted))
	for i, o := range m.sorted {
		keys[i] = o.key
	}
	return keys
}

// Look gives f every object in order of key, past all faults. The bytes are never changed in place:
// they are shared, and not to be changed. f must not use the bucket.
func (m *Mem) Look(f func(key string, data []byte)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range m.sorted {
		f(o.key, slices.Clip(o.data))
	}
}

// Changes is how often an object was stored or taken away so far.
func (m *Mem) Changes() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changes
}

// Object returns a copy of an object's content, past all faults.
func (m *Mem) Object(key string) ([]byte, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.objects[key]
	if !ok {
		return nil, false
	}
	return bytes.Clone(o.data), true
}

// Put stores an object, past all faults, as bit rot and strangers do.
func (m *Mem) Put(key string, data []byte) { m.store(key, bytes.Clone(data)) }

// Remove takes an object away, past all faults.
func (m *Mem) Remove(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(key)
}

func (m *Mem) store(key string, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.objects[key]
	if !ok {
		o = &object{key: key}
		m.objects[key] = o
		m.sorted = slices.Insert(m.sorted, m.place(key), o)
		for dir := range parents(key) {
			m.dirs[dir]++
		}
	}
	o.data, o.modified = data, m.now()
	m.changes++
}

func (m *Mem) remove(key string) bool {
	if _, ok := m.objects[key]; !ok {
		return false
	}
	delete(m.objects, key)
	i := m.place(key)
	m.sorted = slices.Delete(m.sorted, i, i+1)
	m.changes++
	for dir := range parents(key) {
		if m.dirs[dir]--; m.dirs[dir] == 0 {
			delete(m.dirs, dir)
		}
	}
	return true
}

// place is where the key is among all, or would be.
func (m *Mem) place(key string) int {
	i, _ := slices.BinarySearchFunc(m.sorted, key, func(o *object, key string) int {
		return strings.Compare(o.key, key)
	})
	return i
}

// parents gives the directories that key lies in, each with its slash.
func parents(key string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := range len(key) {
			if key[i] == '/' && !yield(key[:i+1]) {
				return
			}
		}
	}
}

// check refuses keys that some provider would refuse or take for another.
func (m *Mem) check(key string) error {
	if key == "" || len(key) > keyBytesMax {
		return fmt.Errorf("key of %d bytes: want 1 to %d", len(key), keyBytesMax)
	}
	for step := range strings.SplitSeq(key, "/") {
		if step == "" || step == "." || step == ".." {
			return fmt.Errorf("key %q: empty, . and .. are no steps of a key", key)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dirs[key+"/"] > 0 {
		return fmt.Errorf("key %q: is a directory", key)
	}
	for dir := range parents(key) {
		if _, ok := m.objects[strings.TrimSuffix(dir, "/")]; ok {
			return fmt.Errorf("key %q: %q is an object, not a directory", key, dir)
		}
	}
	return nil
}

// Upload implements thanos.Bucket.
func (m *Mem) Upload(ctx context.Context, key string, r io.Reader,
	_ ...thanos.ObjectUploadOption) error {
	if err := errors.Join(ctx.Err(), m.check(key)); err != nil {
		return err
	}
	size, err := thanos.TryToGetSize(r)
	if err != nil {
		return fmt.Errorf("upload %s: the size is not known: %w", key, err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("upload %s: %w", key, err)
	}
	if int64(len(data)) != size {
		return fmt.Errorf("upload %s: %d bytes came, %d were announced", key, len(data), size)
	}
	m.store(key, data)
	return nil
}

// Delete implements thanos.Bucket.
func (m *Mem) Delete(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.remove(key) {
		return fmt.Errorf("delete %s: %w", key, ErrNotFound)
	}
	return nil
}

func (m *Mem) get(ctx context.Context, key string) (object, error) {
	if err := ctx.Err(); err != nil {
		return object{}, err
	}
	if key == "" {
		return object{}, errors.New("get: the key is empty")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.objects[key]
	if !ok {
		return object{}, fmt.Errorf("get %s: %w", key, ErrNotFound)
	}
	return *o, nil
}

// Get implements thanos.Bucket.
func (m *Mem) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	o, err := m.get(ctx, key)
	if err != nil {
		return nil, err
	}
	return reader(o.data), nil
}

// GetRange implements thanos.Bucket.
func (m *Mem) GetRange(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	o, err := m.get(ctx, key)
	if err != nil {
		return nil, err
	}
	size := int64(len(o.data))
	if off < 0 || off >= size || n == 0 || n < -1 {
		return nil, fmt.Errorf("get %s: the range of %d bytes at %d is not in an object of %d bytes",
			key, n, off, size)
	}
	if n == -1 || n > size-off {
		n = size - off
	}
	return reader(o.data[off : off+n]), nil
}

func reader(data []byte) io.ReadCloser {
	return thanos.NopCloserWithSize(bytes.NewReader(data))
}

// Attributes implements thanos.Bucket.
func (m *Mem) Attributes(ctx context.Context, key string) (thanos.ObjectAttributes, error) {
	o, err := m.get(ctx, key)
	if err != nil {
		return thanos.ObjectAttributes{}, err
	}
	return thanos.ObjectAttributes{Size: int64(len(o.data)), LastModified: o.modified}, nil
}

// Exists implements thanos.Bucket.
func (m *Mem) Exists(ctx context.Context, key string) (bool, error) {
	_, err := m.get(ctx, key)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// SupportedIterOptions implements thanos.Bucket.
func (m *Mem) SupportedIterOptions() []thanos.IterOptionType {
	return []thanos.IterOptionType{thanos.Recursive, thanos.UpdatedAt}
}

// Iter implements thanos.Bucket. Names ascend, directories among them.
func (m *Mem) Iter(ctx context.Context, dir string, f func(string) error,
	opts ...thanos.IterOption) error {
	return m.IterWithAttributes(ctx, dir, func(a thanos.IterObjectAttributes) error {
		return f(a.Name)
	}, opts...)
}

// IterWithAttributes implements thanos.Bucket.
func (m *Mem) IterWithAttributes(ctx context.Context, dir string,
	f func(thanos.IterObjectAttributes) error, opts ...thanos.IterOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	params := thanos.ApplyIterOptions(opts...)
	prefix := strings.TrimSuffix(dir, "/")
	if prefix != "" {
		prefix += "/"
	}
	for _, a := range m.list(prefix, params) {
		if err := f(a); err != nil {
			return err
		}
	}
	return nil
}

func (m *Mem) list(prefix string, p thanos.IterParams) []thanos.IterObjectAttributes {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []thanos.IterObjectAttributes
	for _, o := range m.sorted[m.place(prefix):] {
		key := o.key
		rest, ok := strings.CutPrefix(key, prefix)
		if !ok {
			break // all that have the prefix stand together
		}
		a := thanos.IterObjectAttributes{Name: key}
		if i := strings.IndexByte(rest, '/'); i >= 0 && !p.Recursive {
			a.Name = key[:len(prefix)+i+1]
			if n := len(out); n > 0 && out[n-1].Name == a.Name {
				continue // what lies in a directory stands together, too
			}
		} else if p.LastModified {
			a.SetLastModified(o.modified)
		}
		out = append(out, a)
	}
	return out
}

// IsObjNotFoundErr implements thanos.Bucket.
func (m *Mem) IsObjNotFoundErr(err error) bool { return errors.Is(err, ErrNotFound) }

// IsAccessDeniedErr implements thanos.Bucket.
func (m *Mem) IsAccessDeniedErr(err error) bool { return errors.Is(err, ErrDenied) }

// Provider implements thanos.Bucket.
func (m *Mem) Provider() thanos.ObjProvider { return thanos.MEMORY }

// Name implements thanos.Bucket.
func (m *Mem) Name() string { return "memory" }

// Close implements thanos.Bucket.
func (m *Mem) Close() error { return nil }
