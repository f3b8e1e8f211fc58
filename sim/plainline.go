package sim

import (
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/verbatim"
)

// plainLine takes a line of the audit log apart that is written as tierd writes nearly all of them:
// up to the last thing that the oracle wants of it all is as it should be, and nothing is escaped.
// It gives an intent, or the number of another one with its outcome. A line that is not plain is
// for anyLine.
func plainLine(line []byte) (of uint64, in *intent, plain bool) {
	t := verbatim.New(line)
	in = &intent{}
	var other [32]byte
	t.Take(`{"v":1,"seq":`)
	in.seq = t.Count(64)
	t.Take(`,"prev":"`)
	t.Hex(other[:])
	t.Take(`","batch":`)
	t.Count(64)
	t.Take(`,"open_from":`)
	t.Count(64)
	if t.Taken(`,"outcome":{"of":`) {
		of = t.Count(64)
		t.Take(`,"result":"`)
		in.outcome = tier.OutcomeResult(t.String())
	} else {
		t.Take(`,"intent":{"action":"`)
		in.action = tier.Action(t.String())
		t.Take(`,"log":"`)
		in.log = t.String()
		t.Take(`,"range":{"base":`)
		in.base = tier.Offset(t.Number(64))
		t.Take(`,"next":`)
		t.Number(64)
		t.Take(`},"bytes":`)
		t.Number(64)
		t.Take(`,"tier_epoch":`)
		t.Count(32)
		t.Take(`,"attempt":"`)
		t.Hex(other[:len(tier.AttemptID{})])
		t.Take(`","sha256":"`)
		t.Hex(in.sum[:])
		t.Take(`"`)
		if t.Taken(`,"object":"`) {
			in.object = t.String()
		}
		t.Take(`,"reasons":[`)
	}
	const end = "}}\n"
	t.Rest(len(end)) // reasons, and what the policies saw
	t.Take(end)
	return of, in, t.End()
}
