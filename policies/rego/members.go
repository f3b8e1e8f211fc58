package rego

import (
	"cmp"
	"strconv"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/tier"
)

// member is one of an object of the input. Policies get the same ones as terms that records, and
// whoever compares inputs, get as JSON: there is one list of them.
type member struct {
	name   string
	kind   memberKind
	text   string
	number int64
	term   *ast.Term
}

type memberKind uint8

const (
	isNumber memberKind = iota
	isText
	isWord // a text of the schema
	isTrue
	isFalse
	isTerm
)

// membersMax is more than any object of the input has.
const membersMax = 16

func ofNumber[N ~int64 | ~uint32](name string, n N) member {
	return member{name: name, kind: isNumber, number: int64(n)}
}

func ofText(name, text string) member { return member{name: name, kind: isText, text: text} }

func ofWord[S ~string](name string, word S) member {
	return member{name: name, kind: isWord, text: string(word)}
}

func ofTruth(name string, yes bool) member {
	if yes {
		return member{name: name, kind: isTrue}
	}
	return member{name: name, kind: isFalse}
}

func ofTerm(name string, term *ast.Term) member {
	return member{name: name, kind: isTerm, term: term}
}

// optional adds a number that is not always there.
func optional(to []member, name string, set bool, value int64) []member {
	if !set {
		return to
	}
	return append(to, ofNumber(name, value))
}

// The lists of members ascend by name.

func tableMembers(to []member, f *gate.Facts) []member {
	t := &f.Table
	to = optional(to, "bytes", t.Bytes.Set, t.Bytes.Value)
	to = append(to,
		ofTruth("compacted", t.Compacted == tier.Yes),
		ofWord("disable_policy", t.DisablePolicy),
		ofTerm("labels", labelsTerm(t.Labels)))
	to = optional(to, "local_bytes", t.LocalBytes.Set, t.LocalBytes.Value)
	to = append(to, ofWord("local_delete", f.Safety.DropWay))
	to = optional(to, "local_segments", t.LocalSegments.Set, t.LocalSegments.Value)
	return append(to,
		ofNumber("local_ttl_ns", t.LocalTTL),
		ofText("name", t.Name),
		ofTruth("tiering", t.Tiering),
		ofNumber("ttl_ns", t.TTL))
}

func labelsTerm(labels map[string]string) *ast.Term {
	if len(labels) == 0 {
		return ast.InternedEmptyObject
	}
	o := ast.NewObject()
	for k, v := range labels {
		o.Insert(ast.StringTerm(k), ast.StringTerm(v))
	}
	return ast.NewTerm(o)
}

func logMembers(to []member, l *gate.LogFacts) []member {
	to = append(to, ofNumber("copied_offset", l.Copied))
	to = optional(to, "high_watermark", l.HasHighWatermark, int64(l.HighWatermark))
	return append(to,
		ofText("id", l.ID.String()),
		ofWord("layout", l.Layout),
		ofNumber("local_bytes", l.LocalBytes),
		ofNumber("local_end", l.LocalEnd),
		ofNumber("local_start", l.LocalStart),
		ofNumber("log_start", l.LogStart),
		ofNumber("remote_bytes", l.RemoteBytes),
		ofNumber("remote_end", l.RemoteEnd),
		ofNumber("remote_start", l.RemoteStart),
		ofNumber("source_start", l.SourceStart),
		ofNumber("tier_epoch", l.Epoch),
		ofWord("tier_state", l.State))
}

func nodeMembers(to []member, n *gate.NodeFacts) []member {
	return append(to,
		ofNumber("disk_free_bytes", n.DiskFreeBytes),
		ofNumber("disk_used_bytes", n.DiskUsedBytes),
		ofText("name", n.Name))
}

func segmentMembers(to []member, f *gate.Facts) []member {
	s := &f.Seg
	age, source := s.Age(f.Now, f.Safety.ClockTolerance)
	to = append(to,
		ofNumber("age_ns", age),
		ofWord("age_source", source),
		ofNumber("base", s.Range.Base),
		ofNumber("bytes", s.Bytes))
	to = optional(to, "copied_at_ns", s.CopiedAt != 0, int64(s.CopiedAt))
	to = optional(to, "max_timestamp_ns", s.MaxTime != 0, int64(s.MaxTime))
	return append(to,
		ofNumber("next", s.Range.Next),
		ofNumber("ordinal_from_newest", s.OrdinalFromNewest),
		ofTruth("out_of_log", !f.Safety.Remote.Logical && f.Safety.Remote.OutOfLog == tier.Yes),
		ofTruth("verified", s.Verified))
}

// objectOf is an object for policies.
func objectOf(members []member) ast.Object {
	terms := make([][2]*ast.Term, len(members))
	for i := range members {
		terms[i] = [2]*ast.Term{constant(members[i].name), members[i].value()}
	}
	return ast.NewObject(terms...)
}

func (m *member) value() *ast.Term {
	switch m.kind {
	case isNumber:
		return ast.NewTerm(ast.Number(strconv.FormatInt(m.number, 10)))
	case isText:
		return ast.StringTerm(m.text)
	case isWord:
		return constant(m.text)
	case isTrue, isFalse:
		return ast.InternedTerm(m.kind == isTrue)
	}
	return m.term
}

// inputText is an input that is being written as JSON.
type inputText struct {
	text []byte
	err  error
}

func (w *inputText) name(name string) {
	w.text = append(append(append(comma(w.text, '{'), '"'), name...), '"', ':')
}

func (w *inputText) object(name string, of []member) {
	w.name(name)
	w.text = append(w.text, '{')
	w.members(of)
	w.text = append(w.text, '}')
}

func (w *inputText) members(of []member) {
	for i := range of {
		m := &of[i]
		w.name(m.name)
		var err error
		switch m.kind {
		case isNumber:
			w.text = strconv.AppendInt(w.text, m.number, 10)
		case isText, isWord:
			w.text, err = appendString(w.text, m.text)
		case isTrue:
			w.text = append(w.text, "true"...)
		case isFalse:
			w.text = append(w.text, "false"...)
		case isTerm:
			w.text, err = appendJSON(w.text, m.term.Value)
		}
		w.err = cmp.Or(w.err, err)
	}
}
