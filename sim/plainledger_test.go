package sim

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/runtime/tier"
)

// TestTheLedgerIsReadAsItSays: where what the daemon's decoders make of the ledger is not what its
// entries say, in whichever part, the oracle tells.
func TestTheLedgerIsReadAsItSays(t *testing.T) {
	t.Parallel()
	for name, otherwise := range map[string]func(*ledgerTruth){
		"as it is":          func(*ledgerTruth) {},
		"its id":            func(l *ledgerTruth) { l.id += "0" },
		"its clock":         func(l *ledgerTruth) { l.clock++ },
		"a table":           func(l *ledgerTruth) { l.tables[0].Window.Bytes++ },
		"the copied offset": func(l *ledgerTruth) { l.logs[0].state.Copied += 10 },
		"a log":             func(l *ledgerTruth) { l.logs = nil },
		"a copy's epoch":    func(l *ledgerTruth) { l.logs[0].facts[0].Add.Epoch++ },
		"a copy's hash": func(l *ledgerTruth) {
			l.logs[0].facts[0].Add.Content.Files[0].SHA256[0]++
		},
		"a copy":                       func(l *ledgerTruth) { l.logs[0].facts = l.logs[0].facts[1:] },
		"an attempt that is not there": func(l *ledgerTruth) { l.logs[0].attempts = []tier.Attempt{{}} },
		"a tombstone that is not there": func(l *ledgerTruth) {
			l.logs[0].tombstones = []offsets.Tombstone{{}}
		},
	} {
		r := newRig(t)
		r.copied(2)
		ledger, err := r.w.ledgerNow()
		r.do(err)
		otherwise(ledger)
		r.oracle.spelled(ledger)
		told := slices.ContainsFunc(r.oracle.Violations(), func(v Violation) bool {
			return v.Property == Settled && strings.Contains(v.Text, "is read as")
		})
		if told != (name != "as it is") {
			t.Errorf("%s: the oracle says %v", name, r.oracle.Violations())
		}
	}
}

// TestAnEntryIsReadToItsEnd: what has a wrong sum, or is longer or shorter than it says, is no
// entry.
func TestAnEntryIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	key := []byte{entryTable, 't'}
	put := func(value []byte) error {
		m := offsets.NewMemory([16]byte{1})
		must(m.Update(func(tx offsets.Tx) error { return tx.Put(key, value) }))
		_, err := readPlain(m)
		return err
	}
	sealed := func(value []byte) []byte {
		sum := crc32.Checksum(slices.Concat(key, value), crc32.MakeTable(crc32.Castagnoli))
		return binary.BigEndian.AppendUint32(slices.Clone(value), sum)
	}
	whole := make([]byte, 1+11)
	whole[0] = 1
	if err := put(sealed(whole)); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string][]byte{
		"a byte too many": sealed(append(slices.Clone(whole), 0)),
		"a byte too few":  sealed(whole[:len(whole)-1]),
		"another version": sealed(append([]byte{2}, whole[1:]...)),
		"another sum":     append(slices.Clone(whole), 0, 0, 0, 0),
	} {
		if put(value) == nil {
			t.Errorf("%s: it is read", name)
		}
	}
}
