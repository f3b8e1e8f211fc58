package rego

import (
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/tier"
)

// other gives a value of the type that is another than v.
func other(t *testing.T, v reflect.Value) reflect.Value {
	t.Helper()
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.String:
		out.SetString(v.String() + "x")
	case reflect.Bool:
		out.SetBool(!v.Bool())
	case reflect.Int64:
		out.SetInt(v.Int() + 1)
	case reflect.Uint8:
		out.SetUint(v.Uint() ^ uint64(tier.Yes))
	case reflect.Uint32:
		out.SetUint(v.Uint() + 1)
	case reflect.Map:
		out.Set(reflect.ValueOf(map[string]string{"team": fmt.Sprint(v.Len())}))
	case reflect.Struct: // a limit, or a log's id
		out.Set(v)
		for i := range out.NumField() {
			out.Field(i).Set(other(t, v.Field(i)))
		}
	default:
		t.Fatalf("%s: teach other to change a %s", v.Type(), v.Kind())
	}
	return out
}

// TestTermsAreOfTheFacts: what is kept of the last input is used only where the facts are the same,
// whichever of them is another.
func TestTermsAreOfTheFacts(t *testing.T) {
	t.Parallel()
	facts := func() *gate.Facts {
		return &gate.Facts{
			Table: tier.Table{Name: "orders", Labels: map[string]string{"team": "payments"},
				TTL: time.Hour},
			Log: gate.LogFacts{ID: tier.LogID{Table: "orders", Name: "0"}, HighWatermark: 7,
				HasHighWatermark: true},
			Safety: gate.SafetyFacts{DropWay: tier.LocalDeleteUnlink},
		}
	}
	type part func(f *gate.Facts) reflect.Value
	parts := map[string]part{"way": func(f *gate.Facts) reflect.Value {
		return reflect.ValueOf(&f.Safety.DropWay).Elem()
	}}
	for i := range reflect.TypeFor[tier.Table]().NumField() {
		parts["table "+reflect.TypeFor[tier.Table]().Field(i).Name] = func(f *gate.Facts) reflect.Value {
			return reflect.ValueOf(&f.Table).Elem().Field(i)
		}
	}
	for i := range reflect.TypeFor[gate.LogFacts]().NumField() {
		parts["log "+reflect.TypeFor[gate.LogFacts]().Field(i).Name] = func(f *gate.Facts) reflect.Value {
			return reflect.ValueOf(&f.Log).Elem().Field(i)
		}
	}
	for name, of := range parts {
		kept := &terms{}
		same, changed := facts(), facts()
		if v := of(changed); name != "table Labels" {
			v.Set(other(t, v))
		} else {
			changed.Table.Labels = map[string]string{"team": "search"}
		}
		for _, f := range []*gate.Facts{same, same, changed, changed, same} {
			table, log := kept.of(f)
			if want := tableTerm(f); !table.Equal(want) {
				t.Errorf("%s: the table is %v, want %v", name, table, want)
			}
			if want := logTerm(&f.Log); !log.Equal(want) {
				t.Errorf("%s: the log is %v, want %v", name, log, want)
			}
		}
		if a, b := first(kept.of(same)), first(kept.of(facts())); a != b {
			t.Errorf("%s: equal facts did not share their terms", name)
		}
	}
}

func first[A, B any](a A, _ B) A { return a }

// TestTermsAtOneTime: questions about several logs of a table at a time get each their own.
func TestTermsAtOneTime(t *testing.T) {
	t.Parallel()
	kept := &terms{}
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			f := &gate.Facts{Table: tier.Table{Name: "orders", TTL: time.Duration(i % 2)},
				Log: gate.LogFacts{ID: tier.LogID{Table: "orders", Name: fmt.Sprint(i)}}}
			for range 200 {
				table, log := kept.of(f)
				if !table.Equal(tableTerm(f)) || !log.Equal(logTerm(&f.Log)) {
					t.Errorf("of %d: %v, %v", i, table, log)
				}
			}
		})
	}
	group.Wait()
}

// TestTermsForgetTables: tables that come and go do not pile up, and each has its own terms.
func TestTermsForgetTables(t *testing.T) {
	t.Parallel()
	kept := &terms{}
	f := &gate.Facts{Table: tier.Table{TTL: time.Hour}}
	for i := range 2*termsMax + termsMax/2 {
		f.Table.Name = fmt.Sprint(i)
		if table, _ := kept.of(f); !table.Equal(tableTerm(f)) {
			t.Fatalf("table %d has the terms %v", i, table)
		}
	}
	count := 0
	kept.tables.Range(func(any, any) bool {
		count++
		return true
	})
	if count > termsMax || count == 0 {
		t.Errorf("%d tables are kept", count)
	}
}
