package offsetstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/runtime/tier"
)

// answer is what Append said to one of several callers.
type answer struct {
	pos tier.Position
	err error
}

// goAppend appends in a goroutine of its own.
func (b *box) goAppend(ctx context.Context, r tier.Record) <-chan answer {
	out := make(chan answer, 1)
	go func() {
		pos, err := b.ledger.Append(ctx, r)
		out <- answer{pos, err}
	}()
	return out
}

// inBubble runs a test on a medium whose commits wait for the test. Within, synctest.Wait returns
// once every caller of Append waits.
func inBubble(t *testing.T, disk Disk, test func(b *box, g *gated)) {
	b := open(t, disk)
	b.append(opened(orders0, 0))
	b.ledger.Close()
	synctest.Test(t, func(t *testing.T) {
		b := &box{T: t, disk: disk}
		var g *gated
		b.open(func(m offsets.Medium) offsets.Medium {
			g = &gated{Medium: m, begin: make(chan struct{})}
			return g
		})
		began := time.Now()
		test(b, g)
		b.same(time.Duration(0), time.Since(began)) // nobody waited for time to pass
		if err := b.ledger.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
	})
	b.open(nil)
	b.reopens()
}

func testGroup(t *testing.T, disk Disk) {
	inBubble(t, disk, func(b *box, g *gated) {
		ctx := context.Background()
		lone := b.goAppend(ctx, tier.ClockSeen{At: t0})
		synctest.Wait()
		var members []<-chan answer
		for _, r := range []tier.Record{
			started(orders0, attempt(1, span(0, 10))),
			started(orders0, attempt(2, span(10, 10))), // empty
			started(orders0, attempt(1, span(0, 10))),  // known
			opened(orders1, 7),
			hole(orders1, span(7, 9)),
			started(orders0, attempt(3, span(0, 10))),
		} {
			members = append(members, b.goAppend(ctx, r))
			synctest.Wait()
		}
		g.begin <- struct{}{}
		b.same(nil, (<-lone).err)
		g.begin <- struct{}{}
		var got []answer
		for _, m := range members {
			got = append(got, <-m)
		}
		for _, i := range []int{1, 2} {
			if !errors.Is(got[i].err, tier.ErrRefused) {
				b.Errorf("member %d: got error %v, want a refusal", i, got[i].err)
			}
		}
		for i, pos := range map[int]tier.Position{0: 0, 3: 0, 4: 0, 5: 1} {
			b.same(answer{pos, nil}.String(), got[i].String())
		}
		b.same(2, g.commits)
		b.copied(orders1, 9)
	})
}

func (a answer) String() string { return fmt.Sprintf("%d, %v", a.pos, a.err) }

func testGroupFails(t *testing.T, disk Disk) {
	b := open(t, disk)
	b.append(opened(orders0, 0))
	b.copies(orders0, 9, span(0, 10)) // so that no position is 0 any more
	b.ledger.Close()
	synctest.Test(t, func(t *testing.T) {
		b := &box{T: t, disk: disk}
		var g *gated
		b.open(func(m offsets.Medium) offsets.Medium {
			g = &gated{Medium: &failing{Medium: m, commits: 1}, begin: make(chan struct{})}
			return g
		})
		ctx := context.Background()
		lone := b.goAppend(ctx, tier.ClockSeen{At: t0})
		synctest.Wait()
		refused := b.goAppend(ctx, tier.TableResumed{Table: "none"})
		taken := b.goAppend(ctx, started(orders0, attempt(1, span(0, 10))))
		synctest.Wait()
		g.begin <- struct{}{}
		b.same(nil, (<-lone).err)
		g.begin <- struct{}{}
		for _, member := range []<-chan answer{refused, taken} {
			if a := <-member; a.err != b.ledger.Err() || !errors.Is(a.err, errInjected) || a.pos != 0 {
				b.Errorf("member of a failed group: got %v", a)
			}
		}
		if err := b.ledger.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
	})
	b.open(nil)
	b.same(0, len(b.snapshot().Logs[0].Attempts))
	b.same(t0, b.ledger.Clock())
}

func testWithdrawn(t *testing.T, disk Disk) {
	inBubble(t, disk, func(b *box, g *gated) {
		first := b.goAppend(context.Background(), tier.ClockSeen{At: t0})
		synctest.Wait()
		ctx, cancel := context.WithCancel(context.Background())
		waiting := b.goAppend(ctx, tier.ClockSeen{At: t0 + 9})
		synctest.Wait()
		cancel()
		a := <-waiting
		if !errors.Is(a.err, context.Canceled) || !errors.Is(a.err, tier.ErrRefused) {
			b.Errorf("a withdrawn record: got error %v", a.err)
		}
		g.begin <- struct{}{}
		b.same(nil, (<-first).err)
		b.same(t0, b.ledger.Clock())
		b.same(1, g.commits)
	})
}

func testTaken(t *testing.T, disk Disk) {
	inBubble(t, disk, func(b *box, g *gated) {
		ctx, cancel := context.WithCancel(context.Background())
		first := b.goAppend(ctx, tier.ClockSeen{At: t0})
		synctest.Wait()
		// The next group has two members: one of them commits for both.
		second := b.goAppend(ctx, tier.ClockSeen{At: t0 + 1})
		third := b.goAppend(ctx, tier.ClockSeen{At: t0 + 2})
		synctest.Wait()
		g.begin <- struct{}{}
		b.same(nil, (<-first).err)
		synctest.Wait()
		cancel()
		synctest.Wait()
		for _, member := range []<-chan answer{second, third} {
			select {
			case a := <-member:
				b.Errorf("the outcome %v came before the commit", a)
			default:
			}
		}
		g.begin <- struct{}{}
		b.same(nil, (<-second).err)
		b.same(nil, (<-third).err)
		b.same(t0+2, b.ledger.Clock())
	})
}

func testOver(t *testing.T, disk Disk) {
	b := open(t, disk)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := b.ledger.Append(ctx, opened(orders0, 0))
	if !errors.Is(err, context.Canceled) || !errors.Is(err, tier.ErrRefused) {
		t.Fatalf("append with a context that is over: got error %v", err)
	}
	b.same(0, len(b.snapshot().Logs))
	b.append(opened(orders0, 0))
}

// testConcurrent has several callers copy into a log that they share and into one of their own.
func testConcurrent(t *testing.T, disk Disk) {
	const callers, each = 6, 12
	b := open(t, disk)
	b.append(opened(orders0, 0))
	var wg sync.WaitGroup
	positions := make([][]tier.Position, callers)
	for c := range callers {
		wg.Go(func() {
			own := tier.LogID{Table: "own", Name: fmt.Sprint(c)}
			if _, err := b.ledger.Append(context.Background(), opened(own, 0)); err != nil {
				t.Error(err)
			}
			for i := range each {
				n := c*each + i
				shared := span(tier.Offset(n), tier.Offset(n+1))
				positions[c] = append(positions[c], b.tryCopy(orders0, n, shared))
				b.tryCopy(own, 1000+n, span(tier.Offset(i), tier.Offset(i+1)))
				b.ledger.Log(own)
				b.ledger.ID()
			}
		})
	}
	wg.Wait()
	all := slices.Sorted(slices.Values(slices.Concat(positions...)))
	for i, pos := range all {
		b.same(tier.Position(i), pos)
	}
	b.copied(orders0, callers*each)
	for c := range callers {
		b.copied(tier.LogID{Table: "own", Name: fmt.Sprint(c)}, each)
	}
	b.reopens()
}

// tryCopy is copies for a goroutine that must not end the test.
func (b *box) tryCopy(id tier.LogID, n int, r tier.Range) tier.Position {
	a := attempt(n, r)
	var err error
	if a.Position, err = b.ledger.Append(context.Background(), started(id, a)); err != nil {
		b.Error(err)
	}
	if _, err = b.ledger.Append(context.Background(), finished(id, a)); err != nil {
		b.Error(err)
	}
	if _, err := b.ledger.Copy(id, a.Position); err != nil {
		b.Error(err)
	}
	return a.Position
}
