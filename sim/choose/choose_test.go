package choose

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// play is a toy history: it fails once "owner: rolls" and "stop: now" both came, in this order.
func play(c Chooser) bool {
	rolled := false
	names := []string{"the end", "owner: rolls", "stop: now", "time: passes"}
	for range 50 {
		switch Pick(c, Step, names, nil) {
		case 0:
			return false
		case 1:
			rolled = rolled || Number(c, "segments", 1, 9) > 4
		case 2:
			if Yes(c, "after it"); rolled {
				return true
			}
		}
	}
	return false
}

func find(t *testing.T) []Choice {
	t.Helper()
	for seed := range uint64(1000) {
		r := &Recorder{Chooser: NewRandom(seed)}
		if play(r) && len(Steps(r.Made)) > 6 {
			return r.Made
		}
	}
	t.Fatal("no seed fails in more than five steps")
	return nil
}

func TestShrinkKeepsTheFailureAlone(t *testing.T) {
	t.Parallel()
	small := Shrink(find(t), 10_000, func(choices []Choice) ([]Choice, bool) {
		r := &Recorder{Chooser: NewLoose(choices)}
		failed := play(r)
		return r.Made, failed
	})
	var words []string
	for _, c := range small {
		words = append(words, c.String())
	}
	want := []string{"step: owner: rolls", "segments: 5", "step: stop: now", "after it: no"}
	if !slices.Equal(words, want) {
		t.Errorf("shrunk to %q, want %q", words, want)
	}
}

// TestShrinkLowersOutcomesWithNames to the first one that fails, whatever it is called.
func TestShrinkLowersOutcomesWithNames(t *testing.T) {
	t.Parallel()
	names := []string{"nobody", "payroll", "orders", "clicks"}
	small := Shrink([]Choice{{"who", 4, 3, "clicks", ""}}, 100, func(c []Choice) ([]Choice, bool) {
		r := &Recorder{Chooser: NewLoose(c)}
		return r.Made, Pick(r, "who", names, nil) > 0
	})
	if want := []Choice{{"who", 4, 1, "payroll", ""}}; !slices.Equal(small, want) {
		t.Errorf("shrunk to %v, want %v", small, want)
	}
}

func TestReplayMakesTheSameChoices(t *testing.T) {
	t.Parallel()
	made := find(t)
	s, err := Decode((&Scenario{Seed: "1", Choices: made}).Encode())
	if err != nil {
		t.Fatal(err)
	}
	r := &Recorder{Chooser: NewReplay(s.Choices)}
	if err := Catch(func() {
		if !play(r) {
			t.Error("the replay does not fail")
		}
	}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Made, made) {
		t.Error("the replay made other choices")
	}
}

// TestLooseKnowsOutcomesByName: under another configuration an outcome has another number. What it
// was called still means it; a step that is there no more is left out, and nothing comes in its
// place.
func TestLooseKnowsOutcomesByName(t *testing.T) {
	t.Parallel()
	l := NewLoose([]Choice{
		{"log", 3, 2, "clicks/0", ""},
		{Step, 4, 1, "owner: rolls", ""}, {"log", 3, 1, "payroll/0", ""},
		{Step, 4, 2, "owner: is gone", ""}, {"log", 3, 0, "orders/0", ""},
		{Step, 4, 3, "stop: now", ""}, {"after it", 2, 1, "", "yes"},
	})
	logs := []string{"orders/0", "payroll/0"}
	steps := []string{"the end", "stop: now", "owner: rolls"}
	got := []int{Pick(l, "log", logs, nil), Pick(l, Step, steps, nil), Pick(l, "log", logs, nil),
		Pick(l, Step, steps, nil), l.Choose("after it", 2), Pick(l, Step, steps, nil)}
	if want := []int{0, 2, 1, 1, 1, 0}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestReplayRefusesWhatIsNotAsked(t *testing.T) {
	t.Parallel()
	for text, choices := range map[string][]Choice{
		`choice 1: "step" has no outcome "owner: flies"`: {{Step, 4, 1, "owner: flies", ""}},
		`choice 2: the scenario has "segment", and the history asks for "segments"`: {
			{Step, 4, 1, "owner: rolls", ""}, {"segment", 9, 1, "", ""}},
		`choice 2: "segments" has 3 outcomes in the scenario and 9 in the history`: {
			{Step, 4, 1, "owner: rolls", ""}, {"segments", 3, 1, "", ""}},
	} {
		err := Catch(func() { play(NewReplay(choices)) })
		var m *Mismatch
		if !errors.As(err, &m) || err.Error() != text {
			t.Errorf("got %v, want %s", err, text)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	good := string((&Scenario{Choices: []Choice{{Step, 2, 1, "x", ""}}}).Encode())
	for name, c := range map[string]struct{ text, want string }{
		"truncated":     {good[:len(good)-5], "no whole JSON object"},
		"other version": {strings.Replace(good, `"version":1`, `"version":2`, 1), "version is 2"},
		"other format":  {strings.Replace(good, "tiersim scenario", "x", 1), `format is "x"`},
		"unknown key":   {strings.Replace(good, `"choices"`, `"chances":1,"choices"`, 1), "chances"},
		"other medium":  {strings.Replace(good, `"choices"`, `"medium":"tape","choices"`, 1), `"tape"`},
		"no bounds":     {strings.Replace(good, `"choices"`, `"exhaust":[2,4],"choices"`, 1), "[2 4]"},
		"no such bounds": {strings.Replace(good, `"choices"`, `"exhaust":[2,4,2000],"choices"`, 1),
			"2000"},
		"no choice":      {`{"format":"tiersim scenario","version":1,"choices":[]}`, "0 choices"},
		"pick too large": {strings.Replace(good, `"pick":1`, `"pick":2`, 1), "choice 1"},
		"two":            {good + good, "after top-level value"},
	} {
		if _, err := Decode([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add((&Scenario{Seed: "1", Choices: []Choice{{Step, 2, 1, "x", ""}}}).Encode())
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Decode(text)
		if err != nil {
			return
		}
		again, err := Decode(s.Encode())
		if err != nil || !slices.Equal(again.Choices, s.Choices) {
			t.Errorf("it does not survive: %v", err)
		}
	})
}

func TestBytesEnd(t *testing.T) {
	t.Parallel()
	b := Bytes{5, 1, 2}
	got := []int{b.Choose("a", 4), b.Choose("b", 1000), b.Choose("c", 9)}
	if want := []int{1, 258, 0}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestRatesAreDrawnWhoeverWritesDown: a seed is the same history with a recorder and without, and
// one that is replayed draws nothing.
func TestRatesAreDrawnWhoeverWritesDown(t *testing.T) {
	t.Parallel()
	names := []string{"owner: rolls", "stop: now", "time: passes"}
	draw := func(c Chooser) (rate int, often string, next int) {
		return Rate(c, "stop", 2, 4, 8), Favour(c, names), c.Choose("segments", 1000)
	}
	for seed := range uint64(10) {
		one, other := NewRandom(seed), NewRandom(seed)
		rate, often, next := draw(one)
		r, o, n := draw(&Recorder{Chooser: other})
		if r != rate || o != often || n != next || !slices.Equal(one.Rates, other.Rates) {
			t.Errorf("seed %d: %d, %q and %d, and written down %d, %q and %d", seed, rate, often, next,
				r, o, n)
		}
	}
	if rate, often, _ := draw(NewLoose(nil)); rate != 4 || often != "" {
		t.Errorf("a replay draws %d and %q", rate, often)
	}
}
