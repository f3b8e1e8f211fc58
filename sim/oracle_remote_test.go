package sim

import (
	"context"
	"testing"
	"time"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/tier"
)

// TestTheOracleSeesRemoteCrimes commits what must not become of remote data, in the world of
// TestTheOracleSees.
func TestTheOracleSeesRemoteCrimes(t *testing.T) {
	t.Parallel()
	week := 7 * 24 * time.Hour
	seen(t, map[string]crime{
		"an object goes whose copy is part of the log": {StartFirst, func(r *rig) {
			r.deletes(r.object(0))
		}},
		"an object goes before the manifest says that the start moved": {StartFirst, func(r *rig) {
			r.w.Advance(week + 2*time.Hour)
			r.movesStart(10)
			r.w.Advance(time.Hour)
			r.deletes(r.object(0))
		}},
		"an object goes before readers had the grace": {StartFirst, func(r *rig) {
			r.expired(week)
			r.w.Advance(9 * time.Minute)
			r.deletes(r.object(0))
		}},
		"an object goes that no audit record announced": {PersistBeforeAct, func(r *rig) {
			r.expired(week)
			r.w.Advance(10 * time.Minute)
			r.removes(r.object(0))
		}},
		"an object goes whose attempt is under way": {OrphanNeverLive, func(r *rig) {
			r.deletes(r.uploading())
		}},
		"an orphan goes before it is old enough": {OrphanNeverLive, func(r *rig) {
			key := r.key(tier.AttemptID{9})
			r.w.Objects.Put(key, []byte("x"))
			r.w.Advance(23 * time.Hour)
			r.deletes(key)
		}},
		"what an abandoned attempt left goes before its time": {OrphanNeverLive, func(r *rig) {
			key := r.uploading()
			r.w.Advance(23 * time.Hour)
			state, _ := r.w.Ledger().Log(orders)
			r.appends(tier.CopyAbandoned{Log: orders, Position: state.Next - 1, At: r.w.Now})
			r.w.Advance(23 * time.Hour)
			r.deletes(key)
		}},
		"an object goes that is none of tierd's": {OrphanNeverLive, func(r *rig) {
			r.w.Objects.Put("somebody/else.txt", []byte("x"))
			r.deletes("somebody/else.txt")
		}},
		"an object goes while deletions are paused": {Gated, func(r *rig) {
			r.w.Paused = true
			r.deletes(r.object(0))
		}},
		"the start moves while the store's clock is astray": {Gated, func(r *rig) {
			r.w.Config.MaxClockStep, r.w.Skew = week, time.Hour
			r.w.Advance(week + time.Minute)
			r.allows(tier.DeleteRemote, 0)
			r.movesStart(10)
		}},
		"the start moves over a segment that no policy let go": {Gated, func(r *rig) {
			r.w.Advance(week + time.Minute)
			r.movesStart(10)
		}},
		"the start moves over a segment that is too young": {MinimumAge, func(r *rig) {
			r.w.Advance(week - time.Hour)
			r.movesStart(10)
		}},
		"the start moves over a segment that is too young, and that its owner removed": {MinimumAge,
			func(r *rig) {
				r.w.Advance(week - time.Hour)
				r.do(r.w.Remove(orders, 0))
				r.movesStart(10)
			}},
		"the start moves over a segment without which the log is below its limit": {MinimumAge,
			func(r *rig) {
				r.w.Advance(week - time.Hour)
				r.limited(1 + sizeAt(10)) // as if it were enough to begin above it
				r.movesStart(10)
			}},
		"the start moves over what counts twice, since it was copied twice": {MinimumAge,
			func(r *rig) {
				r.w.Advance(time.Minute)
				r.do(r.w.Write(orders, 10, Content(orders, 10, 2)))
				r.run()
				r.limited(1 + sizeAt(10) + sizeAt(20))
				r.movesStart(10)
			}},
		"the start moves over two, of which one is too young": {MinimumAge, func(r *rig) {
			r.w.Advance(time.Hour)
			r.do(r.w.Write(orders, 10, Content(orders, 10, 2)))
			r.run()
			r.w.Advance(week - time.Minute)
			r.movesStart(20)
		}},
	})
}

// TestTheOracleSeesFalseOutcomes: the audit log says of a removal what the store did not.
func TestTheOracleSeesFalseOutcomes(t *testing.T) {
	t.Parallel()
	removal := func(answer fault.Effect, asks bool, result tier.OutcomeResult) crime {
		return crime{AuditTrue, func(r *rig) {
			r.expired(7 * 24 * time.Hour)
			r.w.Advance(time.Hour)
			key := r.object(0)
			seq := r.announceObject(key)
			if asks {
				r.w.Bucket.SetHook(func(op fault.Op) fault.Effect { return answer })
				r.does(func() error {
					_ = heard{r.w.door, r.w}.Delete(context.Background(), key)
					return nil
				})
				r.w.Bucket.SetHook(nil)
			}
			r.concludes(seq, result)
		}}
	}
	failed := fault.Effect{Err: errInjected}
	seen(t, map[string]crime{
		"deleted, and the store failed": removal(failed, true, tier.OutcomeDeleted),
		"deleted, and the store failed when it had done it": removal(
			fault.Effect{Err: errInjected, Applied: true}, true, tier.OutcomeDeleted),
		"deleted, and the store was not asked":    removal(failed, false, tier.OutcomeDeleted),
		"kept, and the store has deleted it":      removal(fault.Effect{}, true, tier.OutcomeKept),
		"kept, and the store may have deleted it": removal(failed, true, tier.OutcomeKept),
	})
	for result, answer := range map[tier.OutcomeResult]fault.Effect{tier.OutcomeDeleted: {},
		tier.OutcomeUnknown: failed} {
		if said := judged(t, removal(answer, true, result).commit); len(said) > 0 {
			t.Errorf("%s, as it is: %v", result, said)
		}
	}
}

// TestTheOracleLetsRemoteDataGo as it should: after their TTL, the move and the grace.
func TestTheOracleLetsRemoteDataGo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.copied(2)
	r.expired(7 * 24 * time.Hour)
	r.w.Advance(10 * time.Minute)
	r.deletes(r.object(0))
	r.oracle.changed = true
	r.oracle.rest()
	if v := r.oracle.Violations(); len(v) > 0 {
		t.Error(v)
	}
}

// TestTheOracleSeesWhatTheClockForbids commits what leaves no copy, after the wall clock took a
// step that nobody accepted.
func TestTheOracleSeesWhatTheClockForbids(t *testing.T) {
	t.Parallel()
	week := 7 * 24 * time.Hour
	seen(t, map[string]crime{
		"the start moves after the clock leapt": {Gated, func(r *rig) {
			r.steps(week)
			r.w.Advance(week + time.Minute)
			r.allows(tier.DeleteRemote, 0)
			r.movesStart(10)
		}},
		"the start moves after the clock leapt twice, and a process saw it": {Gated, func(r *rig) {
			r.steps(4 * 24 * time.Hour)
			for range 2 {
				r.w.Advance(5 * 24 * time.Hour)
				r.do(r.w.tendClock())
			}
			r.allows(tier.DeleteRemote, 0)
			r.movesStart(10)
		}},
		"the start moves, and that the clock is right was not recorded": {Gated, func(r *rig) {
			r.steps(week)
			r.w.Advance(week + time.Minute)
			r.w.Watch = func(Point) Fate { return Fail }
			if err := r.w.AcceptClock(); err == nil {
				r.t.Fatal("the ledger does not fail")
			}
			r.w.Watch = nil
			r.w.Kill()
			r.do(r.w.Start())
			r.allows(tier.DeleteRemote, 0)
			r.movesStart(10)
		}},
		"the start moves after the clock went far back": {Gated, func(r *rig) {
			r.steps(time.Hour)
			r.do(r.w.Elapse(week + time.Minute))
			r.w.Advance(-2 * time.Hour)
			r.allows(tier.DeleteRemote, 0)
			r.movesStart(10)
		}},
		"an object goes after the clock leapt": {Gated, func(r *rig) {
			r.expired(week)
			r.steps(week)
			r.w.Advance(week + time.Minute)
			r.deletes(r.object(0))
		}},
	})
}

// steps bounds the steps of the wall clock, which a process has looked at.
func (r *rig) steps(most time.Duration) {
	r.t.Helper()
	r.w.Config.MaxClockStep = most
	r.do(r.w.tendClock())
}

// TestTheOracleTakesAClockThatIsVouchedFor: it went on before the eyes of a process, or an operator
// accepted it.
func TestTheOracleTakesAClockThatIsVouchedFor(t *testing.T) {
	t.Parallel()
	week := 7 * 24 * time.Hour
	for name, passes := range map[string]func(*rig){
		"it went on": func(r *rig) { r.do(r.w.Elapse(week + time.Minute)) },
		"accepted": func(r *rig) {
			r.w.Advance(week + time.Minute)
			r.do(r.w.AcceptClock())
		},
		"accepted, and the process is told that it failed": func(r *rig) {
			r.w.Advance(week + time.Minute)
			r.w.Watch = func(Point) Fate { return FailAfter }
			if err := r.w.AcceptClock(); err == nil {
				r.t.Fatal("the ledger does not fail")
			}
			r.w.Watch = nil
			r.w.Kill()
			r.do(r.w.Start())
		},
	} {
		if said := judged(t, func(r *rig) {
			r.steps(24 * time.Hour)
			passes(r)
			r.allows(tier.DeleteRemote, 0)
			r.movesStart(10)
		}); len(said) > 0 {
			t.Errorf("%s: %v", name, said)
		}
	}
}

// TestTheOracleLetsGoWhatIsBeyondALimit: as long as what stays fills table.log.bytes, nothing has
// to be old.
func TestTheOracleLetsGoWhatIsBeyondALimit(t *testing.T) {
	t.Parallel()
	for _, limit := range []int64{0, sizeAt(10)} {
		if said := judged(t, func(r *rig) {
			r.limited(limit)
			r.allows(tier.DeleteRemote, 0)
			r.movesStart(10)
		}); len(said) > 0 {
			t.Errorf("with a limit of %d bytes: %v", limit, said)
		}
	}
}

// sizeAt is how long the segment is that the log of the tests has there.
func sizeAt(base tier.Offset) int64 { return int64(len(Content(orders, base, 1))) }

// limited bounds by their size what tables have in the store.
func (r *rig) limited(bytes int64) {
	r.t.Helper()
	r.tables(func(t *tier.Table) { t.Bytes = tier.Limit{Set: true, Value: bytes} })
	r.w.process.queue = nil // what it would do now is none of the crime
}

// deletes lets the process announce that it removes an object, and remove it.
func (r *rig) deletes(key string) {
	r.t.Helper()
	r.announceObject(key)
	r.removes(key)
}

// announceObject puts a removal on record.
func (r *rig) announceObject(key string) (seq uint64) {
	r.t.Helper()
	r.does(func() (err error) {
		seq, err = r.w.process.audit.Intend(context.Background(), tier.Deletion{
			Action: tier.DeleteRemote, Log: orders, Object: key, At: r.w.Now})
		return err
	})
	return seq
}

// removes lets the process remove an object.
func (r *rig) removes(key string) {
	r.t.Helper()
	r.does(func() error { return r.w.door.Delete(context.Background(), key) })
}

// movesStart puts an expiry on record.
func (r *rig) movesStart(to tier.Offset) {
	r.t.Helper()
	r.appends(tier.StartMoved{Log: orders, Start: to, Cause: tier.MoveExpired, At: r.w.Now,
		Expired: tier.RangeSet{{Base: 0, Next: to}}})
}

// expired lets the first segment's time be over, moves the start, and publishes that.
func (r *rig) expired(ttl time.Duration) {
	r.t.Helper()
	r.w.Advance(ttl + time.Minute)
	r.allows(tier.DeleteRemote, 0)
	r.movesStart(10)
	ledger := r.w.Ledger()
	state, _ := ledger.Log(orders)
	pos := state.Unpublished[0]
	facts, err := ledger.Facts(orders, pos, pos+1)
	r.do(err)
	r.does(func() error {
		return r.w.process.store.PutFact(context.Background(), orders, tier.AttemptID{}, facts[0])
	})
	r.appends(tier.Published{Log: orders, Position: pos})
}

// uploading begins an attempt, and stores its file.
func (r *rig) uploading() (key string) {
	r.t.Helper()
	a := tier.Attempt{ID: tier.AttemptID{7}, Epoch: 1, Names: []string{"x.log"},
		Range: tier.Range{Base: 20, Next: 30}}
	r.appends(tier.CopyStarted{Log: orders, Attempt: a})
	key = r.key(a.ID)
	r.w.Objects.Put(key, []byte("x"))
	return key
}

// TestHolesOfLedgerAndManifest: neither has one that the other lacks, but for what a copy has or
// had, and where all copies were told to leave.
func TestHolesOfLedgerAndManifest(t *testing.T) {
	t.Parallel()
	hole := tier.Fact{Epoch: 1, Hole: &tier.Hole{Range: tier.Range{Base: 10, Next: 20}}}
	over := tier.Fact{Epoch: 1, Add: &tier.Copy{Content: tier.Content{
		Range: tier.Range{Base: 0, Next: 20}}}}
	on, off := tier.TableState{State: tier.Enabled},
		tier.TableState{State: tier.Disabled, Policy: tier.PolicyDelete}
	retained := tier.TableState{State: tier.Disabled, Policy: tier.PolicyRetain}
	expired := tier.RangeSet{}.Add(over.Add.Content.Range)
	for name, c := range map[string]struct {
		ledger, manifest []tier.Fact
		expired          tier.RangeSet
		fresh            tier.TierEpoch
		table            tier.TableState
		want             bool
	}{
		"both have it":               {[]tier.Fact{hole}, []tier.Fact{hole}, nil, 0, on, true},
		"the manifest lacks it":      {[]tier.Fact{hole}, nil, nil, 0, on, false},
		"the ledger lacks it":        {nil, []tier.Fact{hole}, nil, 0, on, false},
		"a copy has it":              {[]tier.Fact{over}, []tier.Fact{hole, over}, nil, 0, on, true},
		"a copy had it, and expired": {nil, []tier.Fact{hole}, expired, 0, on, true},
		"of an epoch that is over":   {nil, []tier.Fact{hole}, nil, 2, on, true},
		"of what is retained":        {nil, []tier.Fact{hole}, nil, 0, retained, false},
		"of what has left":           {nil, []tier.Fact{hole}, nil, 0, off, true},
		"left, and not told":         {[]tier.Fact{hole}, nil, nil, 0, off, false},
	} {
		l := ledgerLog{facts: c.ledger, state: tier.LogState{Expired: c.expired, Fresh: c.fresh}}
		if got := l.sameHoles(c.manifest, c.table); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
