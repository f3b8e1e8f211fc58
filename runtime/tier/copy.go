package tier

import (
	"encoding/hex"
	"fmt"
)

// AttemptID names one attempt to copy one segment. It is new each time, by chance, and part of
// every key of the attempt, so that a late upload can overwrite or revive nothing.
type AttemptID [16]byte

// String gives 32 lower-case hexadecimal digits.
func (a AttemptID) String() string { return hex.EncodeToString(a[:]) }

// MarshalText gives the hexadecimal form.
func (a AttemptID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, a[:]), nil }

// UnmarshalText reads the hexadecimal form.
func (a *AttemptID) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(a)) {
		return fmt.Errorf("attempt id %q: want 32 hexadecimal digits", text)
	}
	if _, err := hex.Decode(a[:], text); err != nil {
		return fmt.Errorf("attempt id %q: %w", text, err)
	}
	return nil
}

// VerifyMode says how much of an uploaded object is read back before it counts.
type VerifyMode string

// The verify modes. The size is always compared.
const (
	VerifySize   VerifyMode = "size"   // only the size
	VerifySample VerifyMode = "sample" // head, tail and one block in between, byte for byte
	VerifyFull   VerifyMode = "full"   // every byte, against the SHA-256
)

// Attempt is a copy under way: everything needed to find, finish or collect what it may have left
// in the store, without a listing.
type Attempt struct {
	ID        AttemptID `json:"id"`
	Position  Position  `json:"position"` // of its manifest entry
	Epoch     TierEpoch `json:"epoch"`
	Range     Range     `json:"range"`
	Names     []string  `json:"names"` // file names; the keys follow from id, epoch and range
	StartedAt Time      `json:"started_at"`
}

// Object names the file of the attempt with the base name in the store.
func (a *Attempt) Object(log LogID, name string) ObjectKey {
	return ObjectKey{Log: log, Epoch: a.Epoch, Base: a.Range.Base, Attempt: a.ID, Name: name}
}

// Copy is a finished copy: one segment of a log in the store, with the identity that its local
// files had when the copy finished.
type Copy struct {
	Attempt    AttemptID  `json:"attempt"`
	Position   Position   `json:"position"`
	Epoch      TierEpoch  `json:"epoch"`
	Content    Content    `json:"content"`
	ModTime    Time       `json:"mtime"` // of the local log file; serves where MaxTime is unusable
	Verified   VerifyMode `json:"verified"`
	FinishedAt Time       `json:"finished_at"`
}

// Remote is what the engine keeps in memory of a Copy, for every remote segment: no strings, no
// pointers.
type Remote struct {
	Range
	Position   Position
	Epoch      TierEpoch
	Last       LeaderEpoch // of its last batch; NoLeaderEpoch where its batches carry none
	Verified   bool
	Clipped    bool // a clip cuts it off: the file that it is a copy of was written anew since
	Bytes      int64
	Log        Stat // identity of the local log file when the copy finished
	MaxTime    Time
	ModTime    Time
	FinishedAt Time
}

// Object names the file of the copy with the base name in the store.
func (c *Copy) Object(log LogID, name string) ObjectKey {
	return ObjectKey{Log: log, Epoch: c.Epoch, Base: c.Content.Range.Base, Attempt: c.Attempt,
		Name: name}
}

// Remote gives the compact form of c.
func (c *Copy) Remote() Remote {
	r := Remote{
		Range: c.Content.Range, Position: c.Position, Epoch: c.Epoch,
		Verified: c.Verified != "", Bytes: c.Content.Bytes(),
		MaxTime: c.Content.MaxTime, ModTime: c.ModTime, FinishedAt: c.FinishedAt,
		Last: LastEpoch(c.Content.Lineage),
	}
	if len(c.Content.Files) > 0 {
		r.Log = c.Content.Files[0].Stat
	}
	return r
}

// Counted is a range of offsets with the position of the copy that they are read from: less than
// that copy's own range where a newer one or a clip took the rest.
type Counted struct {
	Range
	Position Position
}

// HoleCause says why offsets are in neither tier.
type HoleCause string

// The causes of a hole.
const (
	HoleSourceGone   HoleCause = "source-gone"   // the source dropped them before they were copied
	HoleLossAccepted HoleCause = "loss-accepted" // an operator accepted the loss of a damaged segment
	HoleDisabled     HoleCause = "disabled"      // they passed by while tiering was off
)

// Hole is a range that neither tier has. It proves nothing.
type Hole struct {
	Range
	Cause HoleCause `json:"cause"`
	At    Time      `json:"at"`
}
