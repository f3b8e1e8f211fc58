package rego_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"golang.org/x/tools/txtar"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/tier"
)

// TestLoad runs testdata/load: the errors of policies that must not be loaded, and "ok" for those
// that may. The input is one policy, policy.rego, or several as "-- path --" sections; a section
// data.json is the data. With facts=(a,b) the configuration has facts of these names.
func TestLoad(t *testing.T) {
	t.Parallel()
	datadriven.RunTest(t, "testdata/load", func(t *testing.T, d *datadriven.TestData) string {
		var facts []string
		for _, arg := range d.CmdArgs {
			facts = strings.Fields(strings.Join(arg.Vals, " "))
		}
		_, err := loadText(t, d.Input, facts...)
		if err != nil {
			return err.Error() + "\n"
		}
		return "ok\n"
	})
}

// TestDecide runs testdata/decide: what policies say of the facts of segmentOf, changed by the
// arguments of the command.
func TestDecide(t *testing.T) {
	t.Parallel()
	datadriven.RunTest(t, "testdata/decide", decideText)
}

// TestUnknownFacts runs testdata/unknown, which is like testdata/decide; unknown=NAME is a fact
// that is configured and not known.
func TestUnknownFacts(t *testing.T) {
	t.Parallel()
	datadriven.RunTest(t, "testdata/unknown", decideText)
}

func decideText(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	set, err := loadText(t, d.Input)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	decision, err := set.Decide(context.Background(), factsOf(t, d))
	return decisionText(decision, err)
}

func loadText(t *testing.T, input string, facts ...string) (*rego.Set, error) {
	t.Helper()
	opts := rego.Options{Timeout: rego.NoTimeout, Facts: facts}
	archive := txtar.Parse([]byte(input + "\n"))
	if len(archive.Files) == 0 && input != "" {
		return rego.Load(modules("policy.rego", input), nil, opts)
	}
	var list []rego.Module
	var data map[string]any
	for _, f := range archive.Files {
		if f.Name == "data.json" {
			if err := json.Unmarshal(f.Data, &data); err != nil {
				t.Fatal(err)
			}
			continue
		}
		list = append(list, rego.Module{Path: f.Name, Source: f.Data})
	}
	return rego.Load(list, data, opts)
}

// factsOf applies arguments such as age=25h or local-bytes=4000.
func factsOf(t *testing.T, d *datadriven.TestData) *gate.Facts {
	t.Helper()
	f := segmentOf(3 * hour)
	for _, arg := range d.CmdArgs {
		if err := apply(f, arg.Key, arg.Vals[0]); err != nil {
			d.Fatalf(t, "%s: %v", arg.Key, err)
		}
	}
	return f
}

func apply(f *gate.Facts, key, value string) error {
	var n int64
	var span time.Duration
	var err error
	switch key {
	case "age", "ttl", "local-ttl", "future":
		if span, err = time.ParseDuration(value); err != nil {
			return err
		}
	case "copied", "local-segments", "bytes", "local-bytes", "disk-free":
		if _, err = fmt.Sscan(value, &n); err != nil {
			return err
		}
	}
	switch key {
	case "action":
		f.Action = tier.Action(value)
	case "state":
		f.Log.State = tier.TierState(value)
	case "disable-policy":
		f.Table.DisablePolicy = tier.DisablePolicy(value)
	case "age":
		f.Seg.MaxTime, f.Seg.ModTime = now.Add(-span), now.Add(-span)
	case "future":
		f.Seg.MaxTime = now.Add(span)
	case "age-source":
		f.Seg.MaxTime = 0
		if value == "none" {
			f.Seg.ModTime = 0
		}
	case "ttl":
		f.Table.TTL = span
	case "local-ttl":
		f.Table.LocalTTL = span
	case "copied":
		f.Log.Copied = tier.Offset(n)
	case "out-of-log":
		f.Safety.Remote.OutOfLog = tier.Yes
		f.Safety.Remote.Logical = value == "not-yet"
	case "local-segments":
		f.Table.LocalSegments = tier.Limit{Set: true, Value: n}
	case "bytes":
		f.Table.Bytes = tier.Limit{Set: true, Value: n}
	case "local-bytes":
		f.Table.LocalBytes = tier.Limit{Set: true, Value: n}
	case "disk-free":
		f.Node.DiskFreeBytes = n
	case "table":
		f.Table.Name, f.Log.ID.Table = value, value
	case "label":
		name, label, _ := strings.Cut(value, ":")
		f.Table.Labels = map[string]string{name: label}
	case "fact":
		f.Extern = map[string]any{}
		return json.Unmarshal([]byte(value), &f.Extern)
	case "unknown":
		f.Unknown = append(f.Unknown, tier.UnknownFact{Name: value, Why: "is older than 10m"})
	default:
		return fmt.Errorf("unknown argument")
	}
	return nil
}

func decisionText(d gate.Decision, err error) string {
	var b strings.Builder
	switch {
	case err != nil:
		fmt.Fprintf(&b, "error: %v\n", err)
	case d.Delete:
		b.WriteString("delete\n")
	default:
		b.WriteString("keep\n")
	}
	for _, r := range d.Reasons {
		title := ""
		if r.Title != "" {
			title = " (" + r.Title + ")"
		}
		fmt.Fprintf(&b, "  %s %s: %s%s\n", r.Rule, r.Code, r.Text, title)
	}
	if d.Due != 0 {
		fmt.Fprintf(&b, "  due in %s\n", d.Due.Sub(now))
	}
	return b.String()
}
