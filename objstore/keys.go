package objstore

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tierd/tierd/runtime/tier"
)

// Keys makes and reads the keys of one ledger. See the package's documentation for their grammar.
type Keys struct{ ledger string }

// NewKeys returns the keys of the ledger with the id: 1 to 64 letters, digits, "-" and "_".
func NewKeys(ledger string) (Keys, error) {
	if !isPlain(ledger) {
		return Keys{}, fmt.Errorf("ledger id %q: want 1 to 64 letters, digits, - and _", ledger)
	}
	return Keys{ledger}, nil
}

// isPlain reports whether s is a step of a key as it is: 1 to 64 letters, digits, "-" and "_".
func isPlain(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		return r > unicode.MaxASCII || !plain(byte(r))
	})
}

// KeyKind says what an object is.
type KeyKind string

// The kinds of objects.
const (
	KeyFile       KeyKind = "file"       // a file of a segment
	KeyEntry      KeyKind = "entry"      // one fact of a manifest
	KeyCheckpoint KeyKind = "checkpoint" // a block of facts of a manifest
	KeyOwner      KeyKind = "owner"      // names the ledger's owner
	KeyProbe      KeyKind = "probe"      // of a check, and then deleted
)

// Key is a key taken apart. Which fields are set depends on the kind.
type Key struct {
	Kind     KeyKind
	Log      tier.LogID     // of a file, entry or checkpoint
	Epoch    tier.TierEpoch // of a file
	Base     tier.Offset    // of a file
	Attempt  tier.AttemptID // of a file or entry
	Position tier.Position  // of an entry
	Level    uint8          // of a checkpoint
	Block    uint64         // of a checkpoint
	Name     string         // of a file, or the nonce of a probe
}

// CheckLog reports whether the log's id can be part of keys, and if not, what is wrong.
func CheckLog(id tier.LogID) error {
	if err := id.Validate(); err != nil {
		return err
	}
	if n := max(len(escape(id.Table)), len(escape(id.Name))); n > componentBytesMax {
		return fmt.Errorf("log id %q: table and name must fit in %d bytes each of a key, not %d",
			id, componentBytesMax, n)
	}
	return nil
}

// CheckName reports whether a file's name can end a key, and if not, what is wrong.
func CheckName(name string) error {
	switch {
	case name == "" || name == "." || name == "..":
		return fmt.Errorf("file name %q: want the name of a file", name)
	case len(name) > componentBytesMax:
		return fmt.Errorf("file name %q: longer than %d bytes", name, componentBytesMax)
	case !utf8.ValidString(name):
		return fmt.Errorf("file name %q: not valid UTF-8", name)
	case strings.ContainsAny(name, `/\`):
		return fmt.Errorf("file name %q: contains a slash or backslash", name)
	case strings.HasSuffix(name, "."):
		return fmt.Errorf("file name %q: ends with a dot, which some stores drop", name)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("file name %q: contains a control character", name)
	}
	return nil
}

// keyBytes is as much as nearly all keys need.
const keyBytes = 256

// log appends the directory of a log, with which a key begins.
func (k Keys) log(b []byte, id tier.LogID) []byte {
	b = append(append(b, k.ledger...), "/logs/"...)
	b = append(append(b, escape(id.Table)...), '/')
	return append(append(b, escape(id.Name)...), '/')
}

// Attempt is the directory of all files of an attempt, with its slash; the name in o does not
// matter.
func (k Keys) Attempt(o tier.ObjectKey) (string, error) {
	var buf [keyBytes]byte
	b, err := k.attempt(buf[:0], o)
	return string(b), err
}

func (k Keys) attempt(b []byte, o tier.ObjectKey) ([]byte, error) {
	if err := CheckLog(o.Log); err != nil {
		return nil, err
	}
	if o.Base < 0 || o.Epoch == 0 {
		return nil, fmt.Errorf("object of %s: base offset %d, tier epoch %d: want 0 or more, 1 or more",
			o.Log, o.Base, o.Epoch)
	}
	b = padded(k.log(b, o.Log), uint64(o.Epoch), 10, 8)
	b = padded(append(b, '/'), uint64(o.Base), 10, 20)
	b = hex.AppendEncode(append(b, '-'), o.Attempt[:])
	return append(b, '/'), nil
}

// File is the key of one file of an attempt.
func (k Keys) File(o tier.ObjectKey) (string, error) {
	var buf [keyBytes]byte
	b, err := k.file(buf[:0], o)
	return string(b), err
}

func (k Keys) file(b []byte, o tier.ObjectKey) ([]byte, error) {
	b, err := k.attempt(b, o)
	if err == nil {
		err = CheckName(o.Name)
	}
	if err != nil {
		return nil, err
	}
	return append(b, o.Name...), nil
}

// Manifest is the directory of a log's manifest, with its slash.
func (k Keys) Manifest(log tier.LogID) (string, error) {
	var buf [keyBytes]byte
	b, err := k.manifest(buf[:0], log)
	return string(b), err
}

func (k Keys) manifest(b []byte, log tier.LogID) ([]byte, error) {
	if err := CheckLog(log); err != nil {
		return nil, err
	}
	return append(k.log(b, log), "manifest/"...), nil
}

// Entry is the key of the manifest entry at the position.
func (k Keys) Entry(log tier.LogID, pos tier.Position, attempt tier.AttemptID) (string, error) {
	var buf [keyBytes]byte
	b, err := k.entry(buf[:0], log, pos, attempt)
	return string(b), err
}

func (k Keys) entry(b []byte, log tier.LogID, pos tier.Position, attempt tier.AttemptID) (
	[]byte, error) {
	b, err := k.manifest(b, log)
	if err != nil {
		return nil, err
	}
	b = padded(b, uint64(pos), 16, 16)
	b = hex.AppendEncode(append(b, '-'), attempt[:])
	return append(b, ".json"...), nil
}

// Checkpoint is the key of the manifest's checkpoint of the block at the level.
func (k Keys) Checkpoint(log tier.LogID, level uint8, block uint64) (string, error) {
	var buf [keyBytes]byte
	b, err := k.checkpoint(buf[:0], log, level, block)
	return string(b), err
}

func (k Keys) checkpoint(b []byte, log tier.LogID, level uint8, block uint64) ([]byte, error) {
	b, err := k.manifest(b, log)
	if err == nil {
		err = checkBlock(level, block)
	}
	if err != nil {
		return nil, err
	}
	b = padded(append(b, 'L'), uint64(level), 10, 1)
	b = padded(append(b, '-'), block, 16, 16)
	return append(b, ".json"...), nil
}

// Owner is the key of the object that names the ledger's owner.
func (k Keys) Owner() string { return k.ledger + "/owner.json" }

// Probe is the key of the object of a check, made different from others by the nonce.
func (k Keys) Probe(nonce string) (string, error) {
	if !isPlain(nonce) {
		return "", fmt.Errorf("probe %q: want 1 to 64 letters, digits, - and _", nonce)
	}
	return k.ledger + "/probe/" + nonce, nil
}

// ErrForeign: the key is none that tierd makes for this ledger.
var ErrForeign = errors.New("not a key of this ledger")

// padded appends n with zeros in front, in so many digits at least.
func padded(b []byte, n uint64, base, digits int) []byte {
	var text [64]byte
	s := strconv.AppendUint(text[:0], n, base)
	for range digits - len(s) {
		b = append(b, '0')
	}
	return append(b, s...)
}

// keySteps is one step more than a key has at most.
const keySteps = 8

// Parse takes a key apart. It accepts exactly what the other methods make.
func (k Keys) Parse(key string) (Key, error) {
	var steps [keySteps]string
	n, rest := 0, key
	for more := true; more && n < len(steps); n++ {
		steps[n], rest, more = strings.Cut(rest, "/")
	}
	p, ok := k.parse(steps[:n])
	if ok {
		var buf [keyBytes]byte
		again, err := k.append(buf[:0], p)
		ok = err == nil && string(again) == key
	}
	if !ok {
		return Key{}, fmt.Errorf("%s: %w", key, ErrForeign)
	}
	return p, nil
}

func (k Keys) parse(steps []string) (p Key, ok bool) {
	switch {
	case len(steps) < 2 || steps[0] != k.ledger:
		return Key{}, false
	case len(steps) == 2:
		return Key{Kind: KeyOwner}, true
	case len(steps) == 3:
		return Key{Kind: KeyProbe, Name: steps[2]}, true
	case len(steps) != 6 && len(steps) != 7:
		return Key{}, false
	}
	table, err1 := unescape(steps[2])
	name, err2 := unescape(steps[3])
	if err1 != nil || err2 != nil {
		return Key{}, false
	}
	if len(steps) == 6 {
		p, ok = parseManifest(steps[5])
	} else {
		p, ok = parseAttempt(steps[4], steps[5])
		p.Name = steps[6]
	}
	p.Log = tier.LogID{Table: table, Name: name}
	return p, ok
}

func parseAttempt(epoch, dir string) (Key, bool) {
	base, attempt, ok := strings.Cut(dir, "-")
	e, err1 := strconv.ParseUint(epoch, 10, 32)
	b, err2 := strconv.ParseInt(base, 10, 64)
	p := Key{Kind: KeyFile, Epoch: tier.TierEpoch(e), Base: tier.Offset(b)}
	err3 := p.Attempt.UnmarshalText([]byte(attempt))
	return p, ok && err1 == nil && err2 == nil && err3 == nil
}

func parseManifest(file string) (Key, bool) {
	stem, ok := strings.CutSuffix(file, ".json")
	first, second, cut := strings.Cut(stem, "-")
	if level, isBlock := strings.CutPrefix(first, "L"); isBlock {
		l, err1 := strconv.ParseUint(level, 10, 8)
		b, err2 := strconv.ParseUint(second, 16, 64)
		p := Key{Kind: KeyCheckpoint, Level: uint8(l), Block: b}
		return p, ok && cut && err1 == nil && err2 == nil
	}
	pos, err1 := strconv.ParseUint(first, 16, 64)
	p := Key{Kind: KeyEntry, Position: tier.Position(pos)}
	err2 := p.Attempt.UnmarshalText([]byte(second))
	return p, ok && cut && err1 == nil && err2 == nil
}

// format makes the key that p was taken from.
func (k Keys) format(p Key) (string, error) {
	var buf [keyBytes]byte
	b, err := k.append(buf[:0], p)
	return string(b), err
}

// append is format behind what there is.
func (k Keys) append(b []byte, p Key) ([]byte, error) {
	switch p.Kind {
	case KeyFile:
		return k.file(b, tier.ObjectKey{Log: p.Log, Epoch: p.Epoch, Base: p.Base,
			Attempt: p.Attempt, Name: p.Name})
	case KeyEntry:
		return k.entry(b, p.Log, p.Position, p.Attempt)
	case KeyCheckpoint:
		return k.checkpoint(b, p.Log, p.Level, p.Block)
	case KeyOwner:
		return append(b, k.Owner()...), nil
	default:
		key, err := k.Probe(p.Name)
		return append(b, key...), err
	}
}
