package sim

import (
	"context"
	"slices"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/runtime/exec"
	"github.com/tierd/tierd/runtime/tier"
)

// A store may lose or alter an object of a manifest, too. The files are there, and the ledger knows
// them; what lacks is what whoever reads the manifest alone goes by. A scrub says it again. Until
// then the loss is an excuse, and from then on none.

// mendManifest has what the store lost or altered of a log's manifest said again, as the daemon's
// scrubber does. Where the store does not answer the rest is for another time.
func (w *World) mendManifest(id tier.LogID) error {
	p := w.process
	if w.oracle != nil {
		w.oracle.saying = nil
	}
	_, err := p.exec.MendManifest(context.Background(), id, exec.MendAt{}, func(m exec.Mended) error {
		if m.Mending == exec.MendAgain {
			w.mended++
		}
		return nil
	})
	if w.oracle != nil {
		w.oracle.saidAgain(id)
		if err == nil && !w.stopped {
			w.oracle.mended(id)
		}
	}
	return p.ledger.Err()
}

// saidAgain judges what became of the objects that were said again. Where the store kept less of
// one than it was given, it has lost that until somebody looks again.
func (o *Oracle) saidAgain(id tier.LogID) {
	ledger, err := o.w.ledgerNow()
	if err != nil {
		return // rest says so
	}
	for _, x := range o.w.storeNow(ledger.id).others {
		if x.Log == id && slices.Contains(o.saying, x.key) && !x.document(ledger.id).sound {
			o.lost(x.key)
		}
	}
	o.saying = nil
}

// unsaid is an entry that was lost of a copy that is no part of its log any more: nobody says it
// again.
type unsaid struct {
	objstore.Key
	base tier.Offset
}

// mended notes that all of the manifest was looked at: what the ledger holds was said again, and
// that it was lost is no excuse any more. What the ledger has forgotten since, as one that was made
// anew, nobody can say.
func (o *Oracle) mended(id tier.LogID) {
	ledger, err := o.w.ledgerNow()
	if err != nil {
		return // rest says so
	}
	l, t := ledger.log(id), ledger.table(id.Table)
	o.changed = true
	o.lostKeys = slices.DeleteFunc(o.lostKeys, func(k objstore.Key) bool {
		if k.Log != id || k.Kind != objstore.KeyEntry {
			return k.Log == id && k.Kind == objstore.KeyCheckpoint
		}
		f := l.entry(k)
		if f != nil && f.Add != nil && !l.tells(f.Add, t) {
			o.unsaid = append(o.unsaid, unsaid{k, f.Add.Content.Range.Base})
		}
		return f != nil
	})
}

// tells reports whether the manifest is to have the copy: it is part of its log, and stays so with
// what the table has decided before its logs.
func (l *ledgerLog) tells(c *tier.Copy, t tier.TableState) bool {
	return l.counts(c, t) && c.Epoch >= t.Fresh
}

// entry is the fact of an entry; nil where the ledger does not hold it.
func (l *ledgerLog) entry(k objstore.Key) *tier.Fact {
	if l == nil {
		return nil
	}
	i := slices.IndexFunc(l.facts, func(f tier.Fact) bool {
		return f.Position == k.Position && (f.Add == nil) == (k.Attempt == tier.AttemptID{}) &&
			(f.Add == nil || f.Add.Attempt == k.Attempt)
	})
	if i < 0 {
		return nil
	}
	return &l.facts[i]
}

// lostMark reports whether the store lost some object of the log's manifest that may have said
// where the log starts, ends or was opened, and nobody has looked since.
func (o *Oracle) lostMark(id tier.LogID) bool {
	return o.lostOf(id, func(k objstore.Key) bool {
		return k.Kind == objstore.KeyCheckpoint ||
			k.Kind == objstore.KeyEntry && k.Attempt == tier.AttemptID{}
	})
}

// leftUnsaid reports whether the entry of the copy was lost, and the copy has left its log.
func (o *Oracle) leftUnsaid(id tier.LogID, c *tier.Copy) bool {
	return slices.ContainsFunc(o.unsaid, func(u unsaid) bool {
		return u.Log == id && u.Attempt == c.Attempt
	})
}
