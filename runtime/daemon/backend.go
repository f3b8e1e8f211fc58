package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/exec"
	"github.com/tierd/tierd/runtime/tier"
)

var _ api.Backend = (*Daemon)(nil)

// Health implements api.Backend.
func (d *Daemon) Health(context.Context) (*api.Health, error) {
	h := &api.Health{Healthy: true, Ready: d.ready.Load(), Reasons: []api.Reason{}}
	if err := d.ledger.Err(); err != nil {
		h.Healthy, h.Ready = false, false
		h.Reasons = append(h.Reasons, api.Reason{Code: tier.CodeUnreadable, Text: err.Error(),
			Alarm: true})
	}
	if d.stopping.Load() {
		h.Ready = false
	}
	return h, nil
}

// generation describes the one that is in force.
func (d *Daemon) generation(g *generation) api.Generation {
	return api.Generation{Number: g.number, Config: g.config.Path,
		LoadedAt: api.Time(tier.TimeOf(g.loadedAt)), PolicyDigest: g.policies.Digest(),
		Plugins: g.pluginsInForce(), Error: d.reload.Load()}
}

// Status implements api.Backend.
func (d *Daemon) Status(context.Context) (*api.Status, error) {
	g := d.gen.Load()
	s := &api.Status{
		Version: d.opts.Version, LedgerID: d.ledger.ID(), Running: d.running,
		Ready: d.ready.Load() && !d.stopping.Load(), Now: api.Time(d.now()),
		Generation: d.generation(g),
		Reasons:    []api.Reason{}, Sources: d.sourceStatus(), Tables: []api.Table{}, Logs: []api.Log{},
	}
	if d.running {
		s.StartedAt = api.Time(tier.TimeOf(d.startedAt))
	}
	if d.kafka != nil {
		s.Kafka = new(d.kafka.listener.Addr().String())
	}
	if why := d.pause.Load(); why != nil {
		s.Reasons = append(s.Reasons, api.ReasonOf(*why, false))
	}
	for _, why := range slices.Concat(d.policyReasons(), d.factReasons(), d.pluginReasons(),
		d.scrubber.reasons()) {
		s.Reasons = append(s.Reasons, api.ReasonOf(why, true))
	}
	open := d.scrubber.openReasons()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range d.engine.Logs() {
		if n := len(s.Tables); n == 0 || s.Tables[n-1].Table != id.Table {
			s.Tables = append(s.Tables, tableStatus(g.config, d.engine.Table(id.Table), id.Table))
		}
		if v, ok := d.engine.Log(id); ok {
			s.Logs = append(s.Logs, logStatus(&v, open[id]))
		}
	}
	return s, nil
}

func (d *Daemon) sourceStatus() []api.Source {
	out := make([]api.Source, 0, len(d.sources))
	for _, s := range d.sources {
		s.mu.Lock()
		x := api.Source{Name: s.Name, Layout: s.Layout, Path: s.Path, LocalDelete: s.LocalDelete,
			Logs: int64(s.logs), ScannedAt: api.Time(tier.TimeOf(s.scannedAt)),
			Reasons: []api.Reason{}}
		if s.trouble != nil {
			x.Reasons = append(x.Reasons, api.ReasonOf(*s.trouble, true))
		}
		for _, p := range s.problems {
			r := p.Reason
			r.Text = readable(p.Path) + ": " + readable(r.Text)
			x.Reasons = append(x.Reasons, api.ReasonOf(r, true))
		}
		s.mu.Unlock()
		for _, why := range s.topics.wrong() {
			x.Reasons = append(x.Reasons, api.ReasonOf(why, true))
		}
		if why := s.watcher.Degraded(); why != nil {
			x.Reasons = append(x.Reasons, api.ReasonOf(*why, false))
		}
		out = append(out, x)
	}
	return out
}

// readable is a text with the name of a file in it, which may have any bytes: where it would break
// the line that it stands in, or is no text at all, it is quoted.
func readable(s string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	if utf8.ValidString(s) && !strings.ContainsFunc(s, odd) {
		return s
	}
	return strconv.Quote(s)
}

func tableStatus(c *config.Config, v engine.TableView, name string) api.Table {
	b := c.Limits.Brake()
	t := api.Table{Table: name, TierState: v.State.State, TierEpoch: v.State.Epoch,
		Brake: api.Brake{Since: api.Time(v.State.Window.Since), Segments: v.State.Window.Segments,
			Bytes: v.State.Window.Bytes, MaxSegments: b.MaxSegments, MaxBytes: b.MaxBytes,
			PerSeconds: int64(b.Per.Seconds())},
		Dropped: api.Time(v.State.Dropped), Outstanding: api.Amount{
			Segments: v.Outstanding.Segments, Bytes: v.Outstanding.Bytes},
		Settings: []api.Setting{}}
	if v.Known {
		t.Entry = &v.Config.Entry
		for _, s := range c.Settings(name) {
			t.Settings = append(t.Settings, api.Setting{Key: s.Key, Value: s.Value, Origin: s.Origin})
		}
	}
	if v.State.Paused != nil {
		r := api.ReasonOf(*v.State.Paused, true)
		t.Paused = &r
	}
	return t
}

// logStatus tells of a log, and what a scrub left open of it.
func logStatus(v *engine.LogView, open []tier.Reason) api.Log {
	l := api.Log{Log: v.ID.String(), Source: v.Source, Layout: v.Layout, TierState: v.State,
		TierEpoch: v.Epoch, Local: extent(v.Local), Remote: extent(v.Remote),
		Lag: api.Lag{Segments: v.Uncopied.Segments, Bytes: v.Uncopied.Bytes,
			Oldest: api.Time(v.OldestLag)},
		Holes: []api.Hole{}, Reasons: []api.Reason{}}
	if v.Opened {
		l.LogStart, l.CopiedOffset = &v.LogStart, &v.Copied
	}
	for _, h := range v.Holes {
		l.Holes = append(l.Holes, api.Hole{Base: h.Base, Next: h.Next, Cause: h.Cause,
			At: api.Time(h.At)})
	}
	for _, r := range slices.Concat(v.Alarms, open) {
		l.Reasons = append(l.Reasons, api.ReasonOf(r, true))
	}
	for _, r := range v.Waiting {
		l.Reasons = append(l.Reasons, api.ReasonOf(r, false))
	}
	return l
}

func extent(x engine.Extent) api.Extent {
	return api.Extent{Start: x.Base, End: x.Next, Segments: x.Segments, Bytes: x.Bytes}
}

// segments reads the engine's list of a log, and the log's view.
func (d *Daemon) segments(id tier.LogID) ([]engine.SegmentView, engine.LogView, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	list, ok := d.engine.Segments(id)
	v, _ := d.engine.Log(id)
	if !ok {
		return nil, v, api.Errorf(api.CodeNotFound, "log %q: neither a source nor the ledger has it", id)
	}
	return list, v, nil
}

// Segments implements api.Backend.
func (d *Daemon) Segments(_ context.Context, id tier.LogID) (*api.Listing, error) {
	list, _, err := d.segments(id)
	if err != nil {
		return nil, err
	}
	out := &api.Listing{Log: id.String(), Segments: make([]api.Segment, 0, len(list))}
	for i := range list {
		s, err := d.segment(id, &list[i])
		if err != nil {
			return nil, err
		}
		out.Segments = append(out.Segments, s)
	}
	return out, nil
}

func (d *Daemon) segment(id tier.LogID, v *engine.SegmentView) (api.Segment, error) {
	s := api.Segment{Base: v.Base, Next: v.Next, Bytes: v.Bytes,
		MaxTimestamp: api.Time(v.MaxTime), ModTime: api.Time(v.ModTime),
		Tiers: []api.Tier{}, State: api.SegmentState(v.State), Reasons: []api.Reason{}}
	if v.Local {
		s.Tiers = append(s.Tiers, api.TierLocal)
	}
	for _, r := range v.Reasons {
		s.Reasons = append(s.Reasons, api.ReasonOf(r, v.Alarming(r)))
	}
	if !v.Remote {
		return s, nil
	}
	s.Tiers = append(s.Tiers, api.TierRemote)
	c, err := d.ledger.Copy(id, v.Position)
	if err != nil {
		return s, err
	}
	s.CopiedAt = api.Time(c.FinishedAt)
	for _, f := range c.Content.Files {
		s.Files = append(s.Files, api.SegmentFile{Name: f.Name, Bytes: f.Size, SHA256: f.SHA256})
	}
	if len(c.Content.Files) > 0 {
		file := c.Content.Files[0]
		key, err := d.store.Keys().File(c.Object(id, file.Name))
		if err != nil {
			return s, err
		}
		s.SHA256, s.Object = &file.SHA256, &key
	}
	return s, nil
}

// Explain implements api.Backend.
func (d *Daemon) Explain(ctx context.Context, id tier.LogID, o tier.Offset) (
	*api.Explanation, error) {
	return answered(ctx, func(ctx context.Context) (*api.Explanation, error) {
		return d.explain(ctx, id, o)
	})
}

// whyLeft says how an offset below the start left the log, as far as the ledger still knows.
func (d *Daemon) whyLeft(v *engine.LogView, o tier.Offset) tier.Reason {
	code, how := tier.CodeExpired, "has left it"
	state, _ := d.ledger.Log(v.ID)
	over := func(m tier.StartMove) bool { return m.Start > o }
	if i := slices.IndexFunc(state.Moves, over); i >= 0 { // they ascend
		switch state.Moves[i].Cause {
		case tier.MoveDisabled:
			code = tier.CodeTieringDisabled
			how = "left it when tiering was turned off with the policy delete"
		case tier.MoveDropped:
			code, how = tier.CodeTieringDisabled, "left it when the table was dropped"
		}
	}
	return tier.Reason{Code: code,
		Text: fmt.Sprintf("the log begins at %d: the offset %s", v.LogStart, how)}
}

func (d *Daemon) explain(ctx context.Context, id tier.LogID, o tier.Offset) (
	*api.Explanation, error) {
	list, view, err := d.segments(id)
	if err != nil {
		return nil, err
	}
	x := &api.Explanation{Log: id.String(), Offset: o, Tiers: []api.Tier{}, Reasons: []api.Reason{},
		Decisions: []api.Decision{}}
	if view.Opened {
		x.CopiedOffset = &view.Copied
	}
	for _, r := range slices.Concat(view.Alarms, d.scrubber.openReasons()[id]) {
		x.Reasons = append(x.Reasons, api.ReasonOf(r, true))
	}
	v := holder(list, o, view.LocalEnd)
	if v == nil && view.Opened && o < view.LogStart {
		x.Reasons = append(x.Reasons, api.ReasonOf(d.whyLeft(&view, o), false))
		return x, nil
	}
	if v == nil {
		return nil, api.Errorf(api.CodeNotFound, "log %q has no offset %d: local [%d, %d), remote "+
			"[%d, %d)", id, o, view.Local.Base, view.Local.Next, view.Remote.Base, view.Remote.Next)
	}
	s, err := d.segment(id, v)
	if err != nil {
		return nil, err
	}
	x.Segment, x.Tiers = &s, s.Tiers
	d.explainAge(x, v)
	if v.Local {
		decision, err := d.explainLocal(ctx, id, view, v)
		if err != nil {
			return nil, err
		}
		x.Decisions = append(x.Decisions, decision)
	}
	if v.Remote {
		decision, err := d.explainRemote(ctx, id, view, v)
		if err != nil {
			return nil, err
		}
		x.Decisions = append(x.Decisions, decision)
	}
	return x, nil
}

// explainRemote asks what an expiry would be asked. A segment that is not the oldest of its log in
// the store stays in any case, and is told for how long it would by itself.
func (d *Daemon) explainRemote(ctx context.Context, id tier.LogID, view engine.LogView,
	v *engine.SegmentView) (api.Decision, error) {
	out := api.Decision{Action: tier.DeleteRemote, Verdict: api.Keep, Reasons: []api.Reason{}}
	if why := view.Frozen; why != nil { // there are no settings to ask about
		out.Reasons = append(out.Reasons, api.ReasonOf(*why, false))
		return out, nil
	}
	d.mu.Lock()
	_, all, _ := d.engine.Plan(id)
	d.mu.Unlock()
	i := slices.IndexFunc(all.Segments, func(c engine.RemoteCandidate) bool {
		return c.Position == v.Position
	})
	if i < 0 {
		return out, nil
	}
	oldest := all.Segments[0].Range
	all.Segments = all.Segments[i : i+1]
	answers, err := d.exec.PlanRemote(ctx, all, exec.Question{})
	if err != nil {
		return out, err
	}
	asked := answers[0]
	if i > 0 {
		out.Reasons = append(out.Reasons, api.ReasonOf(tier.Reason{Code: tier.CodePrefixBlocked,
			Text: fmt.Sprintf("remote segment %s has to go first", oldest)}, false))
	} else if asked[0].Verdict.Delete {
		out.Verdict = api.Delete
	}
	out.Due = api.Time(asked[0].Verdict.Due)
	for _, r := range asked[0].Verdict.Reasons {
		out.Reasons = append(out.Reasons, api.ReasonOf(r, false))
	}
	return out, nil
}

// holder finds the segment that holds the offset; a local one goes first, and a hole last.
func holder(list []engine.SegmentView, o, localEnd tier.Offset) *engine.SegmentView {
	var found *engine.SegmentView
	last := len(list) - 1
	for last >= 0 && !list[last].Local {
		last--
	}
	for i := range list {
		v := &list[i]
		r := v.Range
		if i == last && v.State == "active" {
			r.Next = max(r.Next, localEnd)
			if r.Empty() { // a plain file that nothing follows: nobody knows where it ends
				r.Next = o + 1
			}
		}
		if r.Contains(o) && (found == nil || v.Local && !found.Local || found.State == "hole") {
			found = v
		}
	}
	return found
}

func (d *Daemon) explainAge(x *api.Explanation, v *engine.SegmentView) {
	birth, from := v.MaxTime, "record"
	if tolerance := d.gen.Load().exec.Tolerance; birth <= 0 || birth > d.now()+tolerance {
		birth, from = v.ModTime, "mtime"
	}
	if birth > 0 {
		age := max(int64(d.now()-birth), 0)
		x.AgeNS, x.AgeSource = &age, &from
	}
}

// explainLocal asks what a deletion would be asked, on the same fresh facts, and deletes nothing.
// What the engine would not even propose is answered by why it would not.
func (d *Daemon) explainLocal(ctx context.Context, id tier.LogID, view engine.LogView,
	v *engine.SegmentView) (api.Decision, error) {
	out := api.Decision{Action: tier.DeleteLocal, Verdict: api.Keep, Reasons: []api.Reason{}}
	if why := view.Blocked; why != nil { // guard and policies are not asked before that is over
		out.Reasons = append(out.Reasons, api.ReasonOf(*why, false))
		return out, nil
	}
	if !v.Remote || !v.First {
		for _, r := range v.Reasons {
			out.Reasons = append(out.Reasons, api.ReasonOf(r, false))
			out.Due = api.Time(r.Until)
		}
		if !v.First || !view.Opened { // of a log that the ledger does not have there are no facts
			return out, nil
		}
	}
	f, candidate := d.proposal(id, &view, v)
	verdict, err := d.exec.Explain(ctx, f, candidate)
	if err != nil {
		return out, err
	}
	if verdict.Delete {
		out.Verdict = api.Delete
	}
	if v.Kept != nil {
		out.Verdict = api.Keep
		out.Reasons = append(out.Reasons, api.ReasonOf(*v.Kept, false))
	}
	out.Due = max(out.Due, api.Time(verdict.Due))
	said := out.Reasons // in the engine's words; of what the gate says several may have one code
	for _, r := range verdict.Reasons {
		if !slices.ContainsFunc(said, func(x api.Reason) bool { return x.Code == r.Code }) {
			out.Reasons = append(out.Reasons, api.ReasonOf(r, false))
		}
	}
	return out, nil
}

// Resume implements api.Backend.
func (d *Daemon) Resume(ctx context.Context, table string) error {
	d.mu.Lock()
	paused := d.engine.Table(table).State.Paused
	d.mu.Unlock()
	if !slices.ContainsFunc(d.tables(), func(t string) bool { return t == table }) {
		return api.Errorf(api.CodeNotFound, "table %q: neither a source nor the ledger has it", table)
	}
	if paused == nil {
		return api.Errorf(api.CodeRefused, "table %q is not paused", table)
	}
	_, err := d.ledger.Append(ctx, tier.TableResumed{Table: table, At: d.now()})
	if errors.Is(err, tier.ErrRefused) {
		return api.Errorf(api.CodeRefused, "%v", err)
	}
	if err != nil {
		d.die(err)
		return err
	}
	d.log.Info("resumed", "table", table)
	d.step(engine.Resumed{Table: table})
	return nil
}

// Reload implements api.Backend.
func (d *Daemon) Reload(_ context.Context, accept string) (*api.Generation, error) {
	g, err := d.reloadGeneration(accept)
	switch {
	case err == nil:
		return new(d.generation(g)), nil
	case errors.As(err, new(*api.Error)):
		return nil, err
	}
	return nil, api.Errorf(api.CodeConfig, "%v", err)
}

// tables are the names of all tables, ascending.
func (d *Daemon) tables() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []string
	for _, id := range d.engine.Logs() {
		if n := len(out); n == 0 || out[n-1] != id.Table {
			out = append(out, id.Table)
		}
	}
	return out
}
