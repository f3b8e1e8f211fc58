package audit

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/verbatim"
)

// version is that of the format.
const version = 1

// lineBytesMax bounds a line with its newline: what is longer is neither written nor read.
const lineBytesMax = 1 << 20

// frameBytesMax is what a line has at most around the intent or outcome: names, numbers, a hash.
const frameBytesMax = 256

// record is one line.
type record struct {
	V        uint64      `json:"v"`
	Seq      uint64      `json:"seq"`
	Prev     tier.SHA256 `json:"prev"`
	Batch    uint64      `json:"batch"`
	OpenFrom uint64      `json:"open_from"`
	Intent   *intent     `json:"intent"`
	Outcome  *outcome    `json:"outcome"`
}

// intent is tier.Deletion as the file has it.
type intent struct {
	Action  tier.Action     `json:"action"`
	Log     string          `json:"log"`
	Range   tier.Range      `json:"range"`
	Bytes   int64           `json:"bytes"`
	Epoch   tier.TierEpoch  `json:"tier_epoch"`
	Attempt tier.AttemptID  `json:"attempt"`
	SHA256  tier.SHA256     `json:"sha256"`
	Object  string          `json:"object,omitempty"`
	Reasons []tier.Reason   `json:"reasons"`
	Digest  string          `json:"policy_digest"`
	Data    string          `json:"data_digest,omitempty"`
	At      tier.Time       `json:"at_ns"`
	Input   json.RawMessage `json:"input,omitempty"`
}

// outcome is tier.Outcome with the intent that it ends.
type outcome struct {
	Of     uint64             `json:"of"`
	Result tier.OutcomeResult `json:"result"`
	Text   string             `json:"text,omitempty"`
	At     tier.Time          `json:"at_ns"`
}

// bodyOfIntent gives `"intent":{...}`, or refuses a deletion that no reader could read back.
func bodyOfIntent(d tier.Deletion) ([]byte, error) {
	if err := d.Log.Validate(); err != nil {
		return nil, err
	}
	reasons := d.Reasons
	if reasons == nil {
		reasons = []tier.Reason{}
	}
	return body("intent", intent{
		Action: d.Action, Log: d.Log.String(), Range: d.Range, Bytes: d.Bytes, Epoch: d.Epoch,
		Attempt: d.Attempt, SHA256: d.SHA256, Object: d.Object, Reasons: reasons,
		Digest: d.Digest, Data: d.Data, At: d.At,
	}, d.Input)
}

// bodyOfOutcome gives `"outcome":{...}`.
func bodyOfOutcome(of uint64, o tier.Outcome) ([]byte, error) {
	switch o.Result {
	case tier.OutcomeDeleted, tier.OutcomeKept, tier.OutcomeUnknown:
	default:
		return nil, fmt.Errorf("the result %q: want deleted, kept or unknown", o.Result)
	}
	return body("outcome", outcome{Of: of, Result: o.Result, Text: o.Text, At: o.At}, nil)
}

// body gives `"name":{...}`, with the policies' input as the last member, if there is one.
func body(name string, v any, input []byte) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(frameBytesMax + len(input))
	b.WriteString(strconv.Quote(name) + ":")
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	b.Truncate(b.Len() - len("\n"))
	if len(input) > 0 {
		b.Truncate(b.Len() - len("}"))
		b.WriteString(`,"input":`)
		if verbatim.Compact(input) {
			b.Write(input)
		} else if json.Compact(&b, input) != nil {
			return nil, errors.New("the policies' input is no JSON")
		}
		b.WriteString("}")
	}
	out := b.Bytes()
	if len(out)+frameBytesMax > lineBytesMax {
		return nil, fmt.Errorf("the record would have %d bytes, at most %d are allowed",
			len(out)+frameBytesMax, lineBytesMax)
	}
	return out, nil
}

// appendLine appends a record's line, without the newline.
func appendLine(to []byte, e entry, prev tier.SHA256, batch uint64) []byte {
	to = slices.Grow(to, frameBytesMax+len(e.body))
	number := func(name string, n uint64) { to = strconv.AppendUint(append(to, name...), n, 10) }
	number(`{"v":`, version)
	number(`,"seq":`, e.seq)
	to = hex.AppendEncode(append(to, `,"prev":"`...), prev[:])
	number(`","batch":`, batch)
	number(`,"open_from":`, e.openFrom)
	return append(append(append(to, ','), e.body...), '}')
}

// readLine reads a line without its newline. An error that wraps tier.ErrNewer concerns a whole
// line of another version; any other says that the line is none of ours.
func readLine(line []byte) (record, error) {
	if r, ok := readVerbatim(line); ok {
		return r, nil
	}
	return readAny(line)
}

// readAny is readLine for any line.
func readAny(line []byte) (record, error) {
	var r record
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err := d.Decode(&r)
	if err == nil && r.V == version {
		if _, err := d.Token(); err != io.EOF {
			return record{}, errors.New("more than one JSON value")
		}
		return r, nil
	}
	var format struct {
		V uint64 `json:"v"`
	}
	if json.Unmarshal(line, &format) == nil && format.V > version {
		return record{}, fmt.Errorf("version %d: %w (this tierd knows %d)",
			format.V, tier.ErrNewer, version)
	}
	if err == nil {
		err = errors.New("no record of an audit log")
	}
	return record{}, err
}

// deletion gives the intent as it was announced.
func (i *intent) deletion() (tier.Deletion, error) {
	id, err := tier.ParseLogID(i.Log)
	if err != nil {
		return tier.Deletion{}, err
	}
	return tier.Deletion{
		Action: i.Action, Log: id, Range: i.Range, Bytes: i.Bytes, Epoch: i.Epoch,
		Attempt: i.Attempt, SHA256: i.SHA256, Object: i.Object, Reasons: i.Reasons,
		Digest: i.Digest, Data: i.Data, At: i.At, Input: i.Input,
	}, nil
}
