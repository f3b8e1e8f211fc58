package plugin

import (
	"fmt"
	"strings"

	"github.com/tierd/tierd/runtime/tier"
)

// GoldenOptions says how golden files are run.
type GoldenOptions struct {
	Name     string // of the plugin, for tierd_configure
	Limits   Limits
	CacheDir string
}

// GoldenCase is one case of a golden file and what came of it.
type GoldenCase struct {
	File string
	Line int // of its first directive
	Want string
	Got  string
	// Differs says how runs of the same case differed from the first one; empty if they agreed.
	Differs string
	Fuel    int64 // of the batch
}

// Passed is whether the plugin gave the answer that is written, the same in each run.
func (c GoldenCase) Passed() bool { return c.Got == c.Want && c.Differs == "" }

// Golden is a plugin that is loaded for its tests, in both engines.
type Golden struct {
	engines []goldenEngine
}

type goldenEngine struct {
	name string
	code *code
}

// goldenRuns is how often each case runs in each engine, each time in a fresh instance.
const goldenRuns = 2

// NewGolden loads a module for tests. The caller closes it.
func NewGolden(wasm []byte, o GoldenOptions) (*Golden, error) {
	g := &Golden{}
	for _, e := range []struct {
		name   string
		engine Engine
	}{{"compiler", EngineAuto}, {"interpreter", EngineInterpreter}} {
		c, err := load(Spec{Name: o.Name, Wasm: wasm, SHA256: Digest(wasm)},
			&Options{Limits: o.Limits, CacheDir: o.CacheDir, Engine: e.engine})
		if err != nil && len(g.engines) > 0 { // the other engine takes the module
			err = fmt.Errorf("%s: %w", e.name, err)
		}
		if err != nil {
			return nil, joinClose(err, g)
		}
		g.engines = append(g.engines, goldenEngine{e.name, c})
	}
	return g, nil
}

func joinClose(err error, g *Golden) error {
	if closed := g.Close(); closed != nil {
		return fmt.Errorf("%w; %w", err, closed)
	}
	return err
}

// Close gives the engines back.
func (g *Golden) Close() error {
	s := Set{}
	for _, e := range g.engines {
		s.codes = append(s.codes, e.code)
	}
	g.engines = nil
	return s.Close()
}

// Run runs the cases of a golden file. The second result is the file with the answers that the
// plugin gave, for rewriting it. An error is of the file itself.
func (g *Golden) Run(file, text string) ([]GoldenCase, string, error) {
	s, err := parseScript(file, text)
	if err != nil {
		return nil, "", err
	}
	var out []GoldenCase
	var rewritten strings.Builder
	for i := range s.cases {
		c := &s.cases[i]
		result := g.run(c)
		result.File = file
		out = append(out, result)
		rewritten.WriteString(c.input + result.Got)
	}
	return out, rewritten.String(), nil
}

func (g *Golden) run(c *scriptCase) GoldenCase {
	out := GoldenCase{Line: c.line, Want: c.want}
	first := true
	for _, e := range g.engines {
		for n := range goldenRuns {
			got, fuel, endless := e.answer(c)
			if first {
				out.Got, out.Fuel, first = got, fuel, false
			}
			if out.Differs == "" && (got != out.Got || fuel != out.Fuel) {
				out.Differs = fmt.Sprintf("run %d in the %s used %d units of fuel, the first %d, "+
					"and answered:\n%s", n+1, e.name, fuel, out.Fuel, got)
			}
			if endless {
				return out
			}
		}
	}
	return out
}

// answer runs a case in a fresh instance and prints what the plugin says. endless is whether it
// used up its fuel before it was asked: that is so much that the interpreter takes a minute for
// it, and where no batch was begun there is nothing to compare.
func (e *goldenEngine) answer(c *scriptCase) (text string, fuel int64, endless bool) {
	var b strings.Builder
	own := *e.code
	own.config, own.node = c.config, c.node
	own.log = func(l Line) { fmt.Fprintf(&b, "log: %s\n", l.Text) }
	w := (&Set{codes: []*code{&own}, names: []string{own.name}}).NewWorker()
	defer w.Close()
	var r Result
	w.Select(&c.batch, &r)
	if len(r.Faults) > 0 {
		fmt.Fprintf(&b, "fault %s: %s\n", r.Faults[0].Kind, r.Faults[0].Text)
		return b.String(), 0, r.Faults[0].Kind == FaultFuel && r.Faults[0].starting
	}
	fuel = own.batchFuel(c.batch.Len()) - int64(w.slots[0].inst.fuel.Get())
	row := 0
	for _, l := range c.batch.Logs {
		for _, s := range l.Segments {
			printRow(&b, &r, row, l.ID, s.Range)
			row++
		}
	}
	return b.String(), fuel, false
}

// printRow prints one row of an answer.
func printRow(b *strings.Builder, r *Result, row int, id tier.LogID, rng tier.Range) {
	fmt.Fprintf(b, "%s %s score %d", id, rng, r.scores[0][row])
	if r.holds[row] != 0 {
		b.WriteString(" hold")
	}
	if r.keeps[row] != 0 {
		b.WriteString(" keep")
	}
	b.WriteString("\n")
}
