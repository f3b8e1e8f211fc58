package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/exec"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/verify"
	"github.com/tierd/tierd/runtime/vfs"
)

// scrubFile remembers in data_dir how far a pass over the store is, and which copies are bad, so
// that a restart neither begins anew nor forgets a loss.
const scrubFile = "scrub.json"

const (
	scrubVersion  = 1
	scrubBytesMax = 256 << 20 // of the file
	scrubSave     = 10 * time.Second
	// scrubSoon is how many copies may be bad for each new one to be written at once. Beyond that the
	// store as a whole is out of order, and the file too large to be written for each.
	scrubSoon = 1000
)

// scrubState is the content of scrubFile.
type scrubState struct {
	Version int       `json:"version"`
	Began   tier.Time `json:"began"` // of the pass; nanoseconds since the Unix epoch
	// Looks is scrubber.looks when the pass began: what it meets is looked at later, by any clock.
	Looks int64 `json:"looks,omitempty"`
	// Log and Position are of the copy that was looked at last; the pass goes on behind it. Log is ""
	// where none was, or where the pass is over.
	Log      string        `json:"log"`
	Position tier.Position `json:"position"`
	Over     bool          `json:"over"`
	Bad      []scrubBad    `json:"bad"`
	// Unread says that an earlier file could not be read. Until a pass has gone through no copy is
	// proved, since it may have been among those that were bad.
	Unread string `json:"unread,omitempty"`
	// Mending is where the pass is in the manifest of the log behind Log; absent where it has not
	// begun with one.
	Mending *scrubMending `json:"mending,omitempty"`
	Open    []scrubOpen   `json:"open,omitempty"` // what scrubber.open has; of the file alone
}

// scrubMending is where a pass is in a manifest.
type scrubMending struct {
	Log string `json:"log"`
	exec.MendAt
}

// scrubOpen is something that a look left open.
type scrubOpen struct {
	Log  string `json:"log"`
	Copy bool   `json:"copy,omitempty"` // not an object of a manifest
	exec.MendAt
	Text   string `json:"text"`
	Looked int64  `json:"looked"`
	Bad    bool   `json:"bad,omitempty"`
}

// scrubBad is a copy that the store lost or altered.
type scrubBad struct {
	Log      string        `json:"log"`
	Position tier.Position `json:"position"`
	Text     string        `json:"text"`
}

// find returns where the copy is in Bad; -1 if it is not.
func (s *scrubState) find(x suspicion) int {
	if len(s.Bad) == 0 {
		return -1
	}
	log := x.log.String()
	return slices.IndexFunc(s.Bad, func(b scrubBad) bool {
		return b.Position == x.position && b.Log == log
	})
}

// tell remembers what was found, durably where it is a loss, and hands it to the engine.
func (s *scrubber) tell(id tier.LogID, pos tier.Position, found []verify.Finding) {
	result := "good"
	var why *tier.Reason
	if len(found) > 0 {
		var texts []string
		for _, f := range found {
			texts = append(texts, f.Text)
		}
		result = "bad"
		why = &tier.Reason{Code: tier.CodeStoreLost, Text: strings.Join(texts, "; ")}
	}
	s.mu.Lock()
	i := s.state.find(suspicion{id, pos})
	changed := (i >= 0) != (why != nil)
	if i >= 0 {
		s.state.Bad = slices.Delete(s.state.Bad, i, i+1)
	}
	if why != nil {
		s.state.Bad = append(s.state.Bad, scrubBad{id.String(), pos, why.Text})
	}
	soon := changed && len(s.state.Bad) <= scrubSoon
	s.mu.Unlock()
	s.d.metrics.scrubbed.WithLabelValues(result).Inc()
	if why != nil {
		s.d.log.Error("the store does not have what was copied", "log", id.String(), "position", pos,
			"why", why.Text)
	}
	if soon {
		s.keep(true)
	}
	s.d.step(engine.Scrubbed{Log: id, Position: pos, Reason: why})
}

// load reads what an earlier process left, and tells the engine of the copies that are bad, before
// it decides anything.
func (s *scrubber) load() error {
	data, err := s.read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("scrub: %w", err)
	}
	var state scrubState
	if err = json.Unmarshal(data, &state); err == nil && state.Version < 1 {
		err = errors.New("it has no version")
	}
	if err != nil {
		state = scrubState{Unread: fmt.Sprintf("%s, which says what was found of copies, cannot be read "+
			"(%v): what may have been bad must be looked at again; set scrub.every, or remove the file "+
			"to go without", s.path(), err)}
		s.d.log.Error("scrub: nothing is proved", "err", state.Unread)
	}
	if state.Version > scrubVersion {
		return fmt.Errorf("scrub: %s: version %d, newer than %d: %w", s.path(), state.Version,
			scrubVersion, tier.ErrNewer)
	}
	state.Bad = slices.DeleteFunc(state.Bad, s.expired)
	s.mu.Lock()
	s.looks = state.Looks
	s.reopen(state.Open)
	state.Open = nil
	s.state = state
	s.mu.Unlock()
	for _, b := range state.Bad {
		id, err := tier.ParseLogID(b.Log)
		if err != nil {
			return fmt.Errorf("scrub: %s: %w", s.path(), err)
		}
		s.d.step(engine.Scrubbed{Log: id, Position: b.Position,
			Reason: &tier.Reason{Code: tier.CodeStoreLost, Text: b.Text}})
	}
	return nil
}

// reopen is for what an earlier process left open; with mu held.
func (s *scrubber) reopen(list []scrubOpen) {
	for _, o := range list {
		id, err := tier.ParseLogID(o.Log)
		if err != nil {
			continue
		}
		k, u := scrubbed{id, o.Copy, o.MendAt}, unsettled{o.Text, o.Looked, o.Bad}
		s.looks = max(s.looks, u.looked)
		s.d.metrics.scrubOpen.WithLabelValues(k.what(u)).Inc()
		s.open[k] = u
	}
}

// opened is what is open, in the form of the file; with mu held.
func (s *scrubber) opened() (list []scrubOpen) {
	for _, k := range slices.SortedFunc(maps.Keys(s.open), compareScrubbed) {
		u := s.open[k]
		list = append(list, scrubOpen{k.log.String(), k.copy, k.at, u.text, u.looked, u.bad})
	}
	return list
}

// expired reports whether the copy is none of the ledger any more.
func (s *scrubber) expired(b scrubBad) bool {
	id, err := tier.ParseLogID(b.Log)
	if err == nil {
		_, err = s.d.ledger.Copy(id, b.Position)
		return errors.Is(err, tier.ErrVanished)
	}
	return true
}

func (s *scrubber) path() string {
	return filepath.Join(s.d.gen.Load().config.DataDir, scrubFile)
}

func (s *scrubber) read() (data []byte, err error) {
	dir, err := vfs.OpenOS(s.d.gen.Load().config.DataDir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	f, err := dir.Open(scrubFile)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.LimitReader(f, scrubBytesMax))
}

// keep is save, whose error is told to the log: what could not be written is found again.
func (s *scrubber) keep(now bool) {
	if err := s.save(now); err != nil {
		s.d.log.Error("scrub", "path", s.path(), "err", err)
	}
}

// save writes what is remembered, at most every few seconds unless it is told to. The file is
// replaced as a whole, durably, so that a crash leaves the one before or this one.
func (s *scrubber) save(now bool) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	nothing := s.state.Began == 0 && len(s.state.Bad)+len(s.open) == 0 && s.saved.IsZero()
	if nothing || !now && time.Since(s.saved) < scrubSave {
		s.mu.Unlock()
		return nil
	}
	s.state.Version, s.saved = scrubVersion, time.Now()
	state := s.state
	state.Bad, state.Open = slices.Clone(state.Bad), s.opened()
	s.mu.Unlock()
	data, err := json.Marshal(state)
	if err != nil {
		return err
	}
	dir, err := vfs.OpenOS(s.d.gen.Load().config.DataDir)
	if err != nil {
		return err
	}
	return errors.Join(replaceFile(dir, scrubFile, data), dir.Close())
}

// replaceFile gives a file of the directory other content, durably: after a crash it has all of the
// one or all of the other.
func replaceFile(dir vfs.Dir, name string, data []byte) error {
	half := name + ".half"
	if err := dir.Remove(half); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := dir.Create(half)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, dir.Remove(half))
	}
	return errors.Join(dir.Replace(half, name), dir.Sync("."))
}
