package choose

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tierd/tierd/runtime/document"
	"github.com/tierd/tierd/runtime/tier"
)

// The scenario file's own name and version.
const (
	scenarioFormat  = "tiersim scenario"
	scenarioVersion = 1
)

// MediumBolt is the medium of a ledger that lies in a real bbolt file.
const MediumBolt = "bbolt"

// BoundMax bounds each bound of an exhaustive search: a log of so many segments is written before
// the first action.
const BoundMax = 1000

// choicesMax bounds a scenario.
const choicesMax = 1 << 20

// Scenario is a history to be replayed; the package's comment has its file.
type Scenario struct {
	Seed     string   `json:"seed,omitempty"`
	Property string   `json:"property,omitempty"`
	Segment  string   `json:"segment,omitempty"`
	Digest   string   `json:"digest,omitempty"`
	Layout   string   `json:"layout,omitempty"`  // of the sources; "" in files of older versions
	Medium   string   `json:"medium,omitempty"`  // of the ledger: MediumBolt; "" is memory
	Exhaust  []int    `json:"exhaust,omitempty"` // bounds of the search that found it
	Choices  []Choice `json:"choices"`
}

type scenarioFile struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Scenario
}

// Encode writes the scenario, one choice a line.
func (s *Scenario) Encode() []byte {
	bare := *s
	bare.Choices = nil
	head, err := json.Marshal(scenarioFile{scenarioFormat, scenarioVersion, bare})
	if err != nil {
		panic(fmt.Sprintf("choose: encode a scenario: %v", err)) // texts and numbers alone
	}
	var b bytes.Buffer
	b.Write(bytes.TrimSuffix(head, []byte("null}")))
	b.WriteByte('[')
	for i, c := range s.Choices {
		line, err := json.Marshal(c)
		if err != nil {
			panic(fmt.Sprintf("choose: encode a choice: %v", err))
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n ")
		b.Write(line)
	}
	b.WriteString("\n]}\n")
	return b.Bytes()
}

// Decode reads a scenario. Whatever is not one whole scenario of this version is a *document.Error,
// which says where it is wrong.
func Decode(text []byte) (*Scenario, error) {
	var head struct {
		Format  string
		Version int
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, notOne(text, err)
	}
	at := placesOf(text)
	switch {
	case head.Format != scenarioFormat:
		return nil, at.wrong("format", "format is %q: want %q", head.Format, scenarioFormat)
	case head.Version != scenarioVersion:
		return nil, at.wrong("version", "version is %d: this tiersim reads version %d", head.Version,
			scenarioVersion)
	case at.problem != nil:
		return nil, at.problem
	}
	var f scenarioFile
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, notOne(text, err)
	}
	if f.Medium != "" && f.Medium != MediumBolt {
		return nil, at.wrong("medium", "medium is %q: want %q, or none where the ledger is in memory",
			f.Medium, MediumBolt)
	}
	if l := f.Layout; l != "" && l != string(tier.LayoutPlain) && l != string(tier.LayoutKafka) {
		return nil, at.wrong("layout", "layout is %q: want %q or %q", l, tier.LayoutPlain,
			tier.LayoutKafka)
	}
	if f.Exhaust != nil && !bounds(f.Exhaust) {
		return nil, at.wrong("exhaust", "exhaust is %d: want three numbers up to %d, of segments and "+
			"actions at least 1, and of disturbances", f.Exhaust, BoundMax)
	}
	if len(f.Choices) == 0 || len(f.Choices) > choicesMax {
		return nil, at.wrong("choices", "%d choices: want 1 to %d", len(f.Choices), choicesMax)
	}
	for i, c := range f.Choices {
		if c.Label == "" || c.Of < 1 || c.Pick < 0 || c.Pick >= c.Of {
			return nil, at.at(at.choices[i], "choice %d: %q picks %d of %d: want a label, and a pick "+
				"below of", i+1, c.Label, c.Pick, c.Of)
		}
	}
	return &f.Scenario, nil
}

// notOne says why the text is no object of a scenario's types, and where.
func notOne(text []byte, err error) error {
	var kind *json.UnmarshalTypeError
	if !errors.As(err, &kind) {
		return &document.Error{Place: document.NoJSON(text),
			Text: fmt.Sprintf("no whole JSON object: %v", err)}
	}
	said := fmt.Sprintf("%s cannot be a %s", fieldOf(kind), kind.Value)
	if kind.Field == "" {
		said = fmt.Sprintf("the file holds a JSON %s: want an object, as check writes it", kind.Value)
	}
	// The offset is behind the value, or behind the bracket that begins it.
	t := tokens{Decoder: json.NewDecoder(bytes.NewReader(text)), text: text}
	for t.InputOffset() < kind.Offset {
		if _, err := t.next(); err != nil {
			break
		}
	}
	return &document.Error{Place: document.At(text, t.begin), Text: said}
}

// bounds reports whether they are those of a search: segments, actions and disturbances.
func bounds(of []int) bool {
	return len(of) == 3 && min(of[0], of[1]) >= 1 && of[2] >= 0 && slices.Max(of) <= BoundMax
}

// fieldOf is the field as it is written in the file.
func fieldOf(err *json.UnmarshalTypeError) string {
	return strings.ToLower(strings.TrimPrefix(err.Field, "Scenario."))
}
