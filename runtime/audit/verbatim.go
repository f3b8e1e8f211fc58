package audit

import (
	"bytes"
	"encoding/json"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/verbatim"
)

// readVerbatim is readLine for a line just as this tierd writes it.
func readVerbatim(line []byte) (r record, ok bool) {
	t := verbatim.New(line)
	r.V = version
	t.Take(`{"v":1,"seq":`)
	r.Seq = t.Count(64)
	t.Take(`,"prev":"`)
	t.Hex(r.Prev[:])
	t.Take(`","batch":`)
	r.Batch = t.Count(64)
	t.Take(`,"open_from":`)
	r.OpenFrom = t.Count(64)
	switch {
	case t.Taken(`,"intent":{"action":"`):
		r.Intent = takeIntent(t)
	case t.Taken(`,"outcome":{"of":`):
		r.Outcome = takeOutcome(t)
	default:
		return record{}, false
	}
	t.Take(`}`)
	return r, t.End()
}

func takeIntent(t *verbatim.Text) *intent {
	i := &intent{Reasons: []tier.Reason{}}
	i.Action = tier.Action(t.String())
	t.Take(`,"log":"`)
	i.Log = t.String()
	t.Take(`,"range":{"base":`)
	i.Range.Base = tier.Offset(t.Number(64))
	t.Take(`,"next":`)
	i.Range.Next = tier.Offset(t.Number(64))
	t.Take(`},"bytes":`)
	i.Bytes = t.Number(64)
	t.Take(`,"tier_epoch":`)
	i.Epoch = tier.TierEpoch(t.Count(32))
	t.Take(`,"attempt":"`)
	t.Hex(i.Attempt[:])
	t.Take(`","sha256":"`)
	t.Hex(i.SHA256[:])
	t.Take(`"`)
	if t.Taken(`,"object":"`) {
		i.Object = t.String()
	}
	t.Take(`,"reasons":[`)
	for more := t.Taken(`{"code":"`); more; more = t.Taken(`,{"code":"`) {
		i.Reasons = append(i.Reasons, takeReason(t))
	}
	t.Take(`],"policy_digest":"`)
	i.Digest = t.String()
	if t.Taken(`,"data_digest":"`) {
		i.Data = t.String()
	}
	t.Take(`,"at_ns":`)
	i.At = tier.Time(t.Number(64))
	if t.Taken(`,"input":`) {
		i.Input = append(i.Input, t.Rest(len(`}}`))...)
		object := bytes.HasPrefix(i.Input, []byte("{")) && bytes.HasSuffix(i.Input, []byte("}"))
		if !object || !verbatim.Compact(i.Input) && !json.Valid(i.Input) {
			t.Refuse()
		}
	}
	t.Take(`}`)
	return i
}

func takeReason(t *verbatim.Text) (r tier.Reason) {
	r.Code = tier.Code(t.String())
	t.Take(`,"text":"`)
	r.Text = t.String()
	if t.Taken(`,"rule":"`) {
		r.Rule = t.String()
	}
	t.Take(`}`)
	return r
}

func takeOutcome(t *verbatim.Text) *outcome {
	o := &outcome{Of: t.Count(64)}
	t.Take(`,"result":"`)
	o.Result = tier.OutcomeResult(t.String())
	if t.Taken(`,"text":"`) {
		o.Text = t.String()
	}
	t.Take(`,"at_ns":`)
	o.At = tier.Time(t.Number(64))
	t.Take(`}`)
	return o
}
