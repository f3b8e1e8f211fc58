package offsets

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/tierd/tierd/runtime/tier"
)

// The versions that this package writes. It reads all versions up to them.
const (
	formatVersion = 2 // of the ledger as a whole: which kinds of keys there are
	valueVersion  = 1 // of a single value
)

// kind is the first byte of a key. The numbers are part of the format; 10 and up are free.
type kind byte

const (
	kindRoot      kind = 0 // the ledger itself
	kindLog       kind = 1 // number: state of a log
	kindCopy      kind = 2 // number, position: finished copy
	kindAttempt   kind = 3 // number, position: copy under way
	kindTombstone kind = 4 // number, position: abandoned attempt
	kindHole      kind = 5 // number, position: offsets in neither tier
	kindTable     kind = 6 // name: state of a table
	kindAttemptID kind = 7 // attempt id: where that attempt is
	kindMark      kind = 8 // number, position: where a start, a clip or an epoch is
	kindJournal   kind = 9 // number: changes that are not yet in their place; a bbolt file's own
)

// String names the kind for people.
func (k kind) String() string {
	names := [...]string{"ledger", "log", "copy", "attempt", "tombstone", "hole", "table",
		"attempt id", "mark", "journal"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("kind %d", byte(k))
}

func rootKey() []byte { return []byte{byte(kindRoot)} }

// afterRoot is where all other keys begin.
var afterRoot = []byte{byte(kindRoot), 0}

func logKey(number uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{byte(kindLog)}, number)
}

// factKey is the key of what a log has at a position: a copy, an attempt, a tombstone, a hole or a
// mark.
func factKey(k kind, number uint64, pos tier.Position) []byte {
	b := make([]byte, 0, 17)
	b = binary.BigEndian.AppendUint64(append(b, byte(k)), number)
	return binary.BigEndian.AppendUint64(b, uint64(pos))
}

func tableKey(name string) []byte { return append([]byte{byte(kindTable)}, name...) }

func attemptIDKey(id tier.AttemptID) []byte {
	return append(append(make([]byte, 0, 1+len(id)), byte(kindAttemptID)), id[:]...)
}

// factRange is the key range of the positions [from, to) of a log.
func factRange(k kind, number uint64, from, to tier.Position) (low, high []byte) {
	return factKey(k, number, from), factKey(k, number, to)
}

func journalKey(part uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{byte(kindJournal)}, part)
}

// splitFactKey takes a key made by factKey apart.
func splitFactKey(key []byte) (number uint64, pos tier.Position) {
	return binary.BigEndian.Uint64(key[1:9]), tier.Position(binary.BigEndian.Uint64(key[9:17]))
}

// keyShaped reports whether the key has the length that its kind says.
func keyShaped(key []byte) bool {
	if len(key) == 0 {
		return false
	}
	switch kind(key[0]) {
	case kindRoot:
		return len(key) == 1
	case kindLog:
		return len(key) == 9
	case kindCopy, kindAttempt, kindTombstone, kindHole, kindMark, kindAttemptID:
		return len(key) == 17
	case kindTable:
		return len(key) > 1
	default:
		return false
	}
}

// keyName describes a key for people.
func keyName(key []byte) string {
	if len(key) == 9 && kind(key[0]) == kindJournal {
		return fmt.Sprintf("part %d of the journal (%x)", binary.BigEndian.Uint64(key[1:]), key)
	}
	if !keyShaped(key) {
		return fmt.Sprintf("entry %x", key)
	}
	switch k := kind(key[0]); k {
	case kindRoot:
		return "entry of the ledger itself (00)"
	case kindLog:
		return fmt.Sprintf("log %d (%x)", binary.BigEndian.Uint64(key[1:]), key)
	case kindTable:
		return fmt.Sprintf("table %q (%x)", key[1:], key)
	case kindAttemptID:
		return fmt.Sprintf("attempt id %x (%x)", key[1:], key)
	default:
		number, pos := splitFactKey(key)
		return fmt.Sprintf("%s %d of log %d (%x)", k, pos, number, key)
	}
}

// Every value stands in an envelope, which no later version changes: its version, the body, and
// the CRC32C of key, version and body. The key is part of the sum so that a value that comes up
// under another key is found.
const envelopeBytes = 1 + 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(key, versioned []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, versioned)
}

// enclose puts a body into its envelope.
func enclose(key, body []byte) []byte {
	value := make([]byte, 0, len(body)+envelopeBytes)
	value = append(append(value, valueVersion), body...)
	return binary.BigEndian.AppendUint32(value, checksum(key, value))
}

// disclose checks the envelope and returns the body. Errors wrap tier.ErrDamaged or tier.ErrNewer.
func disclose(key, value []byte) (body []byte, err error) {
	if len(value) < envelopeBytes {
		return nil, fmt.Errorf("%s: %w: %d bytes are too few for a value", keyName(key),
			tier.ErrDamaged, len(value))
	}
	end := len(value) - 4
	if want, got := storedChecksum(value), checksum(key, value[:end]); want != got {
		return nil, fmt.Errorf("%s: %w: the checksum is %08x, but says %08x", keyName(key),
			tier.ErrDamaged, got, want)
	}
	if v := value[0]; v > valueVersion {
		return nil, fmt.Errorf("%s: %w: its version is %d, this tierd knows up to %d",
			keyName(key), tier.ErrNewer, v, valueVersion)
	} else if v == 0 {
		return nil, fmt.Errorf("%s: %w: it has no version", keyName(key), tier.ErrDamaged)
	}
	return value[1:end], nil
}

// storedChecksum is the checksum that a value carries.
func storedChecksum(value []byte) uint32 { return binary.BigEndian.Uint32(value[len(value)-4:]) }

// tally sums up all entries but the root, which carries it: their number, and the sum modulo 2^64
// of their scrambled checksums. It is kept up to date by each commit. An entry that is lost, stale
// or there twice has a checksum that fits, and is found by the tally alone.
type tally struct {
	entries uint64
	sum     uint64
}

// add counts an entry with the value.
func (t *tally) add(value []byte) {
	t.entries++
	t.sum += scramble(storedChecksum(value))
}

// remove takes out an entry whose value carries the checksum.
func (t *tally) remove(checksum uint32) {
	t.entries--
	t.sum -= scramble(checksum)
}

// scramble spreads a checksum over 64 bits, so that sums of checksums do not cancel out: a CRC is
// linear. The steps are the finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
func scramble(crc uint32) uint64 {
	z := uint64(crc) + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// writer changes entries in a transaction and keeps the tally.
type writer struct {
	Tx
	tally
}

// put sets the value of key. That it is new says that the key has none yet: to look for one would
// be most of what a record costs.
func (w *writer) put(key, value []byte, isNew bool) error {
	if !isNew {
		if err := w.forget(key); err != nil {
			return err
		}
	}
	w.add(value)
	return w.Put(key, value)
}

func (w *writer) delete(key []byte) error {
	if err := w.forget(key); err != nil {
		return err
	}
	return w.Delete(key)
}

// forget takes the entry that key has now out of the tally.
func (w *writer) forget(key []byte) error {
	value, err := w.Get(key)
	if err != nil || value == nil {
		return err
	}
	if len(value) < envelopeBytes {
		return fmt.Errorf("%s: %w: %d bytes are too few for a value", keyName(key), tier.ErrDamaged,
			len(value))
	}
	w.remove(storedChecksum(value))
	return nil
}
