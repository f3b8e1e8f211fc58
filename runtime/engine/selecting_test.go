package engine

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tierd/tierd/runtime/tier"
)

// withPlugins are settings of an engine that has plugins to ask.
func withPlugins(change ...func(*Settings, *tier.Table)) Settings {
	return settings(append([]func(*Settings, *tier.Table){func(s *Settings, _ *tier.Table) {
		s.Plugins, s.HoldMax, s.SelectEvery = true, 24*hour, 60*second
	}}, change...)...)
}

// opinion is what a plugin says of one segment.
type opinion struct {
	score      int64
	hold, keep bool
}

// says answers the open Select as the one plugin "p" that has the opinions.
func (r *rig) says(of func(tier.LogID, tier.Range) opinion) Select {
	r.t.Helper()
	f := take[Select](r)
	r.step(Finished{ID: f.ID, Result: answerOf(f, of)})
	return f
}

func answerOf(f Select, of func(tier.LogID, tier.Range) opinion) Selected {
	out := Selected{Plugins: []string{"p"}}
	bit := map[bool]uint16{true: 1}
	for _, l := range f.Logs {
		for _, s := range l.Segments {
			o := of(l.Log, s.Range)
			out.Scores = append(out.Scores, o.score)
			out.Holds, out.Keeps = append(out.Holds, bit[o.hold]), append(out.Keeps, bit[o.keep])
		}
	}
	return out
}

func nothing(tier.LogID, tier.Range) opinion { return opinion{} }

func always(o opinion) func(tier.LogID, tier.Range) opinion {
	return func(tier.LogID, tier.Range) opinion { return o }
}

// bases are the first offsets of what was asked about, by log.
func (f Select) bases() string {
	var out []string
	for _, l := range f.Logs {
		for _, s := range l.Segments {
			out = append(out, fmt.Sprintf("%s@%d", l.Log.Name, s.Base))
		}
	}
	return strings.Join(out, " ")
}

// logs gives the engine a whole scan of logs 0, 1, ... of orders, each with n closed segments, the
// oldest log first.
func (r *rig) logs(counts ...int) {
	r.t.Helper()
	var ids []tier.LogID
	for k, n := range counts {
		var list []tier.LocalSegment
		for i := range n {
			s := seg(tier.Offset(10 * i))
			s.Log.ModTime += tier.Time(k)
			list = append(list, s)
		}
		s := scan(append(list, tail(tier.Offset(10*n)))...)
		s.Log = tier.LogID{Table: "orders", Name: fmt.Sprint(k)}
		ids = append(ids, s.Log)
		r.step(Scanned{Scan: s})
	}
	r.step(SourceScanned{Source: "wal", Logs: ids})
	for range counts {
		r.opened(0)
	}
}

func TestCopiesBetweenLogsGoByScore(t *testing.T) {
	t.Parallel()
	r := start(t, withPlugins(func(s *Settings, _ *tier.Table) { s.Workers = 1 }))
	r.logs(2, 2, 1)
	scores := map[string]int64{"0": -5, "1": 7, "2": 7}
	r.says(func(id tier.LogID, s tier.Range) opinion {
		return opinion{score: scores[id.Name] - int64(s.Base)} // younger ones score lower
	})
	plan := r.e.PlanCopies(10)
	var planned, got []string
	for _, c := range plan.List {
		planned = append(planned, fmt.Sprintf("%s@%d", c.Log.Name, c.Base))
	}
	for i := range 5 {
		f := r.copied(tier.Position(i), 0)
		got = append(got, fmt.Sprintf("%s@%d", f.Log.Name, f.Segment.Base))
	}
	r.none()
	const want = "1@0 2@0 1@10 0@0 0@10"
	if s := strings.Join(got, " "); s != want || s != strings.Join(planned, " ") {
		t.Errorf("copied %s, planned %v; want %s", s, planned, want)
	}
	if plan.Total.Segments != 5 || plan.Total.Bytes != 500 || !plan.List[0].Copying {
		t.Errorf("plan %+v", plan)
	}
}

// TestSeveralPlugins: the first one's scores decide, the second one's break ties, and what any of
// them holds or keeps counts, with the names of all that do.
func TestSeveralPlugins(t *testing.T) {
	t.Parallel()
	r := start(t, withPlugins(func(s *Settings, _ *tier.Table) { s.Workers = 1 }))
	r.logs(1, 1, 1, 2, 1)
	f := take[Select](r)
	if got, want := f.bases(), "0@0 1@0 2@0 3@0 3@10 4@0"; got != want {
		t.Fatalf("asked about %s, want %s", got, want)
	}
	r.step(Finished{ID: f.ID, Result: Selected{Plugins: []string{"p", "q"},
		Scores: []int64{4, 9, 7, math.MinInt64, 7, math.MaxInt64, 0, 0, 0, 0, 4, 9},
		Holds:  []uint16{0, 0, 0, 0b10, 0, 0b11}, Keeps: []uint16{0b01, 0, 0, 0, 0, 0}}})
	plan := r.e.PlanCopies(10)
	var order, held []string
	for _, c := range plan.List {
		order = append(order, fmt.Sprintf("%s %d", c.Log.Name, c.Scores))
	}
	for _, h := range plan.Held {
		_, by, _ := strings.Cut(h.Reason.Text, " by the ")
		held = append(held, h.Log.Name+" "+by)
	}
	if want := []string{"2 []", "1 [7 -9223372036854775808]", "0 [4 9]"}; !plan.List[0].Copying ||
		!slices.Equal(order, want) {
		t.Errorf("copies %q, want %q", order, want)
	}
	if len(held) != 2 || !strings.HasPrefix(held[0], "3 plugin q, until ") ||
		!strings.HasPrefix(held[1], "4 plugins p, q, until ") {
		t.Errorf("held %q", held)
	}
	if why := r.e.keptReason(r.e.logs[tier.LogID{Table: "orders", Name: "0"}], 0); why == nil ||
		!strings.HasSuffix(why.Text, " by the plugin p") {
		t.Errorf("kept: %v", why)
	}
}

// TestScoresOfAnySize: extremes do not overflow, what is missing is 0, later ones break ties.
func TestScoresOfAnySize(t *testing.T) {
	t.Parallel()
	const least, most = math.MinInt64, math.MaxInt64
	order := [][]int64{{most, least}, {most, least + 1}, {1}, nil, {0, -1}, {-1, most}, {least}}
	slices.Reverse(order[:2])
	for i := range order {
		for k := range order {
			want := cmp.Compare(i, k)
			if got := compareScores(order[i], order[k]); got != want {
				t.Errorf("%v and %v: %d, want %d", order[i], order[k], got, want)
			}
		}
	}
}

// TestNobodyIsAskedForNothing: no question without a candidate, and none again too soon.
func TestNobodyIsAskedForNothing(t *testing.T) {
	t.Parallel()
	r := start(t, withPlugins())
	r.seen(seg(0), tail(10))
	r.opened(0)
	if r.e.Idle() {
		t.Error("idle though an answer is waited for")
	}
	if f := r.says(nothing); f.bases() != "0@0" {
		t.Errorf("asked about %s", f.bases())
	}
	r.copied(0, 10)
	r.none()
	for range 100 {
		r.after(30 * time.Second)
	}
	r.none() // nothing is due within 50 minutes
	if !r.e.Idle() || len(r.e.candidates) != 0 {
		t.Errorf("not idle, with %d candidates", len(r.e.candidates))
	}
	if at, _ := r.e.NextDue(); at != epochStart+hour+1 {
		t.Errorf("next due at %s, want when the TTL is over", at)
	}
	r.after(10*time.Minute + 1)
	if f := r.says(always(opinion{keep: true})); f.bases() != "0@0" {
		t.Errorf("asked about %s", f.bases())
	}
	r.after(59 * time.Second)
	r.none()
	r.after(time.Second)
	take[Select](r) // what is kept is asked about again
	r.none()
}

func TestAHoldEnds(t *testing.T) {
	t.Parallel()
	r := start(t, withPlugins())
	r.seen(seg(0), seg(10), tail(20))
	r.opened(0)
	r.says(func(_ tier.LogID, s tier.Range) opinion { return opinion{hold: s.Base == 0} })
	r.none() // nor is the one behind it copied
	reason := r.code(tier.CodeHeld)
	if reason.Until != epochStart+24*hour || !strings.Contains(reason.Text, "plugin p") {
		t.Errorf("reason %+v", reason)
	}
	held := r.e.PlanCopies(10).Held
	if len(held) != 1 || held[0].Base != 0 || held[0].Reason != reason {
		t.Errorf("held: %+v", held)
	}
	if n := r.e.Tallies()[0].Held.Segments; n != 1 {
		t.Errorf("%d segments are counted as held", n)
	}
	r.after(time.Minute)
	r.says(nothing)
	r.copied(0, 10)
	r.copied(1, 20)
	r.none()
}

// TestAHoldIsBounded: by when the file was last written, whatever plugins say, and however often
// tierd is started anew.
func TestAHoldIsBounded(t *testing.T) {
	t.Parallel()
	r := start(t, withPlugins())
	for restart := range 4 {
		r = &rig{t: t, e: New(), now: epochStart + tier.Time(restart)*8*hour - 1}
		r.step(Reconfigured{Settings: withPlugins()})
		r.step(Started{})
		r.seen(seg(0), tail(10))
		r.opened(0)
		r.says(always(opinion{hold: true}))
		if restart < 3 {
			r.none()
		}
	}
	r.none()
	if at, ok := r.e.NextDue(); !ok || at != epochStart+24*hour {
		t.Errorf("next due at %s, want the end of the hold", at)
	}
	r.after(1)
	take[Copy](r)
	r.none()
}

// TestAFileFromTheFutureIsNotHeld: its hold would have no end that anybody waits for.
func TestAFileFromTheFutureIsNotHeld(t *testing.T) {
	t.Parallel()
	r := start(t, withPlugins())
	s := seg(0)
	s.Log.ModTime = epochStart + 1000*hour
	r.seen(s, tail(10))
	r.opened(0)
	r.says(always(opinion{hold: true}))
	take[Copy](r)
}

func TestAKeptSegmentIsNotProposed(t *testing.T) {
	t.Parallel()
	r := start(t, withPlugins())
	r.now += 10 * hour
	r.seen(seg(0), seg(10), seg(20), tail(30))
	r.opened(0)
	r.says(func(_ tier.LogID, s tier.Range) opinion { return opinion{keep: s.Base == 10} })
	for i := range 3 {
		r.copied(tier.Position(i), tier.Offset(10*(i+1)))
	}
	if f := r.deleted(); len(f.Segments) != 1 || f.Segments[0].Segment.Base != 0 {
		t.Fatalf("proposed %+v; want the one before what is kept", f.Segments)
	}
	r.none()
	reason := r.code(tier.CodeKept)
	if !strings.Contains(reason.Text, "[10, 20)") || !strings.Contains(reason.Text, "plugin p") {
		t.Errorf("reason %+v", reason)
	}
	rng, why := r.e.KeptByPlugin(orders)
	if local, _, _ := r.e.Plan(orders); len(local.Segments) != 0 || rng.Base != 10 || why == nil {
		t.Errorf("planned %+v; kept %s, %v", local.Segments, rng, why)
	}
	if n := r.e.Tallies()[0].Kept.Segments; n != 1 {
		t.Errorf("%d segments are counted as kept", n)
	}
	r.after(time.Minute)
	if f := r.says(nothing); f.bases() != "0@10 0@20" {
		t.Errorf("asked about %s", f.bases())
	}
	r.deleted()
	r.none()
}

// TestPluginsThatDoNotAnswer: the built-in order serves at once, nothing is held or kept any more,
// and they are asked again after a while that grows.
func TestPluginsThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	r := start(t, withPlugins())
	r.seen(seg(0), tail(10))
	r.opened(0)
	r.says(always(opinion{hold: true}))
	r.none()
	late := Failed{Reason: tier.Reason{Code: tier.CodePluginFault, Text: "it did not answer"}}
	r.after(time.Minute)
	r.step(Finished{ID: take[Select](r).ID, Result: late})
	r.copied(0, 10)
	r.seen(seg(0), seg(10), tail(20))
	take[Copy](r) // it is not waited for
	r.none()
	r.seen(seg(0), seg(10), seg(20), tail(30))
	take[Copy](r)
	r.after(2 * time.Second)
	r.seen(seg(0), seg(10), seg(20), seg(30), tail(40))
	r.step(Finished{ID: take[Select](r).ID, Result: Selected{Plugins: []string{"p"}}}) // no answer
	if r.e.selectFailures != 2 {
		t.Errorf("%d failures, want that of another length too", r.e.selectFailures)
	}
}

// TestAnAnswerOfAnotherGenerationIsDropped, and what it was about is asked anew.
func TestAnAnswerOfAnotherGenerationIsDropped(t *testing.T) {
	t.Parallel()
	r := start(t, withPlugins())
	r.seen(seg(0), tail(10))
	r.opened(0)
	old := take[Select](r)
	r.step(Reconfigured{Settings: withPlugins(func(s *Settings, _ *tier.Table) { s.Generation = 2 })})
	r.none() // one question at a time
	r.step(Finished{ID: old.ID, Result: answerOf(old, always(opinion{hold: true}))})
	if f := r.says(nothing); f.Generation != 2 {
		t.Errorf("asked generation %d", f.Generation)
	}
	take[Copy](r)
	r.step(Reconfigured{Settings: settings()})
	r.none()
	if len(r.e.candidates) != 0 || r.e.unasked != 0 {
		t.Error("there are candidates without plugins")
	}
}

// TestARoundIsBounded: many candidates are asked about in several questions, each log whole but for
// the middle of a very long one, and the next round waits in proportion.
func TestARoundIsBounded(t *testing.T) {
	t.Parallel()
	r := start(t, withPlugins())
	r.logs(1, 3000, 5000, 6000, 1)
	var asked []int
	again := func() {
		f := take[Select](r)
		asked = append(asked, f.rows())
		r.now += second
		r.step(Finished{ID: f.ID, Result: answerOf(f, nothing)})
	}
	again()
	again()
	want := []int{1 + 3000 + selectLogMax, selectLogMax + 1}
	if !slices.Equal(asked, want) {
		t.Errorf("asked about %v segments; want %v", asked, want)
	}
	more := scan(seg(0), tail(10))
	more.Log.Name = "5"
	r.step(Scanned{Scan: more})
	r.step(SourceScanned{Source: "wal", Logs: append(r.e.Logs(), more.Log)})
	r.opened(0)
	if r.e.selecting {
		t.Error("asked at once")
	}
	if at, _ := r.e.NextDue(); at != r.now+selectPause*2*second {
		t.Errorf("the next round is due at %s, %s from now; want nine times as long as the last one",
			at, at.Sub(r.now))
	}
}

// TestALookWithoutAProcess: an engine that has not started is told what plugins say, for people.
func TestALookWithoutAProcess(t *testing.T) {
	t.Parallel()
	r := &rig{t: t, e: New(), now: epochStart}
	r.step(Reconfigured{Settings: withPlugins()})
	for k, n := range []int{1, 2} {
		s := scan(seg(0), tail(10))
		if n == 2 {
			s = scan(seg(0), seg(10), tail(20))
		}
		s.Log.Name = fmt.Sprint(k)
		r.step(Scanned{Scan: s})
	}
	r.step(SourceScanned{Source: "wal", Logs: []tier.LogID{orders, {Table: "orders", Name: "1"}}})
	r.none()
	for _, f := range r.e.Candidates() {
		r.step(Advised{Asked: f, Answer: answerOf(f, func(id tier.LogID, s tier.Range) opinion {
			return opinion{score: int64(len(id.Name)) + int64(s.Base), hold: s.Base == 10}
		})})
	}
	plan := r.e.PlanCopies(1)
	if len(plan.List) != 1 || plan.Total.Segments != 2 || len(plan.Held) != 1 ||
		!slices.Equal(plan.List[0].Scores, []int64{1}) || plan.List[0].Plugins[0] != "p" {
		t.Errorf("plan %+v", plan)
	}
}

// TestPluginsNeverEnlargeWhatMayBeDeleted: whatever was said, and whenever, what the engine would
// propose is a beginning of what it would propose without plugins.
func TestPluginsNeverEnlargeWhatMayBeDeleted(t *testing.T) {
	t.Parallel()
	fewer := 0
	rapid.Check(t, func(rt *rapid.T) {
		r := start(t, withPlugins(func(s *Settings, tab *tier.Table) {
			s.Brake.MaxSegments = 3
			tab.LocalSegments = tier.Limit{Set: true, Value: 2}
		}))
		size := 1
		for range 40 {
			switch rapid.IntRange(0, 6).Draw(rt, "what") {
			case 0:
				size++
				fallthrough
			case 1:
				var list []tier.LocalSegment
				for i := r.oldest(); i < size; i++ {
					list = append(list, seg(tier.Offset(10*i)))
				}
				r.seen(append(list, tail(tier.Offset(10*size)))...)
			case 2:
				r.after(time.Duration(rapid.IntRange(1, 5000).Draw(rt, "seconds")) * time.Second)
			case 3:
				r.step(Resumed{Table: "orders"})
			default:
				r.answerOne(rt)
			}
			l := r.e.logs[orders]
			if l == nil {
				continue
			}
			with := r.e.Deletable(orders, true)
			s, a := r.e.settings, l.advice
			r.e.settings.Plugins, l.advice = false, nil
			without := r.e.Deletable(orders, true)
			r.e.settings, l.advice = s, a
			if !slices.Equal(without, r.e.Deletable(orders, false)) {
				rt.Fatal("plugins count where they should not")
			}
			if len(with) > len(without) || !slices.Equal(with, without[:len(with)]) {
				rt.Fatalf("with plugins %+v, without %+v", with, without)
			}
			if len(with) < len(without) {
				fewer++
			}
		}
	})
	if fewer == 0 {
		t.Error("no plugin ever kept anything: the test shows nothing")
	}
}

// oldest is the number of the oldest local segment.
func (r *rig) oldest() int {
	if l := r.e.logs[orders]; l != nil && len(l.local) > 0 {
		return int(l.local[0].Base / 10)
	}
	return 0
}

// answerOne ends one of the effects under way, as chance would have it.
func (r *rig) answerOne(rt *rapid.T) {
	if len(r.open) == 0 {
		return
	}
	f := rapid.SampledFrom(r.open).Draw(rt, "effect")
	switch f := f.(type) {
	case Select:
		if rapid.IntRange(0, 9).Draw(rt, "fails") == 0 {
			take[Select](r)
			r.step(Finished{ID: f.ID, Result: Failed{}})
			return
		}
		r.says(func(tier.LogID, tier.Range) opinion {
			return opinion{score: rapid.Int64().Draw(rt, "score"), hold: rapid.Bool().Draw(rt, "hold"),
				keep: rapid.Bool().Draw(rt, "keep")}
		})
	case Open:
		r.opened(0)
	case Copy:
		first := take[Copy](r)
		r.open = append([]Effect{first}, r.open...)
		r.copied(tier.Position(first.Segment.Base/10), first.Segment.Next)
	case Delete:
		r.deleted()
	case Pause:
		take[Pause](r)
		r.step(Finished{ID: f.ID, Result: Done{}})
	default:
		rt.Fatalf("unexpected %T", f)
	}
}

// TestPluginsThatTie: plugins are asked in configured order, and the first that tells two segments
// apart decides; where none does the built-in order stands, the oldest file and then the log's id.
// The names of plugins have no say.
func TestPluginsThatTie(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		plugins []string
		scores  []int64 // of the logs 0 to 3, one of each plugin in turn
		want    string
	}{
		{[]string{"a", "b"}, []int64{5, 3, 5, 3, 5, 3, 5, 3}, "0 1 2 3"},
		{[]string{"b", "a"}, []int64{5, 3, 5, 3, 5, 3, 5, 3}, "0 1 2 3"},
		{[]string{"a", "b"}, []int64{0, 1, 0, 4, 0, 4, 0, 2}, "1 2 3 0"},
		{[]string{"a", "b"}, []int64{1, 1, 2, 4, 2, 4, 4, 2}, "3 1 2 0"},
		{[]string{"b", "a"}, []int64{1, 1, 4, 2, 4, 2, 2, 4}, "1 2 3 0"}, // the same two, exchanged
	} {
		r := start(t, withPlugins(func(s *Settings, _ *tier.Table) { s.Workers = 1 }))
		r.logs(1, 1, 1, 1)
		f := take[Select](r)
		none := make([]uint16, 4)
		r.step(Finished{ID: f.ID, Result: Selected{Plugins: c.plugins, Scores: c.scores,
			Holds: none, Keeps: none}})
		var got []string
		for i := range 4 {
			got = append(got, r.copied(tier.Position(i), 0).Log.Name)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("plugins %v with scores %v: copied %s, want %s", c.plugins, c.scores, s, c.want)
		}
	}
}
