package objstore

import (
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/verbatim"
)

// readVerbatim reads an entry just as this tierd writes it, but for its checksum and the brace
// behind that. Of any other it says false, and leaves e empty.
func (e *entry) readVerbatim(text []byte) bool {
	t := verbatim.New(text)
	e.header = header{documentVersion, kindEntry}
	t.Take(`{"version":1,"kind":"entry","ledger":"`)
	e.Ledger = t.String()
	t.Take(`,"log":"`)
	e.Log = t.String()
	t.Take(`,"attempt":"`)
	t.Hex(e.Attempt[:])
	t.Take(`","fact":`)
	e.Fact = takeFact(t)
	if t.End() {
		return true
	}
	*e = entry{}
	return false
}

// readVerbatim reads a checkpoint likewise.
func (c *checkpoint) readVerbatim(text []byte) bool {
	t := verbatim.New(text)
	c.header = header{documentVersion, kindCheckpoint}
	t.Take(`{"version":1,"kind":"checkpoint","ledger":"`)
	c.Ledger = t.String()
	t.Take(`,"log":"`)
	c.Log = t.String()
	t.Take(`,"level":`)
	c.Level = uint8(t.Count(8))
	t.Take(`,"block":`)
	c.Block = t.Count(64)
	t.Take(`,"facts":[`)
	c.Facts = []tier.Fact{}
	if !t.Taken(`]`) {
		c.Facts = append(c.Facts, takeFact(t))
		for t.Taken(`,`) {
			c.Facts = append(c.Facts, takeFact(t))
		}
		t.Take(`]`)
	}
	if t.End() {
		return true
	}
	*c = checkpoint{}
	return false
}

func takeFact(t *verbatim.Text) (f tier.Fact) {
	t.Take(`{"position":`)
	f.Position = tier.Position(t.Count(64))
	t.Take(`,"epoch":`)
	f.Epoch = tier.TierEpoch(t.Count(32))
	t.Take(`,"at":`)
	f.At = tier.Time(t.Number(64))
	t.Take(`,"copied":`)
	f.Copied = tier.Offset(t.Number(64))
	switch {
	case t.Taken(`,"add":{"attempt":"`):
		f.Add = takeCopy(t)
	case t.Taken(`,"hole":{"base":`):
		f.Hole = takeHole(t)
	case t.Taken(`,"start":`):
		f.Start = takeOffset(t)
	case t.Taken(`,"clip":`):
		f.Clip = takeOffset(t)
	case t.Taken(`,"open":`):
		f.Open = takeOffset(t)
	}
	if t.Taken(`,"incarnation":"`) {
		f.Incarnation = t.String()
	}
	t.Take(`}`)
	return f
}

func takeHole(t *verbatim.Text) *tier.Hole {
	h := &tier.Hole{}
	h.Base = tier.Offset(t.Number(64))
	t.Take(`,"next":`)
	h.Next = tier.Offset(t.Number(64))
	t.Take(`,"cause":"`)
	h.Cause = tier.HoleCause(t.String())
	t.Take(`,"at":`)
	h.At = tier.Time(t.Number(64))
	t.Take(`}`)
	return h
}

func takeOffset(t *verbatim.Text) *tier.Offset {
	o := tier.Offset(t.Number(64))
	return &o
}

func takeCopy(t *verbatim.Text) *tier.Copy {
	c := &tier.Copy{}
	t.Hex(c.Attempt[:])
	t.Take(`","position":`)
	c.Position = tier.Position(t.Count(64))
	t.Take(`,"epoch":`)
	c.Epoch = tier.TierEpoch(t.Count(32))
	t.Take(`,"content":{"range":{"base":`)
	c.Content.Range.Base = tier.Offset(t.Number(64))
	t.Take(`,"next":`)
	c.Content.Range.Next = tier.Offset(t.Number(64))
	t.Take(`},"files":[`)
	c.Content.Files = []tier.SourceFile{}
	for more := t.Taken(`{"name":"`); more; more = t.Taken(`,{"name":"`) {
		c.Content.Files = append(c.Content.Files, takeFile(t))
	}
	t.Take(`],"lineage":[`)
	c.Content.Lineage = []tier.EpochStart{}
	for more := t.Taken(`{"epoch":`); more; more = t.Taken(`,{"epoch":`) {
		s := tier.EpochStart{Epoch: tier.LeaderEpoch(t.Number(32))}
		t.Take(`,"start":`)
		s.Start = tier.Offset(t.Number(64))
		t.Take(`}`)
		c.Content.Lineage = append(c.Content.Lineage, s)
	}
	t.Take(`],"max_time":`)
	c.Content.MaxTime = tier.Time(t.Number(64))
	t.Take(`,"batches":`)
	c.Content.Batches = t.Number(64)
	t.Take(`,"last_next":`)
	c.Content.LastNext = tier.Offset(t.Number(64))
	t.Take(`},"mtime":`)
	c.ModTime = tier.Time(t.Number(64))
	t.Take(`,"verified":"`)
	c.Verified = tier.VerifyMode(t.String())
	t.Take(`,"finished_at":`)
	c.FinishedAt = tier.Time(t.Number(64))
	t.Take(`}`)
	return c
}

func takeFile(t *verbatim.Text) (f tier.SourceFile) {
	f.Name = t.String()
	t.Take(`,"size":`)
	f.Size = t.Number(64)
	t.Take(`,"sha256":"`)
	t.Hex(f.SHA256[:])
	t.Take(`","crc32c":`)
	f.CRC32C = uint32(t.Count(32))
	t.Take(`,"stat":{"inode":`)
	f.Stat.Inode = t.Count(64)
	t.Take(`,"size":`)
	f.Stat.Size = t.Number(64)
	t.Take(`,"mtime":`)
	f.Stat.ModTime = tier.Time(t.Number(64))
	t.Take(`}}`)
	return f
}
