package daemon

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/verify"
)

// keepLocal keeps local segments, and dropLocal does not.
const (
	keepLocal = siteConfig + "scrub: {every: 1ms, bytes_per_second: 0}\n"
	dropLocal = siteConfig + "scrub: {every: 0}\n"
)

// spoil alters or removes every object of a log whose key ends so, and returns how many.
func (s *site) spoil(log, suffix string, alter bool) (n int) {
	for _, key := range s.store.Keys() {
		if !strings.Contains(key, "/logs/"+log+"/") || !strings.HasSuffix(key, suffix) {
			continue
		}
		if n++; !alter {
			s.store.Remove(key)
			continue
		}
		data, _ := s.store.Object(key)
		data[len(data)/2] ^= 1
		s.store.Put(key, data)
	}
	return n
}

func alarms(t *testing.T, b api.Backend) (out []string) {
	t.Helper()
	st, err := b.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range st.Logs {
		for _, r := range l.Reasons {
			if r.Alarm {
				out = append(out, fmt.Sprintf("%s %s %s", l.Log, r.Code, r.Text))
			}
		}
	}
	return out
}

// state is what a list says of the segment of orders/0 with the base: its state and the codes of
// its reasons, an alarm's with a mark.
func state(t *testing.T, b api.Backend, base tier.Offset) string {
	t.Helper()
	list, err := b.Segments(t.Context(), tier.LogID{Table: "orders", Name: "0"})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list.Segments {
		if s.Base != base {
			continue
		}
		out := string(s.State) + ":"
		for _, r := range s.Reasons {
			if out += " " + string(r.Code); r.Alarm {
				out += "!"
			}
		}
		return out
	}
	return "none"
}

// TestWhatTheStoreLostIsCopiedAgain: same size, other bytes, and nobody asked for them.
func TestWhatTheStoreLostIsCopiedAgain(t *testing.T) {
	t.Parallel()
	for _, alter := range []bool{true, false} {
		s := newSite(t)
		s.configure(strings.Replace(keepLocal, "local-ttl: 1h", "local-ttl: 7d", 1))
		s.segments("orders/0", 3)
		if _, err := s.once(s.options()); err != nil {
			t.Fatal(err)
		}
		before := len(s.store.Keys())
		if n := s.spoil("orders/0", ".log", alter); n != 3 {
			t.Fatalf("%d objects", n)
		}
		left := len(s.store.Keys())
		d := s.run(s.options())
		s.until("every segment has a new copy", func() bool {
			return len(s.store.Keys()) >= left+6 // a file and a manifest entry each
		})
		s.until("nothing is wrong any more", func() bool { return len(alarms(t, d)) == 0 })
		if s.local("orders/0") != 4 {
			t.Errorf("%d local files, want 4", s.local("orders/0"))
		}
		if len(s.store.Keys()) < before {
			t.Errorf("%d objects, %d before", len(s.store.Keys()), before)
		}
		if err := d.stop(); err != nil {
			t.Error(err)
		}
	}
}

// TestALossIsRemembered: a reader meets it, a restart does not forget it, and it ends when the
// object is back.
func TestALossIsRemembered(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.configure(dropLocal)
	s.segments("orders/0", 2)
	if _, err := s.once(s.options()); err != nil || s.local("orders/0") != 1 {
		t.Fatal(err)
	}
	kept := map[string][]byte{}
	for _, key := range s.store.Keys() {
		kept[key], _ = s.store.Object(key)
	}
	if n := s.spoil("orders/0", "00000000000000000010.log", false); n != 1 {
		t.Fatalf("%d objects", n)
	}
	d := s.run(s.options())
	s.until("it is ready", func() bool {
		h, err := d.Health(t.Context())
		return err == nil && h.Ready
	})
	if got := alarms(t, d); len(got) > 0 {
		t.Errorf("nobody has looked yet: %v", got)
	}
	if w := get(t, d.Backend, "/api/v1/logs/orders/0/records?offset=10"); w.Code !=
		http.StatusBadGateway || !strings.Contains(w.Body.String(), "damaged") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := get(t, d.Backend, "/api/v1/logs/orders/0/records?offset=0"); w.Code != http.StatusOK {
		t.Errorf("its neighbour: %d %s", w.Code, w.Body)
	}
	lost := func(b api.Backend) func() bool {
		return func() bool {
			got := alarms(t, b)
			return len(got) == 1 && strings.Contains(got[0], "orders/0 "+string(tier.CodeStoreLost)) &&
				strings.Contains(got[0], "is lost")
		}
	}
	s.until("the loss is told", lost(d))
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	d = s.run(s.options())
	s.until("the loss is told after a restart", lost(d))
	if got := state(t, d, 10); got != "lost: store-lost!" {
		t.Errorf("in the list: %s", got)
	}
	if got := state(t, d, 0); got != "copied:" {
		t.Errorf("its neighbour in the list: %s", got)
	}
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	for key, data := range kept {
		s.store.Put(key, data)
	}
	s.configure(siteConfig + "scrub: {every: 1ms}\n")
	d = s.run(s.options())
	s.until("all was read back", func() bool {
		return strings.Contains(s.log.String(), "every copy in the store was read back")
	})
	s.until("it is found again", func() bool { return len(alarms(t, d)) == 0 })
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(s.dir, "data", scrubFile))
	if err != nil || strings.Contains(string(text), "00000010.log") {
		t.Errorf("%s %v", text, err)
	}
}

// TestAStrangeScrubFile: what it says of copies that are none is of no interest, a newer one is
// refused, and one that cannot be read may have named any copy.
func TestAStrangeScrubFile(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.segments("orders/0", 1)
	if _, err := s.once(s.options()); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(s.dir, "data", scrubFile)
	const refuse = tier.Truth(99)
	for text, want := range map[string]tier.Truth{"": tier.Unknown, "{": tier.Unknown,
		"{}": tier.Unknown,
		`{"version":1,"bad":[{"log":"x"},{"log":"a/b","position":7}]}`: tier.Yes,
		`{"version":1,"bad":[{"log":"orders/0","position":0}]}`:        tier.No,
		`{"version":99}`: refuse} {
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		d, done, err := Snapshot(t.Context(), s.options())
		if refused := want == refuse; refused != errors.Is(err, tier.ErrNewer) || !refused && err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if err != nil {
			continue
		}
		if got, why := d.(*Daemon).scrubber.sound(tier.LogID{Table: "orders", Name: "0"}, 0); got !=
			want || want == tier.Unknown && !strings.Contains(why, at) {
			t.Errorf("%q: %s, %s, want %s", text, got, why, want)
		}
		if err := done(); err != nil {
			t.Error(err)
		}
	}
}

// TestALostFindingDeletesNothing: where it is not known any more which copies were bad, none proves
// anything before all were looked at.
func TestALostFindingDeletesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.configure(strings.Replace(siteConfig, "local-ttl: 1h", "local-ttl: 7d", 1))
	s.segments("orders/0", 2)
	if r, err := s.once(s.options()); err != nil || r.CopiedSegments != 2 {
		t.Fatalf("%+v %v", r, err)
	}
	s.put("data/"+scrubFile, "\x00\x00")
	s.configure(dropLocal)
	if _, err := s.once(s.options()); err != nil || s.local("orders/0") != 3 {
		t.Fatalf("%d local files, want all 3; %v", s.local("orders/0"), err)
	}
	s.configure(siteConfig + "scrub: {every: 1h}\n")
	d := s.run(s.options())
	s.until("all was read back", func() bool {
		return strings.Contains(s.log.String(), "every copy in the store was read back")
	})
	if err := d.stop(); err != nil {
		t.Error(err)
	}
	s.configure(dropLocal)
	if _, err := s.once(s.options()); err != nil || s.local("orders/0") != 1 {
		t.Errorf("%d local files, want the last one; %v", s.local("orders/0"), err)
	}
}

// TestALossIsDurableAtOnce: whoever hears of it finds it on disk, whatever becomes of the process.
func TestALossIsDurableAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.configure(dropLocal)
	s.segments("orders/0", 3)
	if _, err := s.once(s.options()); err != nil || s.local("orders/0") != 1 {
		t.Fatal(err)
	}
	d, done, err := Snapshot(t.Context(), s.options())
	if err != nil {
		t.Fatal(err)
	}
	for pos := range tier.Position(3) {
		d.(*Daemon).scrubber.tell(tier.LogID{Table: "orders", Name: "0"}, pos,
			[]verify.Finding{{Text: "another hash"}})
		text, err := os.ReadFile(filepath.Join(s.dir, "data", scrubFile))
		if want := int(pos) + 1; err != nil || strings.Count(string(text), "another hash") != want ||
			len(alarms(t, d)) != want {
			t.Errorf("%s %v, want %d", text, err, want)
		}
	}
	if err := done(); err != nil {
		t.Error(err)
	}
}

// TestASuspicionIsNoNewsTwice: a client that tries again and again does not have the store read
// again and again, and what waits for a look proves nothing.
func TestASuspicionIsNoNewsTwice(t *testing.T) {
	t.Parallel()
	s := newScrubber(nil)
	log := tier.LogID{Table: "orders", Name: "0"}
	if !s.doubt(suspicion{log, 3}) || s.doubt(suspicion{log, 3}) || len(s.suspects) != 1 {
		t.Errorf("%d wait, want 1", len(s.suspects))
	}
	s.state.Bad = []scrubBad{{"orders/0", 4, "another hash"}}
	if s.doubt(suspicion{log, 4}) {
		t.Error("a copy that is known to be bad is looked at on each request")
	}
	for pos, want := range map[tier.Position]tier.Truth{3: tier.Unknown, 4: tier.No, 5: tier.Yes} {
		if got, why := s.sound(log, pos); got != want || (why == "") != (want == tier.Yes) {
			t.Errorf("position %d: %s, %q, want %s", pos, got, why, want)
		}
	}
	for pos := range tier.Position(2 * suspectsMax) {
		s.doubt(suspicion{log, pos + 10})
	}
	if len(s.doubted) != suspectsMax {
		t.Errorf("%d are remembered, want %d", len(s.doubted), suspectsMax)
	}
}

// TestABadCopyDeletesNothingAfterARestart: what is known to be bad is known before anything is
// decided, though its size is right and nobody looks at more.
func TestABadCopyDeletesNothingAfterARestart(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	sizes := strings.Replace(siteConfig, "copy: {", "copy: {verify: size, ", 1)
	s.configure(strings.Replace(sizes, "local-ttl: 1h", "local-ttl: 7d", 1))
	s.segments("orders/0", 2)
	if r, err := s.once(s.options()); err != nil || r.CopiedSegments != 2 {
		t.Fatalf("%+v %v", r, err)
	}
	state := `{"version":1,"bad":[{"log":"orders/0","position":0,"text":"another hash"},
		{"log":"orders/0","position":1,"text":"another hash"}]}`
	err := os.WriteFile(filepath.Join(s.dir, "data", scrubFile), []byte(state), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	s.configure(sizes)
	s.bucket.SetHook(fault.On(fault.OpUpload, fault.Effect{Err: errors.New("403")}))
	if _, err := s.once(s.options()); err != nil {
		t.Fatal(err)
	}
	if n := s.local("orders/0"); n != 3 {
		t.Errorf("%d local files, want all 3", n)
	}
	s.bucket.SetHook(nil)
	r, err := s.once(s.options())
	if err != nil || r.CopiedSegments != 2 || r.DeletedSegments != 2 {
		t.Errorf("%+v %v, want both copied again, and deleted", r, err)
	}
}

// TestAPassThatFoundBadCopiesWarns: that all was read back is no good news then.
func TestAPassThatFoundBadCopiesWarns(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.configure(dropLocal)
	s.segments("orders/0", 2)
	if _, err := s.once(s.options()); err != nil {
		t.Fatal(err)
	}
	s.spoil("orders/0", "00000000000000000010.log", false)
	s.configure(siteConfig + "scrub: {every: 1h}\n")
	d := s.run(s.options())
	s.until("the pass ends with a warning", func() bool {
		return strings.Contains(s.log.String(), "level=WARN msg=\"every copy in the store was read "+
			"back, and some are not what was copied\" bad=1")
	})
	if err := d.stop(); err != nil {
		t.Error(err)
	}
}
