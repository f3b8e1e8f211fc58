package sim

import (
	"context"
	"maps"
	"slices"
	"strings"

	thanos "github.com/thanos-io/objstore"

	"github.com/tierd/tierd/runtime/tier"
)

// heard is the store as a process hears it: what is answered to a removal is told to the oracle.
type heard struct {
	thanos.Bucket
	w *World
}

// Delete implements thanos.Bucket.
func (h heard) Delete(ctx context.Context, key string) error {
	o := h.w.oracle
	if o == nil {
		return h.Bucket.Delete(ctx, key)
	}
	of := o.removal(key) // since somebody may announce another one meanwhile
	err := h.Bucket.Delete(ctx, key)
	if of != nil {
		of.gone[key] = err == nil || h.IsObjNotFoundErr(err)
	}
	return err
}

// removal is what a process asked the store to remove under one announcement: by key, whether the
// last answer was that it is gone.
type removal struct{ gone map[string]bool }

// hearing is what the oracle heard of removals, by the sequence number of what announced them,
// until that is concluded. The first announcements, up to to, all are; others that were judged are
// in told.
type hearing struct {
	of   map[uint64]*removal
	to   int
	told map[uint64]bool
}

// remote reports whether it is of something in the store.
func (in *intent) remote() bool { return in.action != tier.DeleteLocal && in.object != "" }

// removal is that of the last announcement that is open for the object; nil where there is none.
func (o *Oracle) removal(key string) *removal {
	var seq uint64
	for _, in := range o.w.intents() {
		if in.remote() && in.outcome == "" && strings.HasPrefix(key, in.object) {
			seq = in.seq
		}
	}
	if seq == 0 {
		return nil
	}
	if o.hearing.of[seq] == nil {
		o.hearing.of[seq] = &removal{gone: map[string]bool{}}
	}
	return o.hearing.of[seq]
}

// heardOf (S17): a removal is called deleted only where the store said so of each of its objects,
// and kept only where nothing was asked of the store. Each is judged once, as soon as its outcome
// is durable.
func (o *Oracle) heardOf(store *storeTruth) {
	all := o.w.intents()
	done := true // all that came before
	for i := min(o.hearing.to, len(all)); i < len(all); i++ {
		in := all[i]
		if in.outcome != "" && !o.hearing.told[in.seq] {
			o.hearing.told[in.seq] = true
			if in.remote() {
				o.answeredAs(in, store)
			}
		}
		if done = done && in.outcome != ""; done {
			o.hearing.to = i + 1
		}
	}
}

func (o *Oracle) answeredAs(in *intent, store *storeTruth) {
	var gone map[string]bool
	if of := o.hearing.of[in.seq]; of != nil {
		gone = of.gone
	}
	delete(o.hearing.of, in.seq)
	switch in.outcome {
	case tier.OutcomeKept:
		for _, key := range slices.Sorted(maps.Keys(gone)) {
			o.violate(AuditTrue, "the audit log says that %s was kept, and the store was asked to delete it",
				key)
		}
	case tier.OutcomeDeleted:
		for _, key := range slices.Sorted(maps.Keys(gone)) {
			if !gone[key] {
				o.violate(AuditTrue, "the audit log says that %s was deleted, and the store had no success "+
					"with it", key)
			}
		}
		for _, x := range slices.Concat(store.objects, store.others) {
			if strings.HasPrefix(x.key, in.object) && !gone[x.key] {
				o.violate(AuditTrue, "the audit log says that %s was deleted, and it is there", x.key)
			}
		}
	}
}
