package logdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

const (
	// mtimeGranularity is how long after a change another one may leave the mtime as it is.
	mtimeGranularity = tier.Time(2 * time.Second)
	// listingAgeMax is how long a listing is trusted: a file that is rewritten in place does not
	// touch its directory.
	listingAgeMax = tier.Time(10 * time.Minute)
	// newestFiles of a log are looked at in every scan: the one that grows, and the one before it,
	// which its program may only just be done with.
	newestFiles = 2
	// dirDepthMax bounds how deep a plain source's tree is gone into.
	dirDepthMax = 32
)

// folder is what a source remembers of one directory.
type folder struct {
	listing
	id      tier.LogID
	dir     string    // below the source's root
	stat    tier.Stat // of the directory, from before it was listed
	at      tier.Time // when it was listed
	settled bool      // stat tells whether the listing still holds
	// partition is nil in the layout plain.
	partition *partition
	last      *tier.Scan // what the last scan said, with segments of its own; nil before the first
}

// folderOf makes a folder of a fresh listing.
func (s *Source) folderOf(root vfs.Dir, dir string, id tier.LogID, infos []vfs.Info) *folder {
	f := &folder{listing: s.layout.group(infos), id: id, dir: dir}
	f.partition = s.layout.inspect(root, dir, infos, &f.listing)
	if f.trashed {
		inspectTrash(root, dir, &f.listing)
	}
	f.problems = below(dir, f.problems)
	return f
}

// isLog reports whether the folder is one of a log, and not one on the way to logs.
func (s *Source) isLog(f *folder) bool {
	return s.rolls() || len(f.segments) > 0 || f.trashed || !f.whole
}

// settle notes when the folder was listed, and whether its stat will show the next change.
func (f *folder) settle(stat tier.Stat, now tier.Time) {
	f.stat, f.at = stat, now
	limit := now - mtimeGranularity
	f.settled = f.whole && !f.trashed && stat.ModTime <= limit
	for i := 0; i < len(f.segments)-newestFiles; i++ {
		f.settled = f.settled && f.segments[i].stat.ModTime <= limit
	}
}

// refresh looks at the newest files again. It reports false if the directory must be listed.
func (f *folder) refresh(root vfs.Dir) bool {
	for i := max(0, len(f.segments)-newestFiles); i < len(f.segments); i++ {
		seg := &f.segments[i]
		info, err := root.Stat(path.Join(f.dir, seg.name))
		if err != nil || !info.Regular() {
			return false
		}
		seg.bytes += info.Size - seg.stat.Size
		seg.stat = info.Stat
	}
	return true
}

// visitor finds the folders of a source.
type visitor struct {
	source   *Source
	branches map[string]*branch
	root     vfs.Dir
	now      tier.Time
	folders  map[string]*folder
	problems []tier.Problem
	dirs     map[vfs.DirID]bool // visited in the layout plain
	links    []string           // found there, to directories
}

// visit goes through the source; infos lists its root.
func (v *visitor) visit(ctx context.Context, infos []vfs.Info) error {
	switch v.source.cfg.Layout {
	case tier.LayoutKafka:
		return v.visitPartitions(ctx, infos)
	case tier.LayoutFluss:
		return v.visitBuckets(ctx, infos)
	}
	info, err := v.root.Stat(".")
	if err != nil {
		v.unread(".", tier.LogID{}, err)
		return nil
	}
	if err := v.visitTree(ctx, ".", info, 0); err != nil {
		return err
	}
	v.judgeLinks()
	return nil
}

func (v *visitor) problem(dir string, code tier.Code, err error) {
	v.problems = append(v.problems, problem(dir, code, err.Error()))
}

// visitPartitions visits the partitions in a broker's log directory.
func (v *visitor) visitPartitions(ctx context.Context, infos []vfs.Info) error {
	for _, i := range infos {
		if err := ctx.Err(); err != nil {
			return err
		}
		id, ok := partitionOf(i.Name)
		if !ok || i.Regular() {
			continue
		}
		if err := id.Validate(); err != nil {
			v.problem(i.Name, tier.CodeBadName, err)
			continue
		}
		v.folder(i.Name, id, i.Stat)
	}
	return nil
}

// errLinkedDir is what is wrong with a link where logs may lie.
var errLinkedDir = errors.New("a link to a directory that is no part of the source: links are " +
	"not followed, and nothing is copied through it; make the directory a source of its own, or " +
	"move the link away")

// judgeLinks reports the links to directories that were not visited. What others lead to is read
// where it lies. Where they lead is looked at now, since that can change behind a listing.
func (v *visitor) judgeLinks() {
	for _, name := range v.links {
		info, err := v.root.Stat(name)
		if err == nil && info.ToDir() && !v.dirs[info.Dir] {
			v.problem(name, tier.CodeNotRegular, errLinkedDir)
		}
	}
}

// visitTree visits dir and the directories below it.
func (v *visitor) visitTree(ctx context.Context, dir string, info vfs.Info, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	id := plainID(v.source.cfg.Name, dir)
	f := v.folder(dir, id, info.Stat)
	if f == nil {
		return nil
	}
	v.dirs[info.Dir] = true
	if err := id.Validate(); err != nil && v.source.isLog(f) {
		v.problem(dir, tier.CodeBadName, err)
		delete(v.folders, dir)
	}
	if depth == dirDepthMax && len(f.subdirs) > 0 {
		v.problem(dir, tier.CodeUnreadable, fmt.Errorf("more than %d directories deep", depth))
		return nil
	}
	for _, name := range f.links {
		v.links = append(v.links, path.Join(dir, name))
	}
	for _, name := range f.subdirs {
		sub := path.Join(dir, name)
		info, err := v.root.Stat(sub)
		switch {
		case errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode.IsDir():
			v.source.distrust(dir)
		case err != nil:
			v.unread(sub, tier.LogID{}, err)
		default:
			if err := v.visitTree(ctx, sub, info, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// folder lists the directory, unless what is remembered of it still holds; stat is that of the
// directory from before. It returns nil if the directory is gone or cannot be read.
func (v *visitor) folder(dir string, id tier.LogID, stat tier.Stat) *folder {
	old := v.source.folders[dir]
	doubted := v.source.doubted(dir)
	if old != nil && !doubted && v.holds(old, stat) {
		v.folders[dir] = old
		return old
	}
	f, err := v.list(dir, id)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		v.unread(dir, id, err)
		return nil
	}
	f.settle(stat, v.now)
	if old != nil {
		f.last = old.last
		if f.partition != nil && old.partition != nil {
			f.partition.tail = old.partition.tail
		}
	}
	v.folders[dir] = f
	return f
}

func (v *visitor) holds(f *folder, stat tier.Stat) bool {
	return f.settled && f.stat == stat && v.now >= f.at && v.now-f.at < listingAgeMax &&
		f.refresh(v.root)
}

// list lists the directory. What an interrupted drop left in it is put right first, if it may be.
func (v *visitor) list(dir string, id tier.LogID) (*folder, error) {
	infos, err := v.source.list(v.root, dir)
	if err != nil {
		return nil, err
	}
	f := v.source.folderOf(v.root, dir, id, infos)
	if !f.trashed || !v.source.mayDrop() {
		return f, nil
	}
	if err := v.source.sweep(v.root, dir); err != nil {
		v.problem(path.Join(dir, trashName), tier.CodeUnreadable, err)
	}
	if infos, err = v.source.list(v.root, dir); err != nil {
		return nil, err
	}
	return v.source.folderOf(v.root, dir, id, infos), nil
}

// unread notes that a directory is there and cannot be read. The log that it is known to be, and
// those below it that were seen before, are not gone.
func (v *visitor) unread(dir string, id tier.LogID, err error) {
	v.problem(dir, tier.CodeUnreadable, err)
	if v.source.rolls() && id != (tier.LogID{}) {
		v.folders[dir] = &folder{id: id, dir: dir, partition: &partition{}}
		v.folders[dir].hide(dir, tier.CodeUnreadable, "%v", err)
	}
	for known, f := range v.source.folders {
		if known == dir || strings.HasPrefix(known, dir+"/") || dir == "." {
			hidden := *f
			hidden.settled = false
			hidden.problems = nil
			hidden.hide(dir, tier.CodeUnreadable, "%v", err)
			v.folders[known] = &hidden
		}
	}
}
