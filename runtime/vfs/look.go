package vfs

import (
	"slices"
	"strings"
)

// Look gives f each file of a directory, in order of name, as it is now, and reports whether there
// is such a directory. dir is a path from the root of the file system. It is the look of somebody
// who stands below the file system: no operation, no fault, and no permission is needed.
//
// The bytes of a file are never changed afterwards: they are shared, and not to be changed.
func (m *memFS) Look(dir string, f func(Info, []byte)) bool {
	return m.look(dir, false, f)
}

// LookSynced is Look after a crash now that loses everything that was not synced.
func (m *memFS) LookSynced(dir string, f func(Info, []byte)) bool {
	return m.look(dir, true, f)
}

// Changes grows with each operation that may change what Look or LookSynced gives.
func (m *memFS) Changes() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changes
}

// ChangesBelow grows with each operation that may change what Look or LookSynced gives of a
// directory of the root, and of what is below it.
func (m *memFS) ChangesBelow(dir string) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.moved {
		return m.changes // an open file goes by the path that it had, and may have two
	}
	return m.atRoot + m.below[dir]
}

// changed counts an operation that may change what is at the path.
func (m *memFS) changed(path string) {
	m.changes++
	if top, _, inside := strings.Cut(path, "/"); inside {
		m.below[top]++
	} else {
		m.atRoot++
	}
}

func (m *memFS) look(dir string, synced bool, f func(Info, []byte)) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := func(n *node) map[string]*node {
		if synced {
			return n.durable
		}
		return n.children
	}
	n := m.root
	for step := range strings.SplitSeq(dir, "/") {
		if step == "." {
			continue
		}
		if n = names(n)[step]; n == nil {
			return false
		}
	}
	if !n.mode.IsDir() {
		return false
	}
	sorted := make([]string, 0, len(names(n)))
	for name, child := range names(n) {
		if child.mode.IsRegular() {
			sorted = append(sorted, name)
		}
	}
	slices.Sort(sorted)
	for _, name := range sorted {
		child := names(n)[name]
		info, data := child.info(name), child.data
		if synced {
			data = child.synced
			info.Stat.Size = int64(len(data))
		}
		f(info, slices.Clip(data))
	}
	return true
}
