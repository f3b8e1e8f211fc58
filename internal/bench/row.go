package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// unit is what a number counts.
type unit string

// The units.
const (
	seconds   unit = "s"
	perSecond unit = "/s"
	mibPerSec unit = "MiB/s"
	mebibytes unit = "MiB"
	octets    unit = "B"
	number    unit = ""
)

// figure is one measurement, or the median of several.
type figure struct {
	Value float64 `json:"value"`
	Unit  unit    `json:"unit"`
	// CPU is the processor time of user and system, in seconds, where it was measured.
	CPU float64 `json:"cpu_seconds,omitempty"`
}

// String rounds for people, to three digits.
func (f figure) String() string {
	value, name := f.Value, string(f.Unit)
	if f.Unit == seconds {
		for _, u := range []struct {
			size float64
			name string
		}{{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}} {
			if value, name = f.Value/u.size, u.name; value >= 1 {
				break
			}
		}
	}
	text := strings.TrimSuffix(digits(value)+" "+name, " ")
	if f.CPU > 0 {
		text += fmt.Sprintf(", %s s CPU", digits(f.CPU))
	}
	return text
}

// digits writes a number with three significant digits, and large ones to the last.
func digits(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// rate is the throughput of what took the time for so many bytes.
func rate(bytes int64, took figure) figure {
	return figure{Value: float64(bytes) / (1 << 20) / took.Value, Unit: mibPerSec, CPU: took.CPU}
}

// row is one line of the table.
type row struct {
	What    string  `json:"what"`
	Tierd   figure  `json:"tierd"`
	Against string  `json:"against,omitempty"` // what it is compared with; empty where with nothing
	Other   figure  `json:"other,omitzero"`
	Ratio   float64 `json:"ratio,omitempty"`  // of Tierd to Other
	Target  *target `json:"target,omitempty"` // nil where nothing is promised
	Met     *bool   `json:"met,omitempty"`
}

// target is what is promised of a row: of its ratio, or of tierd's own figure.
type target struct {
	Of    string  `json:"of"` // "ratio" or "tierd"
	Least float64 `json:"at_least,omitempty"`
	Most  float64 `json:"at_most,omitempty"`
}

func atLeast(least float64) *target   { return &target{Of: "ratio", Least: least} }
func atMost(most float64) *target     { return &target{Of: "ratio", Most: most} }
func figureUpTo(most float64) *target { return &target{Of: "tierd", Most: most} }
func figureOf(least float64) *target  { return &target{Of: "tierd", Least: least} }

// judge says whether the row keeps its promise.
func (r row) judge() row {
	if r.Target == nil {
		return r
	}
	v := r.Ratio
	if r.Target.Of == "tierd" {
		v = r.Tierd.Value
	}
	met := v >= r.Target.Least && (r.Target.Most == 0 || v <= r.Target.Most)
	r.Met = &met
	return r
}

// promise writes the target for people.
func (r row) promise() string {
	if r.Target == nil {
		return ""
	}
	text, value := "at least ", r.Target.Least
	if r.Target.Most > 0 {
		text, value = "at most ", r.Target.Most
	}
	if r.Target.Of == "tierd" {
		text += figure{Value: value, Unit: r.Tierd.Unit}.String()
	} else {
		text += digits(value)
	}
	if !*r.Met {
		return text + ": **missed**"
	}
	return text + ": met"
}

// printTable writes the rows as a table of Markdown.
func printTable(w io.Writer, rows []row) error {
	var s strings.Builder
	s.WriteString("| what | tierd | against | ratio | target |\n| --- | --- | --- | --- | --- |\n")
	for _, r := range rows {
		against, ratio := "", ""
		if r.Against != "" {
			against, ratio = fmt.Sprintf("%s: %s", r.Against, r.Other), digits(r.Ratio)
		}
		fmt.Fprintf(&s, "| %s | %s | %s | %s | %s |\n", r.What, r.Tierd, against, ratio, r.promise())
	}
	_, err := io.WriteString(w, s.String())
	return err
}

func printJSON(w io.Writer, rows []row) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(map[string]any{"rows": rows})
}

// median returns the middle of the values; of an even number, the mean of the two in the middle. It
// panics where there is none.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// compared makes a row of what was measured in each round. The ratio is the median of the rounds'.
func compared(what string, mine []figure, against string, others []figure, t *target) row {
	r := row{What: what, Tierd: middle(mine), Target: t}
	if against != "" {
		quotients := make([]float64, len(mine))
		for i := range mine {
			quotients[i] = mine[i].Value / others[i].Value
		}
		r.Against, r.Other, r.Ratio = against, middle(others), median(quotients)
	}
	return r.judge()
}

// middle is the median of figures of one unit.
func middle(figures []figure) figure {
	var values, cpu []float64
	for _, f := range figures {
		values, cpu = append(values, f.Value), append(cpu, f.CPU)
	}
	return figure{Value: median(values), Unit: figures[0].Unit, CPU: median(cpu)}
}
