package rebuild

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/runtime/tier"
)

// Store is what a rebuild needs of the object store. Methods are safe for concurrent use.
type Store interface {
	// Objects lists all objects of logs under the ledger's id.
	Objects(ctx context.Context, fn func(tier.StoredObject) error) error
	// Union reads all that the log's manifest says anywhere.
	Union(ctx context.Context, log tier.LogID) (objstore.Union, error)
	// VerifyFile compares a stored object with its digest, as closely as mode says.
	VerifyFile(ctx context.Context, k tier.ObjectKey, d tier.FileDigest, mode tier.VerifyMode,
		local io.ReaderAt) error
	// PutFact writes a manifest entry.
	PutFact(ctx context.Context, log tier.LogID, attempt tier.AttemptID, f tier.Fact) error
}

var _ Store = (*objstore.Store)(nil)

// Config is what a rebuild works with.
type Config struct {
	Store Store
	Now   tier.Time
	// Mode is how closely objects are looked at: by their size, or in full.
	Mode tier.VerifyMode
	// Each calls do with 0 to n-1, with as many calls at one time as it likes, until one fails.
	Each func(ctx context.Context, n int, do func(ctx context.Context, i int) error) error
	// Local is a look at a log in its source; false where no source has it.
	Local func(tier.LogID) (tier.Scan, bool)
	// Table is the configuration of a table; false where no entry governs it.
	Table func(string) (tier.Table, bool)
	// Progress is told how far it is; it may be nil. It is called from one goroutine at a time.
	Progress func(Progress)
	// Dry writes nothing to the store. The ledger is filled, for what it tells.
	Dry bool
}

// Progress is how far a rebuild is.
type Progress struct {
	Logs, LogsDone int64
	Copies, Bytes  int64 // that were looked at
}

// Report is what a ledger was made of.
type Report struct {
	Logs     []Log
	Tables   []tier.TableState
	Problems []objstore.Problem
	// Unnamed are keys of objects that no entry of a manifest names, unnamedMax at the most: copies
	// of which the entry is gone, or was never written. They are orphans from now on.
	Unnamed []string
	Clock   tier.Time // the highest time that the facts tell of
}

// Log is what is known of one log.
type Log struct {
	State  tier.LogState
	Copies int64
	Bytes  int64 // of the copies
	// LeftOut are adds that would be part of the log, and of which the store has no longer all, or
	// not what they name.
	LeftOut int64
	// Moved are facts that were said once more at another position.
	Moved int64
	// Unnamed counts the objects that no entry of the manifest names.
	Unnamed int64
	// Present tells whether a source has the log.
	Present bool
}

// Run looks at everything and fills b. Any error but of a single object ends it: then b must not be
// used.
func Run(ctx context.Context, c Config, b *offsets.Builder) (*Report, error) {
	r := &run{c: c, b: b, report: &Report{}}
	found, err := r.survey(ctx)
	if err != nil {
		return nil, err
	}
	r.progress.Logs = int64(len(found))
	for i := range found {
		if err := r.log(ctx, &found[i]); err != nil {
			return nil, fmt.Errorf("log %s: %w", found[i].id, err)
		}
		r.tell(func(p *Progress) { p.LogsDone++ })
	}
	if err := r.listUnnamed(ctx); err != nil {
		return nil, err
	}
	for i := range r.report.Tables {
		t := &r.report.Tables[i]
		t.Epoch++ // whatever the old one still had under way is of an epoch that is over
		if err := b.Table(*t); err != nil {
			return nil, err
		}
	}
	return r.report, nil
}

// run is one rebuild.
type run struct {
	c        Config
	b        *offsets.Builder
	report   *Report
	progress Progress
	unnamed  map[tier.LogID]map[tier.AttemptID]int64 // of each log that has some
}

func (r *run) tell(change func(*Progress)) {
	change(&r.progress)
	if r.c.Progress != nil {
		r.c.Progress(r.progress)
	}
}

// found is a log of which the store has something.
type found struct {
	id    tier.LogID
	epoch tier.TierEpoch           // the highest in a key
	files map[tier.AttemptID]int64 // how many objects there are of each copy
}

// survey lists all objects for the logs that there are, ascending.
func (r *run) survey(ctx context.Context) ([]found, error) {
	byLog := map[tier.LogID]int{}
	var out []found
	err := r.c.Store.Objects(ctx, func(o tier.StoredObject) error {
		i, known := byLog[o.Log]
		if !known {
			i = len(out)
			byLog[o.Log] = i
			out = append(out, found{id: o.Log, files: map[tier.AttemptID]int64{}})
		}
		if !o.Entry && !o.Checkpoint {
			out[i].files[o.Attempt]++
		}
		out[i].epoch = max(out[i].epoch, o.Epoch)
		return nil
	})
	slices.SortFunc(out, func(a, b found) int { return a.id.Compare(b.id) })
	return out, err
}

// log reads the manifest of a log, looks at its objects, and adds it.
func (r *run) log(ctx context.Context, f *found) error {
	u, err := r.c.Store.Union(ctx, f.id)
	if err != nil {
		return err
	}
	for _, p := range u.Problems {
		if errors.Is(p.Err, tier.ErrNewer) {
			return fmt.Errorf("%w; run the tierd that wrote it, or a later one", p.Err)
		}
	}
	r.report.Problems = append(r.report.Problems, u.Problems...)
	k := &known{id: f.id, now: r.c.Now, union: u}
	if err := r.verify(ctx, k); err != nil {
		return err
	}
	scan, present := r.c.Local(f.id)
	k.derive(f.epoch, scan, present)
	if err := r.sayAgain(ctx, k); err != nil {
		return err
	}
	state, err := r.b.Log(k.state, k.facts)
	if err != nil {
		return err
	}
	l := Log{State: state, LeftOut: r.missing(k), Moved: int64(len(k.moved)), Present: present,
		Unnamed: r.unnamedOf(f, &u)}
	for _, f := range k.facts {
		r.report.Clock = max(r.report.Clock, f.At)
		if f.Add != nil {
			l.Copies++
			l.Bytes += f.Add.Content.Bytes()
		}
	}
	r.report.Logs = append(r.report.Logs, l)
	r.table(f.id.Table, state.Epoch)
	return nil
}

// table notes that a table has a log in the epoch. Logs come by table.
func (r *run) table(name string, epoch tier.TierEpoch) {
	last := len(r.report.Tables) - 1
	if last < 0 || r.report.Tables[last].Table != name {
		t := tier.TableState{Table: name, State: tier.Enabled, Since: r.c.Now}
		if cfg, ok := r.c.Table(name); ok {
			t.Entry = cfg.Governor
			if !cfg.Tiering {
				t.State, t.Policy = tier.Disabled, tier.PolicyRetain
			}
		}
		r.report.Tables = append(r.report.Tables, t)
		last++
	}
	t := &r.report.Tables[last]
	t.Epoch = max(t.Epoch, epoch)
}

// sayAgain publishes the facts that moved.
func (r *run) sayAgain(ctx context.Context, k *known) error {
	if r.c.Dry {
		return nil
	}
	for _, f := range k.moved {
		attempt := tier.AttemptID{}
		if f.Add != nil {
			attempt = f.Add.Attempt
		}
		if err := r.c.Store.PutFact(ctx, k.id, attempt, f); err != nil {
			return err
		}
	}
	return nil
}

// byPosition orders facts.
func byPosition(a, b tier.Fact) int { return cmp.Compare(a.Position, b.Position) }
