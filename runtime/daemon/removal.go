package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// Remote data that go because a table is dropped, or turned off with the policy delete, are counted
// by no brake. Somebody has to accept them beforehand, by a digest of just these.
//
// A digest is 32 hexadecimal digits, a dash, and the moment for which it was made, in nanoseconds
// to the base 36. It is of every copy that was finished by then: of the ledger's id, and of each
// copy's log, position, tier epoch, range and size. A ledger hands out a position of a log once, so
// that each stands for one attempt. Copies that were finished since are not in it; so that a table
// that goes on copying can be disabled at all, as many of them are let go with the others as the
// limits allow without a question.

// digestBase is the base of the moment in a digest.
const digestBase = 36

// removal is what goes if the tables do, as it was at the moment, and how much came since.
func (d *Daemon) removal(cause tier.MoveCause, tables []string, at tier.Time) (
	out *api.Removal, since map[string]api.Amount) {
	out = &api.Removal{Cause: cause,
		GraceSeconds: int64(d.gen.Load().config.Limits.RemoteDeleteGrace / time.Second)}
	since = map[string]api.Amount{}
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%s %s\n", d.ledger.ID(), cause) // a hash takes everything
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range tables {
		t := api.LeftTable{Table: name}
		newer := since[name]
		var last tier.LogID
		var line []byte
		d.engine.EachCopy(name, func(id tier.LogID, r tier.Remote, local bool) {
			if r.FinishedAt > at {
				newer.Segments++
				newer.Bytes += r.Bytes
				return
			}
			if id != last {
				last = id
				t.Logs++
			}
			t.Segments++
			t.Bytes += r.Bytes
			if !local {
				t.OnlyRemote.Segments++
				t.OnlyRemote.Bytes += r.Bytes
			}
			line = appendCopy(line[:0], id, &r)
			_, _ = sum.Write(line)
		})
		since[name] = newer
		out.Tables = append(out.Tables, t)
	}
	out.Digest = hex.EncodeToString(sum.Sum(nil)[:16]) + "-" +
		strconv.FormatInt(int64(at), digestBase)
	return out, since
}

// appendCopy writes the line of a copy. There may be a million of them while a reload waits.
func appendCopy(line []byte, id tier.LogID, r *tier.Remote) []byte {
	line = strconv.AppendQuote(line, id.String())
	for _, n := range [...]int64{int64(r.Position), int64(r.Epoch), int64(r.Base), int64(r.Next),
		r.Bytes} {
		line = strconv.AppendInt(append(line, ' '), n, 10)
	}
	return append(line, '\n')
}

// digestTime is the moment for which a digest was made; false if it is none.
func digestTime(digest string) (tier.Time, bool) {
	_, moment, ok := strings.Cut(digest, "-")
	at, err := strconv.ParseInt(moment, digestBase, 64)
	return tier.Time(at), ok && err == nil && at > 0
}

// accepted reports whether the digest is of what would go now. Of what came since it was made more
// than the brake allows is another matter.
func (d *Daemon) accepted(digest string, cause tier.MoveCause, tables []string,
	b tier.Brake) bool {
	at, ok := digestTime(digest)
	if !ok || at > d.now() {
		return false
	}
	then, since := d.removal(cause, tables, at)
	for _, more := range since {
		if b.Exceeded(tier.BrakeWindow{Segments: more.Segments, Bytes: more.Bytes}) {
			return false
		}
	}
	return then.Digest == digest
}

// confirm refuses a generation that would let more remote data of a table go than the limits allow,
// because it turns tiering off with the policy delete, unless just these were accepted. again is
// the command that would go on with it.
func (d *Daemon) confirm(g *generation, accept, again string) error {
	r := d.disablement(g)
	if r == nil {
		return nil
	}
	var tables, beyond []string
	b := g.config.Limits.Brake()
	for _, t := range r.Tables {
		tables = append(tables, t.Table)
		if b.Exceeded(tier.BrakeWindow{Segments: t.Segments, Bytes: t.Bytes}) {
			beyond = append(beyond, fmt.Sprintf("%s (%s in the store, %s; of %s, %s, nothing is local)",
				t.Table, tier.Count(t.Segments, "segment"), tier.Count(t.Bytes, "byte"),
				tier.Count(t.OnlyRemote.Segments, "segment"), tier.Count(t.OnlyRemote.Bytes, "byte")))
		}
	}
	if len(beyond) == 0 || d.accepted(accept, r.Cause, tables, b) {
		return nil
	}
	why := "it has to be accepted"
	if accept != "" {
		why = "what was accepted is not what would go now"
	}
	return api.Errorf(api.CodeRefused, "remote.storage.enable is false and "+
		"remote.log.disable.policy is delete, which would delete the remote data of %s: more than "+
		"limits.max_delete_segments of %d or limits.max_delete_bytes of %s; %s: if that is what you "+
		"want, run: %s --accept %s", strings.Join(beyond, ", "), b.MaxSegments,
		tier.Bytes(b.MaxBytes), why, again, r.Digest)
}

// disablement is what a generation would let go by turning tiering off; nil if nothing.
func (d *Daemon) disablement(g *generation) *api.Removal {
	d.mu.Lock()
	tables := d.engine.Disables(g.settings())
	d.mu.Unlock()
	if len(tables) == 0 {
		return nil
	}
	r, _ := d.removal(tier.MoveDisabled, tables, d.now())
	r.Tables = slices.DeleteFunc(r.Tables, func(t api.LeftTable) bool { return t.Segments == 0 })
	if len(r.Tables) == 0 {
		return nil
	}
	return r
}

// dropTries and dropPause bound how long a drop waits for what is under way in the table.
const (
	dropTries = 300
	dropPause = 100 * time.Millisecond
)

// DropPlan implements api.Backend.
func (d *Daemon) DropPlan(_ context.Context, table string) (*api.Removal, error) {
	if err := d.droppable(table); err != nil {
		return nil, err
	}
	r, _ := d.removal(tier.MoveDropped, []string{table}, d.now())
	return r, nil
}

// droppable says why a table cannot be dropped.
func (d *Daemon) droppable(table string) error {
	d.mu.Lock()
	v := d.engine.Table(table)
	d.mu.Unlock()
	switch {
	case !v.Opened:
		return api.Errorf(api.CodeNotFound, "table %q: the ledger does not have it, so nothing of it "+
			"was ever copied", table)
	case v.Known:
		return api.Errorf(api.CodeRefused, "table %q is governed by %s: to drop it remove its entry "+
			"from the configuration first; to delete its remote data and keep it, set "+
			"remote.storage.enable: false and remote.log.disable.policy: delete", table, v.Config.Entry)
	case v.State.Dropped != 0 && v.State.State == tier.Disabling:
		return api.Errorf(api.CodeRefused, "table %q was dropped at %s already, and it goes on", table,
			v.State.Dropped)
	}
	return nil
}

// Drop implements api.Backend. Durable sub-step: TableDropped; everything else follows from it, in
// this process or in the next.
func (d *Daemon) Drop(ctx context.Context, table, accept string) (*api.Removal, error) {
	d.reloadMu.Lock() // what governs the table stays as it is
	defer d.reloadMu.Unlock()
	if err := d.droppable(table); err != nil {
		return nil, err
	}
	if err := d.quiet(ctx, table); err != nil {
		return nil, err
	}
	r, _ := d.removal(tier.MoveDropped, []string{table}, d.now())
	// A frozen table copies nothing: there is nothing that could have come since.
	if !d.accepted(accept, tier.MoveDropped, []string{table}, tier.Brake{}) {
		why := "has to be accepted"
		if accept != "" {
			why = "is not what was accepted"
		}
		return nil, api.Errorf(api.CodeRefused, "the removal of %s (%s) of the table %q "+
			"from the store %s: if that is what you want, run: tierd drop %s --accept %s",
			tier.Count(r.Tables[0].Segments, "segment"), tier.Count(r.Tables[0].Bytes, "byte"), table,
			why, table, r.Digest)
	}
	// Whoever asked may go; half of it would be news to the engine.
	_, err := d.ledger.Append(context.WithoutCancel(ctx),
		tier.TableDropped{Table: table, At: d.now()})
	if errors.Is(err, tier.ErrRefused) {
		return nil, api.Errorf(api.CodeRefused, "%v", err)
	}
	if err != nil {
		d.die(err)
		return nil, err
	}
	d.log.Warn("table dropped", "table", table, "segments", r.Tables[0].Segments,
		"bytes", r.Tables[0].Bytes, "digest", accept)
	d.step(engine.TableDropped{State: d.ledger.Table(table)})
	return r, nil
}

// quiet waits until nothing is under way that deletes something of the table. As long as it is
// frozen nothing new begins.
func (d *Daemon) quiet(ctx context.Context, table string) error {
	for range dropTries {
		d.mu.Lock()
		busy := d.engine.Busy(table)
		d.mu.Unlock()
		if !busy {
			return nil
		}
		if err := pause(ctx, dropPause); err != nil {
			return err
		}
	}
	return api.Errorf(api.CodeUnavailable, "table %q: a deletion is still under way; try again", table)
}
