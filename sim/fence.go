package sim

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/tierd/tierd/runtime/tier"
)

// fence is what the oracle remembers for S8.
type fence struct {
	epochs map[string]tier.TierEpoch // of each table, when it was looked at last
	known  map[tier.AttemptID]bool   // copies that were on record then
}

// begin takes what a ledger holds that is not one's own doing.
func (f *fence) begin(ledger *ledgerTruth) {
	f.epochs = map[string]tier.TierEpoch{}
	for _, l := range ledger.logs {
		for _, fact := range l.facts {
			if fact.Add != nil {
				f.known[fact.Add.Attempt] = true
			}
		}
	}
}

// fences (S8): what is recorded as a copy is of the tier epoch that its table is in; an attempt
// that ends after its epoch did counts nowhere. Between two looks a table may have gone on to its
// next epoch, but only after the record.
func (o *Oracle) fences(ledger *ledgerTruth) {
	for _, l := range ledger.logs {
		table := l.state.Log.Table
		for _, f := range l.facts {
			if f.Add == nil || o.fence.known[f.Add.Attempt] {
				continue
			}
			o.fence.known[f.Add.Attempt] = true
			now, before := ledger.table(table).Epoch, o.fence.epochs[table]
			if f.Add.Epoch != now && f.Add.Epoch != before && before != 0 && !o.old {
				o.outOfEpoch(l.state.Log, f.Add.Content.Range.Base, fmt.Sprintf("was recorded in tier "+
					"epoch %d, and its copy is of %d", now, f.Add.Epoch))
			}
		}
	}
	for _, t := range ledger.tables {
		o.fence.epochs[t.Table] = t.Epoch
	}
}

// provedNow (S8): what proves a local deletion is a copy that counts in the epoch that its log is
// in. Whether there is a copy at all is proved's business.
func (o *Oracle) provedNow(f fileName, files []file, at string) {
	ledger, err := o.w.ledgerNow()
	i := slices.IndexFunc(files, func(x file) bool { return x.at == at })
	if err != nil || i < 0 || ledger.table(f.log.Table).State != tier.Enabled {
		return
	}
	l := ledger.log(f.log)
	if l == nil {
		return
	}
	sum, over := tier.SHA256(sha256.Sum256(files[i].data)), tier.TierEpoch(0)
	for _, fact := range l.facts {
		if fact.Add == nil || fact.Add.Content.Range.Base != f.base {
			continue
		}
		for _, named := range fact.Add.Content.Files {
			if named.Name != f.name || named.SHA256 != sum {
				continue
			}
			if fact.Add.Epoch >= l.state.Fresh {
				return
			}
			over = fact.Add.Epoch
		}
	}
	if over != 0 {
		o.outOfEpoch(f.log, f.base, fmt.Sprintf("goes on the proof of a copy of tier epoch %d, and "+
			"nothing before %d counts", over, l.state.Fresh))
	}
}

func (o *Oracle) outOfEpoch(id tier.LogID, base tier.Offset, why string) {
	o.violateAt(EpochFence, id, base, "segment %d of %s %s", base, id, why)
}
