package rego

import (
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/tier"
)

// InputJSON is the input that policies see of the facts, as the schema describes it. Keys ascend.
func InputJSON(f *gate.Facts) ([]byte, error) { return inputJSON(f, &terms{}) }

func inputJSON(f *gate.Facts, kept *terms) ([]byte, error) {
	v, err := inputWith(f, kept)
	if err != nil {
		return nil, err
	}
	text, err := appendJSON(make([]byte, 0, 1024), v)
	if err != nil {
		return nil, fmt.Errorf("input: %w", err)
	}
	return text, nil
}

// inputOf builds the input.
func inputOf(f *gate.Facts) (ast.Value, error) {
	return inputWith(f, &terms{})
}

// inputWith builds the input with what is kept of the last one. Facts with a word that the schema
// does not know are an error, so that no rule decides on a state it was not written for.
func inputWith(f *gate.Facts, kept *terms) (ast.Value, error) {
	if err := checkWords(f); err != nil {
		return nil, err
	}
	table, log := kept.of(f)
	facts, err := factsTerm(f.Extern)
	if err != nil {
		return nil, err
	}
	return ast.NewObject(
		field("action", word(f.Action)),
		field("now_ns", num(f.Now)),
		field("table", table),
		field("log", log),
		field("segment", segmentTerm(f)),
		field("node", ast.ObjectTerm(
			field("name", str(f.Node.Name)),
			field("disk_used_bytes", num(f.Node.DiskUsedBytes)),
			field("disk_free_bytes", num(f.Node.DiskFreeBytes)),
		)),
		field("facts", facts),
	), nil
}

func tableTerm(f *gate.Facts) *ast.Term {
	t := &f.Table
	labels := ast.InternedEmptyObject
	if len(t.Labels) > 0 {
		o := ast.NewObject()
		for k, v := range t.Labels {
			o.Insert(ast.StringTerm(k), ast.StringTerm(v))
		}
		labels = ast.NewTerm(o)
	}
	fields := [][2]*ast.Term{
		field("name", str(t.Name)),
		field("labels", labels),
		field("ttl_ns", num(t.TTL)),
		field("local_ttl_ns", num(t.LocalTTL)),
		field("tiering", ast.InternedTerm(t.Tiering)),
		field("disable_policy", word(t.DisablePolicy)),
		field("compacted", ast.InternedTerm(t.Compacted == tier.Yes)),
		field("local_delete", word(f.Safety.DropWay)),
	}
	fields = optional(fields, "local_segments", t.LocalSegments.Set, t.LocalSegments.Value)
	fields = optional(fields, "bytes", t.Bytes.Set, t.Bytes.Value)
	fields = optional(fields, "local_bytes", t.LocalBytes.Set, t.LocalBytes.Value)
	return ast.ObjectTerm(fields...)
}

func logTerm(l *gate.LogFacts) *ast.Term {
	fields := [][2]*ast.Term{
		field("id", str(l.ID.String())),
		field("layout", word(l.Layout)),
		field("tier_state", word(l.State)),
		field("tier_epoch", num(l.Epoch)),
		field("copied_offset", num(l.Copied)),
		field("source_start", num(l.SourceStart)),
		field("local_start", num(l.LocalStart)),
		field("log_start", num(l.LogStart)),
		field("local_end", num(l.LocalEnd)),
		field("remote_start", num(l.RemoteStart)),
		field("remote_end", num(l.RemoteEnd)),
		field("local_bytes", num(l.LocalBytes)),
		field("remote_bytes", num(l.RemoteBytes)),
	}
	fields = optional(fields, "high_watermark", l.HasHighWatermark, int64(l.HighWatermark))
	return ast.ObjectTerm(fields...)
}

func segmentTerm(f *gate.Facts) *ast.Term {
	s := &f.Seg
	age, source := s.Age(f.Now, f.Safety.ClockTolerance)
	fields := [][2]*ast.Term{
		field("base", num(s.Range.Base)),
		field("next", num(s.Range.Next)),
		field("bytes", num(s.Bytes)),
		field("age_ns", num(age)),
		field("age_source", word(source)),
		field("verified", ast.InternedTerm(s.Verified)),
		field("out_of_log", ast.InternedTerm(!f.Safety.Remote.Logical &&
			f.Safety.Remote.OutOfLog == tier.Yes)),
		field("ordinal_from_newest", num(s.OrdinalFromNewest)),
	}
	fields = optional(fields, "max_timestamp_ns", s.MaxTime != 0, int64(s.MaxTime))
	fields = optional(fields, "copied_at_ns", s.CopiedAt != 0, int64(s.CopiedAt))
	return ast.ObjectTerm(fields...)
}

func field(name string, value *ast.Term) [2]*ast.Term {
	return [2]*ast.Term{constant(name), value}
}

// constant is the term of a name or word of the schema, made once: half of what an input would
// otherwise be made of. Terms of inputs are only read.
func constant(s string) *ast.Term {
	if t := constants()[s]; t != nil {
		return t
	}
	return ast.StringTerm(s)
}

// constants are the terms of all names and words of the schema.
var constants = sync.OnceValue(func() map[string]*ast.Term {
	out := map[string]*ast.Term{}
	root, _ := inputSchema()
	var collect func(n *schemaNode)
	collect = func(n *schemaNode) {
		for name, sub := range n.Properties {
			out[name] = ast.StringTerm(name)
			collect(sub)
		}
		for _, word := range n.Enum {
			out[word] = ast.StringTerm(word)
		}
	}
	collect(root)
	return out
})

func optional(fields [][2]*ast.Term, name string, set bool, value int64) [][2]*ast.Term {
	if !set {
		return fields
	}
	return append(fields, field(name, num(value)))
}

func str[S ~string](s S) *ast.Term { return ast.StringTerm(string(s)) }

// word is str for texts that are words of the schema.
func word[S ~string](s S) *ast.Term { return constant(string(s)) }

func num[N ~int64 | ~uint32](n N) *ast.Term {
	return ast.NewTerm(ast.Number(strconv.FormatInt(int64(n), 10)))
}

// checkWords compares the facts that are words with the schema.
func checkWords(f *gate.Facts) error {
	for _, w := range []struct{ path, word string }{
		{"action", string(f.Action)},
		{"table.disable_policy", string(f.Table.DisablePolicy)},
		{"table.local_delete", string(f.Safety.DropWay)},
		{"log.layout", string(f.Log.Layout)},
		{"log.tier_state", string(f.Log.State)},
	} {
		if known := words()[w.path]; !slices.Contains(known, w.word) {
			return fmt.Errorf("input.%s is %q%s", w.path, w.word, oneOf(w.word, known))
		}
	}
	return nil
}
