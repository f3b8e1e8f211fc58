package choose

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
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

// Decode reads a scenario. Whatever is not one whole scenario of this version is an error.
func Decode(text []byte) (*Scenario, error) {
	var head struct {
		Format  string
		Version int
	}
	var kind *json.UnmarshalTypeError
	switch err := json.Unmarshal(text, &head); {
	case errors.As(err, &kind) && kind.Field == "":
		return nil, fmt.Errorf("the file holds a JSON %s: want an object, as check writes it", kind.Value)
	case errors.As(err, &kind):
		return nil, fmt.Errorf("%s cannot be a %s%s", fieldOf(kind), kind.Value, lineOf(text, err))
	case err != nil:
		return nil, fmt.Errorf("no whole JSON object: %w%s", err, lineOf(text, err))
	}
	switch {
	case head.Format != scenarioFormat:
		return nil, fmt.Errorf("format is %q: want %q", head.Format, scenarioFormat)
	case head.Version != scenarioVersion:
		return nil, fmt.Errorf("version is %d: this tiersim reads version %d", head.Version,
			scenarioVersion)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var f scenarioFile
	if err := decoder.Decode(&f); errors.As(err, &kind) {
		return nil, fmt.Errorf("%s cannot be a %s%s", fieldOf(kind), kind.Value, lineOf(text, err))
	} else if err != nil {
		return nil, fmt.Errorf("%w%s", err, lineOf(text, err))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the scenario")
	}
	if f.Medium != "" && f.Medium != MediumBolt {
		return nil, fmt.Errorf("medium is %q: want %q, or none where the ledger is in memory", f.Medium,
			MediumBolt)
	}
	if f.Exhaust != nil && !bounds(f.Exhaust) {
		return nil, fmt.Errorf("exhaust is %d: want three numbers up to %d, of segments and actions at "+
			"least 1, and of disturbances", f.Exhaust, BoundMax)
	}
	if len(f.Choices) == 0 || len(f.Choices) > choicesMax {
		return nil, fmt.Errorf("%d choices: want 1 to %d", len(f.Choices), choicesMax)
	}
	for i, c := range f.Choices {
		if c.Label == "" || c.Of < 1 || c.Pick < 0 || c.Pick >= c.Of {
			return nil, fmt.Errorf("choice %d: %q picks %d of %d: want a label, and a pick below of",
				i+1, c.Label, c.Pick, c.Of)
		}
	}
	return &f.Scenario, nil
}

// bounds reports whether they are those of a search: segments, actions and disturbances.
func bounds(of []int) bool {
	return len(of) == 3 && min(of[0], of[1]) >= 1 && of[2] >= 0 && slices.Max(of) <= BoundMax
}

// fieldOf is the field as it is written in the file.
func fieldOf(err *json.UnmarshalTypeError) string {
	return strings.ToLower(strings.TrimPrefix(err.Field, "Scenario."))
}

// lineOf says in which line a JSON error is, where that is known.
func lineOf(text []byte, err error) string {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	offset := int64(-1)
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
	}
	if offset < 0 || offset > int64(len(text)) {
		return ""
	}
	return fmt.Sprintf(" (line %d)", 1+bytes.Count(text[:offset], []byte("\n")))
}
