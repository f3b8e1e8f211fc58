package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/tier"
)

// pauses are those of a scrub, and take no time. Beyond most the next ones last until more is
// called.
type pauses struct {
	mu    sync.Mutex
	list  []time.Duration
	most  int
	stays chan struct{}
}

func newPauses(most int) *pauses { return &pauses{most: most, stays: make(chan struct{})} }

func (p *pauses) wait(ctx context.Context, d time.Duration) error {
	p.mu.Lock()
	p.list = append(p.list, d)
	stays := len(p.list) > p.most
	p.mu.Unlock()
	if stays {
		select {
		case <-ctx.Done():
		case <-p.stays:
		}
	}
	return ctx.Err()
}

func (p *pauses) all() []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.list)
}

// clock is that of the wall, and can be moved on.
type clock struct {
	mu  sync.Mutex
	off time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.off)
}

func (c *clock) moves(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off += d
}

// reads is a hook that has reads of the keys with one of the parts fail.
func reads(err error, parts ...string) fault.Hook {
	return func(op fault.Op) fault.Effect {
		read := op.Kind == fault.OpGet || op.Kind == fault.OpGetRange
		meant := func(part string) bool { return strings.Contains(op.Key, part) }
		if read && slices.ContainsFunc(parts, meant) {
			return fault.Effect{Err: err}
		}
		return fault.Effect{}
	}
}

const (
	// bySize asks the store for no more than sizes, so that what a scrub found is all that speaks
	// against a copy; and keeps all that is local. Copies are made one by one: positions and bases
	// ascend alike.
	bySize = "\ndata_dir: data\ninterval: 10ms\nsources: [{name: wal, layout: plain, path: wal}]\n" +
		"bucket: {type: FILESYSTEM, config: {directory: bucket}}\n" +
		"defaults: {table.log.ttl: 70d, table.log.local-ttl: 60d}\n" +
		"copy: {timeout: 200ms, verify: size, workers: 1}\n"
	scrubbing = bySize + "scrub: {every: 20d, bytes_per_second: 0}\n"
	backAgain = "what the store gives was read back"
)

// dropping is the configuration without the local segments that it keeps.
func dropping(config string) string { return strings.Replace(config, "60d", "1h", 1) }

// ofLog is what a status says of orders/0, by code.
func ofLog(t *testing.T, b api.Backend) map[tier.Code]string {
	t.Helper()
	st, err := b.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[tier.Code]string{}
	for _, l := range st.Logs {
		for _, r := range l.Reasons {
			if l.Log == "orders/0" && r.Alarm {
				out[r.Code] += r.Text + "\n"
			}
		}
	}
	return out
}

// truths is what is known of the copies of orders/0, ascending by base.
func (r *running) truths() (out []tier.Truth) {
	d, log := r.Backend.(*Daemon), tier.LogID{Table: "orders", Name: "0"}
	counted, err := d.reader.Counted(log)
	if err != nil {
		return nil
	}
	for _, c := range counted {
		got, _ := d.scrubber.sound(log, c.Position)
		out = append(out, got)
	}
	return out
}

// TestWhatTheStoreDoesNotGiveIsPassedOver: a copy that was moved to an archive, and an entry. The
// rest is looked at. Of these nothing is known until the store gives them, also after a restart.
func TestWhatTheStoreDoesNotGiveIsPassedOver(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.configure(bySize)
	s.segments("orders/0", 3)
	if _, err := s.once(s.options()); err != nil {
		t.Fatal(err)
	}
	s.bucket.SetHook(reads(fault.ErrDenied, "00010.log", "/manifest/0000000000000002-"))
	s.configure(scrubbing)
	opts, waits, at := s.options(), newPauses(100), &clock{}
	opts.Pause, opts.Now = waits.wait, at.now
	d := s.run(opts)
	s.until("the pass is over", func() bool { return strings.Contains(s.log.String(), backAgain) })
	want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}
	if got := waits.all(); !slices.Equal(got, slices.Concat(want, want)) {
		t.Errorf("pauses: %v, want %v twice", got, want)
	}
	for metric, want := range map[string]map[string]int{
		"tierd_scrubbed_segments_total":         {"good": 2, "passed": 1, "error": scrubTries, "bad": 0},
		"tierd_scrubbed_manifest_objects_total": {"good": 2, "passed": 1, "error": scrubTries, "bad": 0},
	} {
		got := results(t, opts, metric)
		for result, n := range want {
			if got[result] != n {
				t.Errorf("%s: %v, want %v", metric, got, want)
			}
		}
	}
	for _, text := range []string{"00010.log", "/manifest/0000000000000002-"} {
		said := strings.Contains(ofLog(t, d)[tier.CodeStoreError], text)
		if n := strings.Count(s.log.String(), "it is passed over"); n != 2 || !said {
			t.Errorf("%s: %d lines of the log, in the status %t", text, n, said)
		}
	}
	e, err := d.Explain(t.Context(), tier.LogID{Table: "orders", Name: "0"}, 5)
	if err != nil || len(e.Reasons) == 0 || e.Reasons[0].Code != tier.CodeStoreError ||
		!e.Reasons[0].Alarm {
		t.Errorf("explained: %+v %v", e, err)
	}
	unknown := []tier.Truth{tier.Yes, tier.Unknown, tier.Yes}
	if got := d.truths(); !slices.Equal(got, unknown) {
		t.Errorf("known: %v, want %v", got, unknown)
	}
	at.moves(time.Hour + time.Minute)
	s.until("both are looked at again", func() bool {
		return results(t, opts, "tierd_scrubbed_segments_total")["passed"] == 2
	})
	if got := waits.all(); len(got) != 2*len(want) {
		t.Errorf("what is known to be held back is waited for once more: %v", got)
	}
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	s.configure(dropping(scrubbing))
	opts.Registry = s.options().Registry
	d = s.run(opts)
	s.until("the first segment is deleted", func() bool { return s.local("orders/0") == 3 })
	if got := d.truths(); !slices.Equal(got, unknown) || len(ofLog(t, d)) == 0 {
		t.Errorf("known after a restart: %v, want %v; %v", got, unknown, ofLog(t, d))
	}
	s.bucket.SetHook(nil)
	at.moves(time.Hour + time.Minute)
	s.until("all is known", func() bool { return !slices.Contains(d.truths(), tier.Unknown) })
	at.moves(time.Hour) // a segment that is kept is asked about again after some minutes
	s.until("all is deleted", func() bool { return s.local("orders/0") == 1 })
	s.until("nothing is open", func() bool { return len(ofLog(t, d)) == 0 })
	if err := d.stop(); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(filepath.Join(s.dir, "data", scrubFile))
	if err != nil || strings.Contains(string(text), `"open"`) {
		t.Errorf("%s %v", text, err)
	}
}

// TestAStoreThatGivesNothingIsWaitedFor, as where a session is over: with longer and longer
// pauses, and nothing is passed over.
func TestAStoreThatGivesNothingIsWaitedFor(t *testing.T) {
	t.Parallel()
	for what, parts := range map[string][]string{
		"copies": {".log", "owner.json"}, "all": {".log", "owner.json", "/manifest/"},
	} {
		s := newSite(t)
		s.configure(bySize)
		s.segments("orders/0", 2)
		if _, err := s.once(s.options()); err != nil {
			t.Fatal(err)
		}
		opts, waits := s.options(), newPauses(12)
		opts.Pause = waits.wait
		d := s.run(opts)
		s.until("it is ready", func() bool {
			h, err := d.Health(t.Context())
			return err == nil && h.Ready
		})
		s.bucket.SetHook(reads(fault.ErrDenied, parts...))
		s.configure(scrubbing)
		if err := d.reload(""); err != nil {
			t.Fatal(err)
		}
		s.until("it waits", func() bool { return len(waits.all()) > 12 })
		got := waits.all()
		if got[0] != backoffMin || got[len(got)-1] != backoffMax || !slices.IsSorted(got) {
			t.Errorf("%s: %v", what, got)
		}
		s.bucket.SetHook(nil)
		close(waits.stays)
		s.until("all was read back", func() bool {
			return strings.Contains(s.log.String(), "every copy in the store was read back")
		})
		if n := results(t, opts, "tierd_scrubbed_segments_total"); n["passed"] != 0 || n["good"] != 2 {
			t.Errorf("%s: %v", what, n)
		}
		if err := d.stop(); err != nil {
			t.Error(err)
		}
	}
}

// TestManyInARowAreAskedForOnce: a hundred thousand of them would take weeks, and the next pass
// too.
func TestManyInARowAreAskedForOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.configure(bySize)
	s.segments("orders/0", 8)
	if _, err := s.once(s.options()); err != nil {
		t.Fatal(err)
	}
	s.bucket.SetHook(reads(fault.ErrDenied, "0.log"))
	s.configure(scrubbing)
	opts, waits, at := s.options(), newPauses(100), &clock{}
	opts.Pause, opts.Now = waits.wait, at.now
	d := s.run(opts)
	over := func(n int) func() bool {
		return func() bool { return strings.Count(s.log.String(), backAgain) == n }
	}
	s.until("the pass is over", over(1))
	if n := len(waits.all()); n != scrubRow*(scrubTries-1)+8-scrubRow {
		t.Errorf("%d pauses: %v", n, waits.all())
	}
	before := results(t, opts, "tierd_scrubbed_segments_total")
	at.moves(20 * 24 * time.Hour)
	s.until("the next one is over", over(2))
	after := results(t, opts, "tierd_scrubbed_segments_total")
	once := after["passed"] - before["passed"] // in the pass, and what is looked at each hour
	if before["passed"] != 8 || once < 8 || after["error"]-before["error"] > once+1 {
		t.Errorf("%v, then %v", before, after)
	}
	s.bucket.SetHook(nil)
	at.moves(20 * 24 * time.Hour)
	s.until("all is known", func() bool {
		return !slices.Contains(d.truths(), tier.Unknown) && len(ofLog(t, d)) == 0
	})
	if err := d.stop(); err != nil {
		t.Error(err)
	}
}

// TestASuspicionThatCannotBeLookedAtStays, and so does a loss that was found: what the store does
// not give is neither sound nor lost.
func TestASuspicionThatCannotBeLookedAtStays(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.configure(dropping(bySize)) // or what is bad is copied again
	s.segments("orders/0", 2)
	if _, err := s.once(s.options()); err != nil {
		t.Fatal(err)
	}
	s.put("data/"+scrubFile, `{"version":1,"bad":[{"log":"orders/0","position":1,"text":"short"}]}`)
	s.bucket.SetHook(reads(errors.New("InvalidObjectState"), ".log"))
	opts, waits, at := s.options(), newPauses(100), &clock{}
	opts.Pause, opts.Now = waits.wait, at.now
	d := s.run(opts)
	log := tier.LogID{Table: "orders", Name: "0"}
	d.Backend.(*Daemon).suspect(log, 0, errors.New("another hash"))
	want := []tier.Truth{tier.Unknown, tier.No}
	s.until("both are passed over", func() bool {
		if got := d.truths(); !slices.Equal(got, want) {
			t.Fatalf("known: %v, want %v", got, want)
		}
		return results(t, opts, "tierd_scrubbed_segments_total")["passed"] == 2
	})
	if got := d.truths(); !slices.Equal(got, want) {
		t.Errorf("known: %v, want %v", got, want)
	}
	if d.Backend.(*Daemon).scrubber.doubt(suspicion{log, 0}) {
		t.Error("a client that tries again has it read again")
	}
	s.bucket.SetHook(nil)
	at.moves(time.Hour + time.Minute)
	s.until("both are looked at again", func() bool {
		return slices.Equal(d.truths(), []tier.Truth{tier.Yes, tier.Yes})
	})
	if err := d.stop(); err != nil {
		t.Error(err)
	}
}

// TestAStrayEntryIsInTheStatus, and so is one that the store does not take back; each is looked at
// again within the hour, also where scrubbing is off by then.
func TestAStrayEntryIsInTheStatus(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.configure(bySize)
	s.segments("orders/0", 3)
	if _, err := s.once(s.options()); err != nil {
		t.Fatal(err)
	}
	entry := func(pos string) string {
		i := slices.IndexFunc(s.store.Keys(), func(key string) bool {
			return strings.Contains(key, "/manifest/000000000000000"+pos)
		})
		return s.store.Keys()[i]
	}
	stray, lost := entry("1"), entry("2")
	sound, _ := s.store.Object(stray)
	s.store.Put(stray, []byte(strings.Replace(string(sound), `{"version":1,`, `{"version":99,`, 1)))
	s.store.Remove(lost)
	s.bucket.SetHook(fault.On(fault.OpUpload, fault.Effect{Err: fault.ErrDenied}))
	s.configure(scrubbing)
	opts, at := s.options(), &clock{}
	opts.Pause, opts.Now = newPauses(100).wait, at.now
	d := s.run(opts)
	s.until("the pass is over", func() bool { return strings.Contains(s.log.String(), backAgain) })
	got := ofLog(t, d)
	why := got[tier.CodeManifest]
	if !strings.Contains(why, stray) || !strings.Contains(why, "newer") {
		t.Errorf("status: %q", got)
	}
	if why := got[tier.CodeStoreError]; !strings.Contains(why, lost) {
		t.Errorf("status: %q", got)
	}
	n := results(t, opts, "tierd_scrub_open")
	if n["bad"] != 1 || n["object"] != 1 || n["copy"] != 0 {
		t.Errorf("gauge: %v", n)
	}
	s.configure(bySize)
	if err := d.reload(""); err != nil {
		t.Fatal(err)
	}
	s.store.Remove(stray)
	s.bucket.SetHook(nil)
	at.moves(time.Hour + time.Minute)
	s.until("nothing is open", func() bool { return len(ofLog(t, d)) == 0 })
	if now, ok := s.store.Object(stray); !ok || !slices.Equal(now, sound) {
		t.Errorf("%q, was %q", now, sound)
	}
	if n := results(t, opts, "tierd_scrub_open"); n["bad"]+n["object"] != 0 {
		t.Errorf("gauge: %v", n)
	}
	if err := d.stop(); err != nil {
		t.Error(err)
	}
}

// TestWhatIsGoneIsNotOpen: at the end of a pass that has not met it, be it an object of a manifest,
// a copy or of no log whatever. Where nothing may be written it stays, since nobody has looked.
func TestWhatIsGoneIsNotOpen(t *testing.T) {
	t.Parallel()
	for _, stale := range []bool{false, true} {
		s := newSite(t)
		s.configure(bySize)
		s.segments("orders/0", 3)
		if _, err := s.once(s.options()); err != nil {
			t.Fatal(err)
		}
		s.put("data/"+scrubFile, `{"version":1,"open":[{"log":"x"},{"log":"gone/0","position":0},
			{"log":"orders/0","position":2,"level":1},{"log":"orders/0","position":7,"copy":true}]}`)
		if stale {
			key := slices.DeleteFunc(s.store.Keys(), func(key string) bool {
				return !strings.Contains(key, "/manifest/0000000000000001-")
			})[0]
			data, _ := s.store.Object(key)
			s.store.Put(strings.Replace(key, "0000001-", "0000009-", 1), data)
			s.store.Remove(key)
		}
		s.configure(scrubbing)
		opts := s.options()
		d := s.run(opts)
		want, said := 0, "every copy in the store was read back"
		if stale {
			want, said = 1, backAgain
		}
		s.until("the pass is over", func() bool { return strings.Contains(s.log.String(), said) })
		if n := results(t, opts, "tierd_scrub_open"); n["object"] != want || n["copy"] != 0 {
			t.Errorf("stale %t: %v, want %d of orders/0", stale, n, want)
		}
		if err := d.stop(); err != nil {
			t.Error(err)
		}
	}
}

// TestAManifestGoesOnWhereItWas: after a restart the entries before are not read once more.
func TestAManifestGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.configure(bySize)
	s.segments("orders/0", 4)
	if _, err := s.once(s.options()); err != nil {
		t.Fatal(err)
	}
	s.configure(scrubbing)
	opts, waits := s.options(), newPauses(0)
	opts.Pause = waits.wait
	var up sync.Once
	failing := reads(fault.ErrDenied, "/manifest/0000000000000002-", "owner.json")
	s.bucket.SetHook(func(op fault.Op) fault.Effect {
		if strings.Contains(op.Key, "/manifest/0000000000000000-") {
			up.Do(func() { s.bucket.SetHook(failing) }) // the start is over
		}
		return fault.Effect{}
	})
	d := s.run(opts)
	s.until("it waits", func() bool { return len(waits.all()) > 0 })
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	read := map[string]int{}
	s.bucket.SetHook(func(op fault.Op) fault.Effect {
		if _, name, ok := strings.Cut(op.Key, "/manifest/000000000000000"); ok {
			mu.Lock()
			read[name[:1]]++
			mu.Unlock()
		}
		return fault.Effect{}
	})
	opts = s.options()
	opts.Pause = waits.wait
	d = s.run(opts)
	s.until("all was read back", func() bool {
		return strings.Contains(s.log.String(), "every copy in the store was read back")
	})
	mu.Lock()
	defer mu.Unlock()
	if read["0"]+read["1"] > 0 || read["2"] != 1 || read["3"] != 1 {
		t.Errorf("reads of entries: %v", read)
	}
	if err := d.stop(); err != nil {
		t.Error(err)
	}
}

// TestACheckpointCountsForItsSize: it has the facts of many entries.
func TestACheckpointCountsForItsSize(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.configure(bySize)
	s.segments("orders/0", tier.CheckpointRadix)
	if _, err := s.once(s.options()); err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, key := range s.store.Keys() {
		if strings.Contains(key, "/manifest/L1-") {
			data, _ := s.store.Object(key)
			size = len(data)
		}
	}
	s.configure(strings.Replace(scrubbing, "bytes_per_second: 0", "bytes_per_second: 1", 1))
	b, done, err := Exclusive(t.Context(), s.options())
	if err != nil {
		t.Fatal(err)
	}
	scrub := b.(*Daemon).scrubber
	if !scrub.mend(t.Context(), tier.LogID{Table: "orders", Name: "0"}) {
		t.Error("it did not come to the end")
	}
	want := scrubBurst - tier.CheckpointRadix*manifestObjectBytes - size
	got := int(scrub.limit.Tokens())
	if size < 10*manifestObjectBytes || got < want || got > want+manifestObjectBytes {
		t.Errorf("%d bytes may be read at once, want %d; the checkpoint has %d", got, want, size)
	}
	if err := done(); err != nil {
		t.Error(err)
	}
}

// TestWhatIsMoreThanAtOnceIsWaitedFor: a checkpoint may have more bytes than are read at once.
func TestWhatIsMoreThanAtOnceIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScrubber(nil)
		s.limit.SetLimit(1 << 20)
		began := time.Now()
		if err := s.spend(t.Context(), 10<<20); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began).Round(time.Second); took != 6*time.Second {
			t.Errorf("10 MiB at 1 MiB a second took %s beyond the 4 MiB that are free", took)
		}
	})
}
