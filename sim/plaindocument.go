package sim

import (
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/verbatim"
)

// plainDocument reads an object of a manifest that is written as tierd writes nearly all of them:
// nothing is escaped, and nothing is missing or out of its order. What these are is here in words
// of the oracle's own. An object that is not plain is for encoding/json.
func plainDocument(data []byte) (d *document, plain bool) {
	t := plainFacts{verbatim.New(data)}
	d = &document{Version: 1}
	if t.Taken(`{"version":1,"kind":"entry",`) {
		d.Kind = "entry"
		t.of(d)
		t.Take(`,"attempt":"`)
		t.Hex(d.Attempt[:])
		t.Take(`","fact":`)
		d.Fact = t.fact()
	} else {
		d.Kind = "checkpoint"
		t.Take(`{"version":1,"kind":"checkpoint",`)
		t.of(d)
		d.Level = uint8(t.count(`,"level":`, 8))
		d.Block = t.count(`,"block":`, 64)
		d.Facts = []tier.Fact{}
		t.list("facts", func() { d.Facts = append(d.Facts, t.fact()) })
	}
	var sum tier.SHA256 // that it is right was looked at
	t.Take(`,"sha256":"`)
	t.Hex(sum[:])
	t.Take("\"}\n")
	return d, t.End()
}

// plainFacts is a text that has facts.
type plainFacts struct{ *verbatim.Text }

// of takes what the document is of.
func (t plainFacts) of(d *document) {
	t.Take(`"ledger":"`)
	d.Ledger = t.String()
	t.Take(`,"log":"`)
	d.Log = t.String()
}

// list takes an array, each of whose elements begins where take is called.
func (t plainFacts) list(name string, take func()) {
	t.Take(`,"` + name + `":[`)
	if t.Taken(`]`) {
		return
	}
	for take(); t.Taken(`,`); {
		take()
	}
	t.Take(`]`)
}

// after takes what comes before a number, and the number.
func (t plainFacts) after(before string) int64 {
	t.Take(before)
	return t.Number(64)
}

func (t plainFacts) offset(before string) tier.Offset { return tier.Offset(t.after(before)) }
func (t plainFacts) time(before string) tier.Time     { return tier.Time(t.after(before)) }

func (t plainFacts) count(before string, bits int) uint64 {
	t.Take(before)
	return t.Count(bits)
}

func (t plainFacts) fact() tier.Fact {
	f := tier.Fact{Position: tier.Position(t.count(`{"position":`, 64)),
		Epoch: tier.TierEpoch(t.count(`,"epoch":`, 32)), At: t.time(`,"at":`),
		Copied: t.offset(`,"copied":`)}
	switch {
	case t.Taken(`,"add":`):
		f.Add = t.copied()
	case t.Taken(`,"hole":`):
		f.Hole = &tier.Hole{Range: tier.Range{Base: t.offset(`{"base":`), Next: t.offset(`,"next":`)}}
		t.Take(`,"cause":"`)
		f.Hole.Cause = tier.HoleCause(t.String())
		f.Hole.At = t.time(`,"at":`)
		t.Take(`}`)
	case t.Taken(`,"start":`):
		f.Start = new(t.offset(``))
	case t.Taken(`,"clip":`):
		f.Clip = new(t.offset(``))
	case t.Taken(`,"open":`):
		f.Open = new(t.offset(``))
	}
	if t.Taken(`,"incarnation":"`) {
		f.Incarnation = t.String()
	}
	t.Take(`}`)
	return f
}

func (t plainFacts) copied() *tier.Copy {
	c := &tier.Copy{}
	t.Take(`{"attempt":"`)
	t.Hex(c.Attempt[:])
	t.Take(`"`)
	c.Position = tier.Position(t.count(`,"position":`, 64))
	c.Epoch = tier.TierEpoch(t.count(`,"epoch":`, 32))
	t.Take(`,"content":`)
	c.Content = tier.Content{Files: []tier.SourceFile{}, Lineage: []tier.EpochStart{},
		Range: tier.Range{Base: t.offset(`{"range":{"base":`), Next: t.offset(`,"next":`)}}
	t.Take(`}`)
	t.list("files", func() { c.Content.Files = append(c.Content.Files, t.file()) })
	t.list("lineage", func() {
		t.Take(`{"epoch":`)
		e := tier.EpochStart{Epoch: tier.LeaderEpoch(t.Number(32)), Start: t.offset(`,"start":`)}
		t.Take(`}`)
		c.Content.Lineage = append(c.Content.Lineage, e)
	})
	c.Content.MaxTime = t.time(`,"max_time":`)
	c.Content.Batches = t.after(`,"batches":`)
	c.Content.LastNext = t.offset(`,"last_next":`)
	c.ModTime = t.time(`},"mtime":`)
	t.Take(`,"verified":"`)
	c.Verified = tier.VerifyMode(t.String())
	c.FinishedAt = t.time(`,"finished_at":`)
	t.Take(`}`)
	return c
}

func (t plainFacts) file() (f tier.SourceFile) {
	t.Take(`{"name":"`)
	f.Name = t.String()
	f.Size = t.after(`,"size":`)
	t.Take(`,"sha256":"`)
	t.Hex(f.SHA256[:])
	t.Take(`"`)
	f.CRC32C = uint32(t.count(`,"crc32c":`, 32))
	f.Stat = tier.Stat{Inode: t.count(`,"stat":{"inode":`, 64), Size: t.after(`,"size":`),
		ModTime: t.time(`,"mtime":`)}
	t.Take(`}}`)
	return f
}
