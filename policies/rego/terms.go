package rego

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/tier"
)

// terms keeps the parts of an input that one question shares with the last: what is told of a
// table, and of that log of it which was asked about last. A log is asked about segment by segment,
// so that it is made once, and kept once for each table. It is safe for concurrent use, and terms
// of inputs are only read.
type terms struct {
	tables sync.Map // by name of the table, *tableTerms
	made   atomic.Int64
}

// termsMax bounds how often terms are made before all are forgotten, those of tables that are gone
// among them.
const termsMax = 10_000

// tableTerms are the terms of a table. They are those of no other facts than these.
type tableTerms struct {
	table   tier.Table
	dropWay tier.LocalDelete
	term    *ast.Term
	log     atomic.Pointer[logTerms]
}

// logTerms are the terms of a log, of these facts and no other.
type logTerms struct {
	facts gate.LogFacts
	term  *ast.Term
}

// of gives the terms of the facts' table and log.
func (t *terms) of(f *gate.Facts) (table, log *ast.Term) {
	kept, _ := t.tables.Load(f.Table.Name)
	entry, _ := kept.(*tableTerms)
	if entry == nil || !entry.are(f) {
		entry = &tableTerms{table: f.Table, dropWay: f.Safety.DropWay, term: tableTerm(f)}
		if t.made.Add(1)%termsMax == 0 {
			t.tables.Clear()
		}
		t.tables.Store(f.Table.Name, entry)
	}
	last := entry.log.Load()
	if last == nil || last.facts != f.Log {
		last = &logTerms{f.Log, logTerm(&f.Log)}
		entry.log.Store(last)
	}
	return entry.term, last.term
}

// are reports whether the terms are those of the facts.
func (t *tableTerms) are(f *gate.Facts) bool {
	a, b := &t.table, &f.Table
	return a.Name == b.Name && a.TTL == b.TTL && a.LocalTTL == b.LocalTTL &&
		a.LocalSegments == b.LocalSegments && a.Bytes == b.Bytes && a.LocalBytes == b.LocalBytes &&
		a.Tiering == b.Tiering && a.DisablePolicy == b.DisablePolicy && a.Compacted == b.Compacted &&
		t.dropWay == f.Safety.DropWay && maps.Equal(a.Labels, b.Labels)
}
