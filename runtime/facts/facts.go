package facts

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tierd/tierd/runtime/document"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// fileBytesMax bounds a file.
const fileBytesMax = 16 << 20

// errUnread is why a fact is not known before the first Load.
var errUnread = errors.New("it has not been read yet")

// File is one fact of the configuration.
type File struct {
	Name   string
	Path   string // ends in .json, .yaml or .yml
	MaxAge time.Duration
}

// Set is the facts of one configuration. It is safe for concurrent use.
type Set struct {
	files   []File // ascending by name
	groups  []Groups
	convert func(document any) (any, error)

	load    sync.Mutex // held while files are read
	asking  sync.Mutex // held while brokers are asked
	mu      sync.Mutex // guards what follows
	facts   []fact     // parallel to files
	answers []answer   // parallel to groups
}

// fact is what a file was when it was last read.
type fact struct {
	err     error // why it is not known; nil where it is, but for its age
	modTime tier.Time
	sum     [sha256.Size]byte
	value   any
	known   bool // at the last Load, its age considered
}

// New returns the facts of the files and groups. None of the former is known before Load, none of
// the latter before Ask. convert makes of a document what policies want; its error makes the fact
// unknown.
func New(files []File, groups []Groups, convert func(document any) (any, error)) *Set {
	s := &Set{files: slices.Clone(files), groups: slices.Clone(groups), convert: convert,
		facts: make([]fact, len(files)), answers: make([]answer, len(groups))}
	for i := range s.answers {
		s.answers[i].err = errUnasked
	}
	slices.SortFunc(s.files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	for i := range s.facts {
		s.facts[i].err = errUnread
	}
	return s
}

// Load reads every file afresh. changed reports whether a fact has another value than after the
// last Load, or is known now and was not, or the reverse: what was decided may be decided
// otherwise. tolerance is how far in the future a modification time may lie.
func (s *Set) Load(now, tolerance tier.Time) (changed bool) {
	s.load.Lock()
	defer s.load.Unlock()
	for i, f := range s.files {
		s.mu.Lock()
		before := s.facts[i]
		s.mu.Unlock()
		after := s.read(f, before)
		after.known = f.expired(&after, now, tolerance) == nil
		changed = changed || after.known != before.known || after.known && after.sum != before.sum
		s.mu.Lock()
		s.facts[i] = after
		s.mu.Unlock()
	}
	return changed
}

// read reads one file. A content that is that of before is not parsed again.
func (s *Set) read(f File, before fact) fact {
	content, modTime, err := vfs.ReadStill(f.Path, fileBytesMax)
	if err != nil {
		return fact{err: err}
	}
	after := fact{modTime: tier.TimeOf(modTime), sum: sha256.Sum256(content)}
	if before.err == nil && before.sum == after.sum {
		after.value = before.value
		return after
	}
	doc, err := document.Decode(f.Path, content)
	if wrong := (*document.Error)(nil); errors.As(err, &wrong) {
		return fact{err: errors.New(wrong.In(f.Path))}
	} else if err != nil {
		return fact{err: fmt.Errorf("%s: %w", f.Path, err)}
	}
	if after.value, err = s.convert(doc.Value); err != nil {
		return fact{err: fmt.Errorf("%s: %w", f.Path, err)}
	}
	return after
}

// At gives the facts about a log as they are known at now, by name, and the others. tolerance is
// that of Load.
func (s *Set) At(now, tolerance tier.Time, log tier.LogID) (known map[string]any,
	unknown []tier.UnknownFact) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.files)+len(s.groups) == 0 {
		return nil, nil
	}
	known = make(map[string]any, len(s.files)+len(s.groups))
	for i := range s.groups {
		g, a := &s.groups[i], &s.answers[i]
		if err := g.expired(a, now); err != nil {
			unknown = append(unknown, tier.UnknownFact{Name: g.Name, Why: err.Error()})
		} else {
			known[g.Name] = g.of(a, log)
		}
	}
	for i, f := range s.files {
		if err := f.expired(&s.facts[i], now, tolerance); err != nil {
			unknown = append(unknown, tier.UnknownFact{Name: f.Name, Why: err.Error()})
		} else {
			known[f.Name] = s.facts[i].value
		}
	}
	return known, unknown
}

// expired says why a fact is not known at now; nil where it is.
func (f *File) expired(x *fact, now, tolerance tier.Time) error {
	switch {
	case x.err != nil:
		return x.err
	case x.modTime > now+tolerance:
		return fmt.Errorf("%s: its modification time %s lies in the future", f.Path, x.modTime)
	case now.Sub(x.modTime) > f.MaxAge:
		return fmt.Errorf("%s: it was written at %s, longer ago than its max_age of %s", f.Path,
			x.modTime, f.MaxAge)
	}
	return nil
}
