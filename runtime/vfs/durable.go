package vfs

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
)

// key is one name in one directory.
type key struct {
	dir  *node
	name string
}

// binding gives a name to a node, or takes it away where node is nil.
type binding struct {
	dir  *node
	name string
	node *node
}

func (b binding) key() key { return key{b.dir, b.name} }

// change is what one operation does to names. A crash leaves it whole or not at all, and leaves
// it only if it leaves every earlier change of the same names and of those in after.
type change struct {
	label    string // for Crash's choose
	bindings []binding
	after    []key
}

func (c change) keys() []key {
	keys := slices.Clone(c.after)
	for _, b := range c.bindings {
		keys = append(keys, b.key())
	}
	return keys
}

func (c change) touches(dir *node) bool {
	return slices.ContainsFunc(c.bindings, func(b binding) bool { return b.dir == dir })
}

// change makes a change that calls see at once and that is durable when its directory is synced.
func (m *memFS) change(c change) {
	for _, b := range c.bindings {
		if b.node == nil {
			delete(b.dir.children, b.name)
		} else {
			b.dir.children[b.name] = b.node
		}
		b.dir.mtime = m.clock()
	}
	m.pending = append(m.pending, c)
}

// settle makes a change durable.
func (c change) settle() {
	for _, b := range c.bindings {
		if b.node == nil {
			delete(b.dir.durable, b.name)
		} else {
			b.dir.durable[b.name] = b.node
		}
	}
}

// syncNames makes the changes of one directory durable, with those they come after.
func (m *memFS) syncNames(dir *node) {
	needed := map[key]bool{}
	isNeeded := func(k key) bool { return needed[k] }
	settles := make([]bool, len(m.pending))
	for i, c := range slices.Backward(m.pending) {
		keys := c.keys()
		settles[i] = c.touches(dir) || slices.ContainsFunc(keys, isNeeded)
		if settles[i] {
			for _, k := range keys {
				needed[k] = true
			}
		}
	}
	var left []change
	for i, c := range m.pending {
		if settles[i] {
			c.settle()
		} else {
			left = append(left, c)
		}
	}
	m.pending = left
}

// Crash stops the machine and returns the root of what the disk holds afterwards. Everything that
// belongs to the old file system returns ErrCrashed from then on; the new one has no fault hook.
//
// Of what was not synced, choose(label, n) decides, with a result in [0, n): for each change of
// names, 0 is lost and 1 is kept; for the bytes of each file, 0 leaves those synced last, 1 all
// that were written, 2 the first half of the difference, and 3 the new length with zeros. A nil
// choose loses everything that was not synced.
func (m *memFS) Crash(choose func(label string, n int) int) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.crashed = true
	if choose == nil {
		choose = func(string, int) int { return 0 }
	}
	disk := m.clone()
	lost := map[key]bool{}
	for _, c := range disk.pending {
		keys := c.keys()
		gone := slices.ContainsFunc(keys, func(k key) bool { return lost[k] })
		if !gone && choose(c.label, 2) == 1 {
			c.settle()
			continue
		}
		for _, k := range keys {
			lost[k] = true
		}
	}
	disk.pending = nil
	disk.root.settleTree(".", ".", choose, map[*node]bool{})
	return disk.rootDir()
}

// settleTree makes what is durable below n, which is name in dir, all that there is. A file may
// have two names.
func (n *node) settleTree(dir, name string, choose func(string, int) int, seen map[*node]bool) {
	if seen[n] {
		return
	}
	seen[n] = true
	if n.mode.IsDir() {
		n.children, n.removed = maps.Clone(n.durable), false
		at := path.Join(dir, name)
		for _, child := range slices.Sorted(maps.Keys(n.children)) {
			n.children[child].settleTree(at, child, choose, seen)
		}
		return
	}
	if !bytes.Equal(n.data, n.synced) {
		n.data = torn(n.synced, n.data, choose("bytes of "+path.Join(dir, name), 4))
	}
	n.synced, n.syncBroken = n.data, false
}

// torn is what a crash makes of a file that had the bytes synced and was to have data.
func torn(synced, data []byte, choice int) []byte {
	same := 0
	for same < min(len(synced), len(data)) && synced[same] == data[same] {
		same++
	}
	switch choice {
	case 0:
		return slices.Clone(synced)
	case 1:
		return slices.Clone(data)
	case 2:
		return slices.Clone(data[:same+(len(data)-same)/2])
	case 3:
		return append(slices.Clone(data[:same]), make([]byte, len(data)-same)...)
	default:
		panic(fmt.Sprintf("crash: choice %d out of [0, 4)", choice))
	}
}

// Pass ends the use of the file system: everything that belongs to it returns ErrCrashed from then
// on. It returns the root of one that goes on with all that this one held, with what is not synced,
// and without the fault hook.
func (m *memFS) Pass() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.crashed = true
	next := m.empty()
	next.root, next.pending = m.root, m.pending
	m.root, m.pending = &node{mode: m.root.mode}, nil
	return next.rootDir()
}

// empty is a file system that goes on from m, and has no root yet.
func (m *memFS) empty() *memFS {
	return &memFS{clock: m.clock, lastInode: m.lastInode, calls: m.calls, capacity: m.capacity,
		below: map[string]uint64{}}
}

// Clone returns the root of an independent copy of the file system as it is, with what is not
// synced, and without the fault hook. Files that are open stay with the original.
func (m *memFS) Clone() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clone().rootDir()
}

func (m *memFS) clone() *memFS {
	c := m.empty()
	nodes := map[*node]*node{}
	c.root = m.root.clone(nodes)
	for _, old := range m.pending {
		copied := change{label: old.label}
		for _, b := range old.bindings {
			copied.bindings = append(copied.bindings,
				binding{b.dir.clone(nodes), b.name, b.node.clone(nodes)})
		}
		for _, k := range old.after {
			copied.after = append(copied.after, key{k.dir.clone(nodes), k.name})
		}
		c.pending = append(c.pending, copied)
	}
	return c
}

// clone copies n and everything below it, each node once.
func (n *node) clone(nodes map[*node]*node) *node {
	if n == nil || nodes[n] != nil {
		return nodes[n]
	}
	c := *n
	nodes[n] = &c
	// Both go on in memory of their own as soon as they append.
	n.data = slices.Clip(n.data)
	c.data = n.data
	if n.mode.IsDir() {
		c.children, c.durable = cloneNames(n.children, nodes), cloneNames(n.durable, nodes)
	}
	return &c
}

func cloneNames(names map[string]*node, nodes map[*node]*node) map[string]*node {
	c := make(map[string]*node, len(names))
	for name, n := range names {
		c[name] = n.clone(nodes)
	}
	return c
}
