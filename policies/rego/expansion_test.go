package rego_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tierd/tierd/policies/rego"
)

// largeTable is a value with an entry for each of many logs, and the same as rules.
func largeTable() string {
	var b strings.Builder
	b.WriteString("package tierd.large\n\ntable := {")
	for i := range 2000 {
		fmt.Fprintf(&b, "\n\t\"orders/%d\": {\"case\": \"C\", \"by\": \"legal\", \"until\": %d},", i, i)
	}
	b.WriteString("\n}\n\nid := input.log.id\n\nfound(k) := table[k]\n\n")
	for i := range 500 {
		fmt.Fprintf(&b, "rules[\"orders/%d\"] := {\"case\": \"C-%d\", \"tags\": [1, 2, 3, 4]}\n\n", i, i)
	}
	for i := range 80 {
		fmt.Fprintf(&b, "made[k] := {\"case\": table[k].case, \"of\": \"%d\"} if "+
			"k in [\"orders/%d\", \"payroll/%d\"]\n\n", i, i, i)
	}
	return b.String()
}

// TestLargeIsNotNested: who takes parts of a large value many times does not take all of it.
func TestLargeIsNotNested(t *testing.T) {
	t.Parallel()
	record := "r0 := input.facts.record\n" // copied again and again, field by field
	for i := range 9 {
		record += fmt.Sprintf("\tr%d := {", i+1)
		for f := range 10 {
			record += fmt.Sprintf("\"f%d\": r%d.f%d, ", f, i, f)
		}
		record += "}\n"
	}
	msg := func(of string, times int) string {
		return "\tmsg := json.marshal([" + strings.Repeat(of+", ", times) + "])"
	}
	large := largeTable()
	for name, body := range map[string]string{
		"fields of an entry": msg("table[id].case", 100),
		"an entry that is got": "\tentry := object.get(table, id, {})\n" + msg("entry", 100) +
			"\n\tmsg != object.get(table, [id, \"case\"], msg)",
		"what is got of an entry":        msg(`object.get(table, [id, "case"], "")`, 100),
		"entries that are iterated over": "\tsome k, entry in table\n\tk != id\n" + msg("entry", 100),
		"entries that are asked of": "\tmsg := id\n\tevery entry in table {\n\t\tjson.marshal([" +
			strings.Repeat("entry, ", 100) + "]) != msg\n\t}",
		"what a function finds":  msg("found(id).case", 100),
		"entries that are rules": msg("rules[id].tags", 300),
		"entries of one rule":    msg("made[id]", 100),
		"all of it, once":        `	msg := json.marshal({"table": table, "rules": rules, "made": made})`,
		"a record":               record + msg("r9.f0", 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := large + "deny contains msg if {\n" + body + "\n}\n"
			_, err := rego.Load([]rego.Module{{Path: "large.rego", Source: []byte(source)}}, nil,
				rego.Options{})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
