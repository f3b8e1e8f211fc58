package sim

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/runtime/tier"
)

// document is an object of a manifest, an entry or a checkpoint, as the oracle reads it: by
// encoding/json, or plainDocument, and by none of the daemon's own decoders, so that what one of
// these takes for proof and is none does not pass for it here as well. plainDocument shares with
// them how a number or a text is read; that it says what encoding/json does, a test shows.
type document struct {
	Version int
	Kind    string
	Ledger  string
	Log     string
	Attempt tier.AttemptID // of an entry
	Fact    tier.Fact      // of an entry
	Level   uint8          // of a checkpoint
	Block   uint64         // of a checkpoint
	Facts   []tier.Fact    // of a checkpoint
	sound   bool
}

// document reads the object once. One that is damaged, or lies where it does not belong, is not
// sound.
func (o *object) document(ledger string) *document {
	if o.said != nil {
		return o.said
	}
	o.said = &document{}
	if !sealed(o.data) {
		return o.said
	}
	d, plain := plainDocument(o.data)
	if !plain {
		d = &document{}
		if json.Unmarshal(o.data, d) != nil {
			return o.said
		}
	}
	o.said = d
	d.sound = d.Version == 1 && d.Kind == string(o.Kind) && d.Ledger == ledger &&
		d.Log == o.Log.String()
	switch o.Kind {
	case objstore.KeyEntry:
		add := d.Fact.Add
		d.Facts = []tier.Fact{d.Fact}
		d.sound = d.sound && d.Fact.Position == o.Position && d.Attempt == o.Attempt &&
			(add == nil || add.Attempt == o.Attempt)
	case objstore.KeyCheckpoint:
		d.sound = d.sound && d.Level == o.Level && d.Block == o.Block
	default:
		d.sound = false
	}
	return d
}

// sealed reports whether the last member is the checksum of all that precedes it.
func sealed(data []byte) bool {
	covered := data[:max(bytes.LastIndex(data, []byte(`,"sha256":`)), 0)]
	sum := sha256.Sum256(covered)
	seal := append(make([]byte, 0, 128), `,"sha256":"`...)
	seal = append(hex.AppendEncode(seal, sum[:]), "\"}\n"...)
	return bytes.Equal(data[len(covered):], seal)
}

// manifestOf is what a manifest of these objects says, ascending by position: a sound checkpoint
// speaks for all positions of its block, and an entry for its own where no checkpoint does.
func manifestOf(of []*object, ledger string) []tier.Fact {
	var checkpoints []*document
	covered := func(p tier.Position) bool {
		return slices.ContainsFunc(checkpoints, func(c *document) bool {
			return uint64(p)/tier.CheckpointSpan(c.Level) == c.Block
		})
	}
	var out []tier.Fact
	for _, d := range documents(of, ledger) {
		first := d.Fact.Position
		if d.Level > 0 {
			first = tier.Position(d.Block * tier.CheckpointSpan(d.Level))
		}
		if covered(first) {
			continue
		}
		out = append(out, d.Facts...)
		if d.Level > 0 {
			checkpoints = append(checkpoints, d)
		}
	}
	slices.SortStableFunc(out, func(a, b tier.Fact) int { return cmp.Compare(a.Position, b.Position) })
	return out
}

// documents are the sound ones of the objects, those that speak for most positions first.
func documents(of []*object, ledger string) []*document {
	var out []*document
	for _, o := range of {
		if d := o.document(ledger); d.sound {
			out = append(out, d)
		}
	}
	slices.SortStableFunc(out, func(a, b *document) int { return cmp.Compare(b.Level, a.Level) })
	return out
}
