package logdir

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// Result is what a scan of a source found.
type Result struct {
	// Trouble is set where the source is vanished, empty or unreadable. Then nothing else is, and
	// nothing of the source may be decided.
	Trouble *tier.Reason
	// Empty is set where the trouble is that the directory is there and has no segment of any log: as
	// an unmounted one looks, or one whose last segment was deleted.
	Empty bool
	// Scans are of the logs that are not as they were at the last scan; ascending by log.
	Scans []tier.Scan
	// Unchanged are the logs that are; ascending.
	Unchanged []tier.LogID
	// Logs are all that are there, also those that could not be read; ascending.
	Logs []tier.LogID
	// Problems are of the source as a whole; those of a log are in its scan.
	Problems []tier.Problem
}

// judging is what beside a listing decides about segments.
type judging struct {
	root   vfs.Dir
	now    tier.Time
	broker checkpoints   // layout kafka only
	tablet tabletReached // layout fluss only
}

func (s *Source) judging(root vfs.Dir, now tier.Time) judging {
	at := judging{root: root, now: now}
	switch s.cfg.Layout {
	case tier.LayoutKafka:
		at.broker = readCheckpoints(root)
	case tier.LayoutFluss:
		at.tablet = readTablet(root)
	}
	return at
}

// problems are those of the source's checkpoints.
func (at *judging) problems() []tier.Problem {
	return append(slices.Clip(at.broker.problems), at.tablet.problems...)
}

// Scan looks at the whole source. Only ctx can make it fail: what cannot be read is in the result.
// Now is the wall time; it closes segments by age, and tells how far mtimes can be trusted.
func (s *Source) Scan(ctx context.Context, now tier.Time) (Result, error) {
	s.scanning.Lock()
	defer s.scanning.Unlock()
	s.now.Store(int64(now))
	root, err := s.root()
	if err != nil {
		return Result{Trouble: troubleOf(err)}, nil
	}
	res, err := s.scan(ctx, root, now)
	if errClose := root.Close(); errClose != nil && err == nil {
		res.Problems = append(res.Problems, problem(".", tier.CodeUnreadable, errClose.Error()))
	}
	return res, err
}

func (s *Source) scan(ctx context.Context, root vfs.Dir, now tier.Time) (Result, error) {
	var res Result
	if reason := s.takeLock(); reason != nil {
		res.Problems = append(res.Problems, tier.Problem{Path: lockName, Reason: *reason})
	}
	infos, err := root.List(".")
	if trouble := s.trouble(infos, err); trouble != nil {
		return Result{Trouble: trouble, Empty: err == nil}, nil
	}
	v := &visitor{source: s, root: root, now: now, folders: map[string]*folder{},
		branches: map[string]*branch{}, dirs: map[vfs.DirID]bool{}}
	if err := v.visit(ctx, infos); err != nil {
		return Result{}, err
	}
	res.Problems = append(res.Problems, v.problems...)
	at := s.judging(root, now)
	res.Problems = append(res.Problems, at.problems()...)
	byID := map[tier.LogID][]*folder{}
	for _, f := range v.folders {
		if s.isLog(f) {
			byID[f.id] = append(byID[f.id], f)
		}
	}
	res.Logs = slices.SortedFunc(maps.Keys(byID), tier.LogID.Compare)
	if len(res.Logs) == 0 && s.cfg.Layout == tier.LayoutPlain {
		return Result{Empty: true, Trouble: &tier.Reason{Code: tier.CodeSourceVanished,
			Text: "no file in the source's directory matches its pattern"}}, nil
	}
	for _, id := range res.Logs {
		if err := ctx.Err(); err != nil {
			return Result{}, err
		}
		s.report(&res, byID[id], at)
	}
	s.folders, s.branches = v.folders, v.branches
	s.forgetDoubts(v.folders)
	s.given.keep(byID)
	return res, nil
}

// report adds one log to the result. More than one folder of it freeze it.
func (s *Source) report(res *Result, folders []*folder, at judging) {
	f := folders[0]
	var scan tier.Scan
	if len(folders) > 1 {
		slices.SortFunc(folders, func(a, b *folder) int { return strings.Compare(a.dir, b.dir) })
		f = folders[0]
		err := s.double(f.id, f.dir, folders[1].dir)
		scan = s.unread(f.id, f.dir, tier.CodeDuplicateLog, err)
	} else {
		scan = s.judge(f, at)
	}
	if f.last != nil && sameScan(f.last, &scan) {
		res.Unchanged = append(res.Unchanged, f.id)
		return
	}
	kept := scan // whoever gets the scan may change its segments
	kept.Segments, kept.Problems = slices.Clone(scan.Segments), slices.Clone(scan.Problems)
	f.last = &kept
	res.Scans = append(res.Scans, scan)
}

// judge makes the scan of one folder.
func (s *Source) judge(f *folder, at judging) tier.Scan {
	scan := s.layout.judge(f, at)
	scan.Log, scan.Source, scan.Layout, scan.Dir = f.id, s.cfg.Name, s.cfg.Layout, f.dir
	s.given.split(&scan)
	return scan
}

func sameScan(a, b *tier.Scan) bool {
	x, y := *a, *b
	x.Segments, y.Segments, x.Problems, y.Problems = nil, nil, nil, nil
	return reflect.DeepEqual(x, y) && slices.Equal(a.Segments, b.Segments) &&
		slices.Equal(a.Problems, b.Problems)
}

// troubleOf says why the source's directory cannot be read.
func troubleOf(err error) *tier.Reason {
	if errors.Is(err, fs.ErrNotExist) {
		return &tier.Reason{Code: tier.CodeSourceVanished, Text: err.Error()}
	}
	return &tier.Reason{Code: tier.CodeSourceUnread, Text: err.Error()}
}

// trouble says what is wrong with the source's directory as it was listed; nil if it can be read
// and is not empty.
func (s *Source) trouble(infos []vfs.Info, err error) *tier.Reason {
	if err != nil {
		return troubleOf(err)
	}
	if slices.ContainsFunc(infos, s.layout.shows) {
		return nil
	}
	text := "the source's directory is empty: is its file system mounted?"
	if want := s.layout.wants(); want != "" && len(infos) > 0 {
		text = "the source's directory has neither " + want
	}
	return &tier.Reason{Code: tier.CodeSourceVanished, Text: text}
}
