package logdir

import (
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// plain is the layout of a tree of directories with files of any content.
type plain struct {
	source  string // name of the source
	pattern *regexp.Regexp
	group0  int // index of the group "base"
	// plainly is set where a name is digits and then the suffix, as by the default pattern: reading it
	// by hand takes a tenth of the time.
	plainly     bool
	suffix      string
	next        Next
	closedAfter time.Duration
}

// wholeOf is the expression for a name all of which matches.
func wholeOf(expr string) string { return `\A(?:` + expr + `)\z` }

var wholeDefault = regexp.MustCompile(wholeOf(DefaultPattern))

func newPlain(c *Config) (*plain, error) {
	expr := DefaultPattern
	if c.Pattern != nil {
		expr = c.Pattern.String()
	}
	whole := wholeDefault
	if expr != DefaultPattern {
		var err error
		if whole, err = regexp.Compile(wholeOf(expr)); err != nil {
			return nil, fmt.Errorf("pattern: %w", err)
		}
	}
	p := &plain{source: c.Name, pattern: whole, group0: whole.SubexpIndex(groupBase), next: c.Next,
		closedAfter: c.ClosedAfter}
	if rest, ok := strings.CutPrefix(expr, `(?P<base>\d+)`); ok {
		p.suffix = strings.ReplaceAll(rest, `\`, "")
		p.plainly = regexp.QuoteMeta(p.suffix) == rest
	}
	if p.next == "" {
		p.next = NextFollowing
	}
	switch {
	case p.group0 < 0:
		return nil, fmt.Errorf(`pattern %s: no group "base", such as in %s`, expr, DefaultPattern)
	case !slices.Contains([]Next{NextFollowing, NextBasePlus1, NextBaseSize}, p.next):
		return nil, fmt.Errorf("next %q: want following, base+1 or base+size", p.next)
	case p.closedAfter < 0 || p.closedAfter > 0 && p.next == NextFollowing:
		return nil, fmt.Errorf("closed after %s: the end of the last segment is not known",
			p.closedAfter)
	}
	return p, nil
}

// topName is the name of the log whose files lie in the source's own directory.
const topName = "0"

// plainID is the id of the log in the directory dir. It may be invalid.
func plainID(source, dir string) tier.LogID {
	if dir == "." {
		return tier.LogID{Table: source, Name: topName}
	}
	table, name := path.Split(dir)
	if table == "" {
		return tier.LogID{Table: source, Name: name}
	}
	return tier.LogID{Table: strings.TrimSuffix(table, "/"), Name: name}
}

// program implements layout.
func (*plain) program() string { return "" }

// shows implements layout.
func (*plain) shows(i vfs.Info) bool { return i.Name[0] != '.' }

// wants implements layout.
func (*plain) wants() string { return "" }

// inspect implements layout.
func (*plain) inspect(vfs.Dir, string, []vfs.Info, *listing) *partition { return nil }

// places implements layout. A log of the table that is named like the source may lie in three
// directories.
func (p *plain) places(_ vfs.Dir, id tier.LogID) ([]string, error) {
	if id.Validate() != nil {
		return nil, nil
	}
	places := []string{id.String()}
	if id.Table == p.source {
		places = append(places, id.Name)
	}
	if id == plainID(p.source, ".") {
		places = append(places, ".")
	}
	return slices.DeleteFunc(places, hidden), nil
}

// hidden reports whether a step of the path begins with a dot, but for "." itself.
func hidden(dir string) bool {
	for step := range strings.SplitSeq(dir, "/") {
		if len(step) > 1 && step[0] == '.' {
			return true
		}
	}
	return false
}

// match finds where the base stands in a file name: at [from, to), or nowhere if from is negative.
func (p *plain) match(name string) (from, to int, ok bool) {
	if p.plainly {
		to = len(name) - len(p.suffix)
		if to <= 0 || name[to:] != p.suffix {
			return 0, 0, false
		}
		for i := range to {
			if name[i] < '0' || name[i] > '9' {
				return 0, 0, false
			}
		}
		return 0, to, true
	}
	m := p.pattern.FindStringSubmatchIndex(name)
	if m == nil {
		return 0, 0, false
	}
	return m[2*p.group0], m[2*p.group0+1], true
}

// parse reads a file name. Records is false for a name that does not match; ok is false if its base
// is no offset. The stem is what the names of all files of the segment begin with.
func (p *plain) parse(name string) (base tier.Offset, stem string, records, ok bool) {
	from, to, records := p.match(name)
	if !records {
		return 0, "", false, false
	}
	if from < 0 {
		return 0, "", true, false
	}
	n, err := strconv.ParseUint(name[from:to], 10, 63)
	stem = name
	if dot := strings.IndexByte(name[to:], '.'); dot >= 0 {
		stem = name[:to+dot]
	}
	ok = err == nil && (p.next == NextFollowing || n < math.MaxInt64)
	return tier.Offset(n), stem, true, ok
}

// speakable reports whether a file name can be part of an object's key and of a log line.
func speakable(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}

// isCompanionFile reports whether a file can belong to a segment, as far as it alone tells.
func isCompanionFile(i vfs.Info) bool { return i.Regular() && speakable(i.Name) }

// group implements layout.
func (p *plain) group(infos []vfs.Info) listing {
	l := listing{whole: true, subdirs: subdirs(infos), links: linked(infos)}
	stems := map[string]int{} // index in l.segments
	var others []vfs.Info
	for _, i := range infos {
		if i.Name == trashName {
			l.trashed = true
		}
		if i.Name[0] == '.' {
			continue
		}
		base, stem, records, ok := p.parse(i.Name)
		switch {
		case records && !speakable(i.Name):
			l.hide(i.Name, tier.CodeBadName, "want UTF-8 without control characters")
		case !records:
			if isCompanionFile(i) {
				others = append(others, i)
			}
		case !i.Regular():
			l.hide(i.Name, tier.CodeNotRegular, "not a regular file: links are not followed")
		case !ok:
			l.hide(i.Name, tier.CodeBadName, "its base is no offset: want a decimal number below "+
				"2^63")
		default:
			stems[stem] = len(l.segments)
			l.segments = append(l.segments, segmentFile{base: base, bytes: i.Size, stat: i.Stat,
				name: i.Name})
		}
	}
	for _, i := range others {
		for at := range i.Name {
			if n, ok := stems[i.Name[:at]]; ok && i.Name[at] == '.' {
				l.segments[n].bytes += i.Size
				l.segments[n].rest ^= tier.MarkOf(i.Name, i.Stat)
				break
			}
		}
	}
	l.sort()
	return l
}

// outline implements layout.
func (p *plain) outline(names []string) listing {
	l := listing{whole: true}
	for _, name := range names {
		if name[0] == '.' {
			continue
		}
		if base, _, records, ok := p.parse(name); records && ok {
			l.segments = append(l.segments, segmentFile{base: base, name: name})
		}
	}
	l.sort()
	return l
}

// stem implements layout.
func (p *plain) stem(records string) string {
	_, stem, _, _ := p.parse(records)
	return stem
}

// companions implements layout.
func (p *plain) companions(infos []vfs.Info, records string) []vfs.Info {
	stem := p.stem(records)
	var out []vfs.Info
	for _, i := range infos {
		if !strings.HasPrefix(i.Name, stem+".") || !isCompanionFile(i) {
			continue
		}
		if _, _, own, _ := p.parse(i.Name); !own {
			out = append(out, i)
		}
	}
	return out
}

// judge implements layout.
func (p *plain) judge(f *folder, at judging) tier.Scan {
	scan := tier.Scan{Whole: f.whole, Problems: slices.Clip(f.problems)}
	if len(f.segments) == 0 {
		return scan
	}
	scan.SourceStart = f.segments[0].base
	scan.Segments = make([]tier.LocalSegment, 0, len(f.segments))
	crossed := p.crossed(f, &scan)
	for i, s := range f.segments {
		_, followed := f.next(i)
		seg := tier.LocalSegment{Range: tier.Range{Base: s.base, Next: s.base}, Bytes: s.bytes,
			Log: s.stat, Rest: s.rest, Waits: tier.WaitsForNothing}
		if next, known := p.end(&f.listing, i); known {
			seg.Next = next
		}
		if !followed && !p.aged(s.stat, at.now) {
			seg.Waits = tier.WaitsForRoll
		}
		scan.LocalEnd = max(scan.LocalEnd, seg.Next)
		switch {
		case s.broken || crossed[i]:
			continue
		case seg.Empty() && followed:
			scan.Problems = append(scan.Problems, problem(path.Join(f.dir, s.name),
				tier.CodeBadName, "no segment: no bytes, so no offsets, and not the last file"))
			continue
		case seg.Empty():
			seg.Waits = tier.WaitsForRoll
		}
		scan.Segments = append(scan.Segments, seg)
	}
	return scan
}

// end implements layout.
func (p *plain) end(l *listing, i int) (tier.Offset, bool) {
	if p.exact() {
		return p.ownEnd(l.segments[i]), true
	}
	return l.next(i)
}

// exact implements layout.
func (p *plain) exact() bool { return p.next != NextFollowing }

// ownEnd is where a segment ends whose end does not depend on the next one. Parse leaves no base
// that base+1 overflows; a size that does is cut off.
func (p *plain) ownEnd(s segmentFile) tier.Offset {
	if p.next == NextBasePlus1 {
		return s.base + 1
	}
	return s.base + tier.Offset(min(s.stat.Size, math.MaxInt64-int64(s.base)))
}

// aged reports whether the last segment is closed by its age.
func (p *plain) aged(s tier.Stat, now tier.Time) bool {
	return p.closedAfter > 0 && now.Sub(s.ModTime) >= p.closedAfter
}

// crossed finds the segments that overlap by their sizes: then the offsets of the log do not count
// bytes, or its files are not what they seem, and neither of them is used.
func (p *plain) crossed(f *folder, scan *tier.Scan) map[int]bool {
	crossed := map[int]bool{}
	if p.next != NextBaseSize {
		return crossed
	}
	for i := 1; i < len(f.segments); i++ {
		a, b := f.segments[i-1], f.segments[i]
		if a.base == b.base || p.ownEnd(a) <= b.base {
			continue
		}
		crossed[i-1], crossed[i] = true, true
		scan.Whole = false
		scan.Problems = append(scan.Problems, problem(path.Join(f.dir, b.name),
			tier.CodeDuplicateBase, fmt.Sprintf("it begins inside %s, which by its size ends "+
				"at %d: neither is used; does next: base+size fit this log?", a.name, p.ownEnd(a))))
	}
	return crossed
}
