package logdir

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// layout is what differs between the kinds of sources.
type layout interface {
	// program is what the source's program is called; "" where nothing is known of it.
	program() string
	// shows reports whether an entry of the source's directory shows that it is one of the layout.
	shows(entry vfs.Info) bool
	// wants says what would have shown it; "" where anything does.
	wants() string
	// places lists the directories below root that a log of the id may lie in; more than one only
	// where names are ambiguous.
	places(root vfs.Dir, id tier.LogID) ([]string, error)
	// inspect reads what a log's directory says of itself, beside its segments; nil where there is
	// nothing. What is wrong with it is added to the listing.
	inspect(root vfs.Dir, dir string, infos []vfs.Info, l *listing) *partition
	// group finds the segments among the files of one directory.
	group(infos []vfs.Info) listing
	// outline finds the segments by the names alone of one directory's entries: where they begin, and
	// nothing more. A name that is taken by something else than a file counts as well.
	outline(names []string) listing
	// stem is what the names of all files of a segment begin with, by the name of the one with the
	// records.
	stem(records string) string
	// companions finds the files that belong to the segment whose records are in the named file.
	companions(infos []vfs.Info, records string) []vfs.Info
	// end is where segment i of the listing ends; false if nothing in the listing tells.
	end(l *listing, i int) (tier.Offset, bool)
	// exact reports whether a segment's end is its own, and not where another one begins.
	exact() bool
	// judge gives the segments of a listing their ends and says what they wait for.
	judge(f *folder, at judging) tier.Scan
}

// segmentFile is one segment as its directory lists it: the file with the records, and the size of
// all that belongs to it.
type segmentFile struct {
	base   tier.Offset
	bytes  int64
	rest   tier.Mark // of its other files
	stat   tier.Stat // of the file with the records
	name   string    // of the file with the records
	broken bool      // it bounds its neighbours, and is itself no segment
}

// listing is what one directory lists.
type listing struct {
	segments []segmentFile // ascending by base
	subdirs  []string      // names, without those that begin with a dot
	links    []string      // names of links to directories, likewise
	trashed  bool          // a trash is there
	whole    bool          // nothing is there that hides a segment
	problems []tier.Problem
}

func (l *listing) problem(name string, code tier.Code, format string, args ...any) {
	l.problems = append(l.problems, problem(name, code, fmt.Sprintf(format, args...)))
}

// hide reports something that hides segments: nothing of the log is decided before it is gone.
func (l *listing) hide(name string, code tier.Code, format string, args ...any) {
	l.whole = false
	l.problem(name, code, format, args...)
}

// sort orders the segments by base and marks those that claim the same one as broken.
func (l *listing) sort() {
	slices.SortFunc(l.segments, func(a, b segmentFile) int {
		return cmp.Or(cmp.Compare(a.base, b.base), cmp.Compare(a.name, b.name))
	})
	for i := 1; i < len(l.segments); i++ {
		a, b := &l.segments[i-1], &l.segments[i]
		if a.base == b.base {
			a.broken, b.broken = true, true
			l.hide(b.name, tier.CodeDuplicateBase, "the base %d is also that of %s: neither is "+
				"used; remove the one that is not a segment", b.base, a.name)
		}
	}
}

// next returns the base of the first segment that begins above that of segment i; false if none
// does.
func (l *listing) next(i int) (tier.Offset, bool) {
	for j := i + 1; j < len(l.segments); j++ {
		if l.segments[j].base > l.segments[i].base {
			return l.segments[j].base, true
		}
	}
	return 0, false
}

// located is one segment as its directory has it now.
type located struct {
	segmentFile
	// next is where it ends in its directory. That is beyond the wanted range where what followed it
	// has gone, and a gap is nobody's.
	next tier.Offset
	// infos describes its files, ascending by name.
	infos []vfs.Info
}

// segment finds the segment with the range r in the directory, and looks at its own files alone:
// there may be thousands of others. An error wraps tier.ErrVanished if none begins there, and
// tier.ErrChanged if one does and ends sooner, or may still grow.
func (s *Source) segment(root vfs.Dir, dir string, names []string, r tier.Range) (located, error) {
	all := s.layout.outline(names)
	i, err := all.find(r.Base)
	if err != nil {
		return located{}, err
	}
	var found located
	if found.infos, err = describe(root, dir, s.layout, names,
		all.segments[i].name); err != nil {
		return located{}, err
	}
	own := s.layout.group(found.infos)
	j, err := own.find(r.Base)
	if err != nil {
		return located{}, err
	}
	found.segmentFile = own.segments[j]
	all.segments[i] = found.segmentFile
	next, known := s.layout.end(&all, i)
	switch {
	case !known:
		return located{}, fmt.Errorf("segment %s: %w: nothing follows it now, so it may grow", r,
			tier.ErrChanged)
	case next < r.Next || next > r.Next && s.layout.exact():
		return located{}, fmt.Errorf("segment %s: %w: it ends at %d now", r, tier.ErrChanged, next)
	}
	found.next = next
	return found, nil
}

// describe looks at the files whose names say that they belong to the segment with the records in
// the named file, ascending by name. One that goes away meanwhile is left out.
func describe(root vfs.Dir, dir string, l layout, names []string, records string) (
	[]vfs.Info, error) {
	var infos []vfs.Info
	stem := l.stem(records)
	first, _ := slices.BinarySearch(names, stem)
	for _, name := range names[first:] {
		rest, ok := strings.CutPrefix(name, stem)
		if !ok {
			break
		}
		if name != records && !strings.HasPrefix(rest, ".") || !speakable(name) {
			continue
		}
		info, err := root.Stat(path.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// find returns the index of the usable segment with the base.
func (l *listing) find(base tier.Offset) (int, error) {
	i, found := slices.BinarySearchFunc(l.segments, base, func(s segmentFile, b tier.Offset) int {
		return cmp.Compare(s.base, b)
	})
	switch {
	case !found:
		return 0, fmt.Errorf("segment %d: %w", base, tier.ErrVanished)
	case l.segments[i].broken:
		return 0, fmt.Errorf("segment %d: several files claim its base", base)
	}
	return i, nil
}

// locate finds the directory of the log among its places, and lists it. An error wraps
// tier.ErrVanished if the log is nowhere while its source is there.
func (s *Source) locate(root vfs.Dir, id tier.LogID) (dir string, infos []vfs.Info, err error) {
	places, err := s.layout.places(root, id)
	if err != nil {
		return "", nil, fmt.Errorf("log %s: %w", id, err)
	}
	dir = "" // no directory has this name
	for _, place := range places {
		list, err := s.list(root, place)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			continue
		}
		if err != nil {
			return "", nil, fmt.Errorf("log %s: %w", id, err)
		}
		if s.cfg.Layout == tier.LayoutPlain && !s.isLog(s.folderOf(root, place, id, list)) {
			continue // a directory on the way to logs
		}
		if dir != "" {
			return "", nil, s.double(id, dir, place)
		}
		dir, infos = place, list
	}
	if dir == "" {
		return "", nil, s.nowhere(root, id)
	}
	return dir, infos, nil
}

// place is the directory that the log lies in if it lies anywhere; it is looked for only where more
// than one may be it.
func (s *Source) place(root vfs.Dir, id tier.LogID) (string, error) {
	places, err := s.layout.places(root, id)
	if err != nil {
		return "", fmt.Errorf("log %s: %w", id, err)
	}
	if len(places) == 1 {
		return places[0], nil
	}
	dir, _, err := s.locate(root, id)
	return dir, err
}

// names finds the directory of the log, and names its entries. An error wraps tier.ErrVanished if
// the log is nowhere while its source is there.
func (s *Source) names(root vfs.Dir, id tier.LogID) (dir string, names []string, err error) {
	if dir, err = s.place(root, id); err != nil {
		return "", nil, err
	}
	done := s.locks.list(dir)
	names, err = root.Names(dir)
	done()
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return "", nil, s.nowhere(root, id)
	case err != nil:
		return "", nil, fmt.Errorf("log %s: %w", id, err)
	}
	return dir, names, nil
}

// nowhere is why a log is not there: it may be its whole source that is not.
func (s *Source) nowhere(root vfs.Dir, id tier.LogID) error {
	if trouble := s.trouble(root.List(".")); trouble != nil {
		return fmt.Errorf("log %s: %s", id, trouble.Text)
	}
	return fmt.Errorf("log %s: %w", id, tier.ErrVanished)
}

// doubleError says that one log id stands for two directories of a source.
type doubleError struct {
	id   tier.LogID
	a, b string
	hint string
}

// double says that one log id stands for the directories a and b.
func (s *Source) double(id tier.LogID, a, b string) *doubleError {
	hint := "rename one of them"
	if s.cfg.Layout == tier.LayoutFluss {
		hint = "one is of a table or partition that was dropped, and its tablet server removes it"
	}
	return &doubleError{id: id, a: a, b: b, hint: hint}
}

// Error implements error.
func (e *doubleError) Error() string {
	return fmt.Sprintf("log %s: both %s and %s are that log; %s", e.id, e.a, e.b, e.hint)
}

// list lists the log's directory, while no drop is under way in it.
func (s *Source) list(root vfs.Dir, dir string) ([]vfs.Info, error) {
	defer s.locks.list(dir)()
	return root.List(dir)
}

// infoOf finds the entry with the name in a listing, which ascends by name.
func infoOf(infos []vfs.Info, name string) (vfs.Info, bool) {
	i, found := slices.BinarySearchFunc(infos, name, func(i vfs.Info, n string) int {
		return cmp.Compare(i.Name, n)
	})
	if !found {
		return vfs.Info{}, false
	}
	return infos[i], true
}

// subdirs names the directories in a listing that a scan goes into.
func subdirs(infos []vfs.Info) []string {
	var names []string
	for _, i := range infos {
		if i.Mode.IsDir() && i.Name[0] != '.' && i.Name != "lost+found" {
			names = append(names, i.Name)
		}
	}
	return names
}

// linked names the links to directories in a listing, which no scan follows.
func linked(infos []vfs.Info) []string {
	var names []string
	for _, i := range infos {
		if i.ToDir() && i.Name[0] != '.' {
			names = append(names, i.Name)
		}
	}
	return names
}

// below prefixes the paths of problems that were found in dir.
func below(dir string, problems []tier.Problem) []tier.Problem {
	for i := range problems {
		problems[i].Path = path.Join(dir, problems[i].Path)
	}
	return problems
}
