package interop_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
)

// TestToggles: tiering is turned off and on with both policies while a producer goes on, and
// readers of tierd's endpoint lose nothing but what delete says that they lose: what was in the
// store alone.
func TestToggles(t *testing.T) {
	t.Parallel()
	s := filesystem(t)
	k := newKafka(t, 1)
	k.create("orders", 1, 1, smallSegments())
	h, stop := k.produce("orders", 300, 1500)
	endpoint := freeAddress(t)
	r := beside(t, s, k, k.nodes[0], fmt.Sprintf("kafka: {listen: %q}", endpoint),
		"limits: {remote_delete_grace: 1s, orphan_age: 1m}")
	base := r.text()
	set := func(enable bool, policy string) {
		t.Helper()
		r.configure(fmt.Sprintf("%s\ndefaults: {table.log.ttl: 0, table.log.local-ttl: 1s, "+
			"remote.storage.enable: %t, remote.log.disable.policy: %s}", base, enable, policy))
	}
	set(true, "retain")
	d := r.daemon()
	d.listens(endpoint)
	at := k.progress("the broker drops something", 100)

	set(false, "retain")
	r.must("reload")
	epoch := r.table("orders", "DISABLED")
	frozen := k.frozen(h, "retain")
	if left := archived(t, s, "orders/0"); len(left.offsets) == 0 || left.offsets[0] != 0 {
		t.Errorf("retain left %d records in the store", len(left.offsets))
	}
	k.all(endpoint, h, 0)

	set(true, "retain")
	r.must("reload")
	if again := r.table("orders", "ENABLED"); again != epoch+1 {
		t.Errorf("tier epoch %d after %d", again, epoch)
	}
	at = k.progress("all goes on after retain", max(at, frozen))
	k.all(endpoint, h, 0)

	set(false, "delete")
	r.must("reload")
	r.table("orders", "DISABLED")
	frozen = k.frozen(h, "delete")
	// A copy that was under way at the switch leaves an orphan, which goes after its age.
	eventually(t, "the objects go", func() error { return none(s.records(t)) })
	k.all(endpoint, h, frozen)

	set(true, "delete")
	r.must("reload")
	r.table("orders", "ENABLED")
	k.progress("all goes on after delete", max(at, frozen))
	stop()
	k.all(endpoint, h, frozen)
	settled(t, r, k, "orders")
	k.all(endpoint, h, frozen)
	d.stop()
	audit(t, r)
}

// frozen wants the broker to drop nothing while many more records come, and returns where its log
// begins.
func (k *kafka) frozen(h *history, what string) int64 {
	k.t.Helper()
	start, _, err := k.bounds("orders", 0)
	before := h.count()
	eventually(k.t, "the producer goes on", func() error {
		if n := h.count(); n < before+100 {
			return fmt.Errorf("%d records", n-before)
		}
		return nil
	})
	after, _, again := k.bounds("orders", 0)
	if err := errors.Join(err, again); err != nil || after != start {
		k.t.Errorf("turned off with %s: the broker's log begins at %d after %d: %v", what, after, start,
			err)
	}
	return start
}

// all reads what the endpoint has, up to what the broker has now: from an offset on that is at
// most the one that is given, which is in a segment that may begin below it, each record once, in
// order, as it was acknowledged.
func (k *kafka) all(endpoint string, h *history, from int64) {
	k.t.Helper()
	f := k.consumed(endpoint, "orders")
	h.mu.Lock()
	defer h.mu.Unlock()
	if first := f.offsets[0]; first > from {
		k.t.Errorf("the endpoint begins at %d, want %d at most", first, from)
	}
	for i, o := range f.offsets {
		if want, acked := h.values[o]; o != f.offsets[0]+int64(i) || acked && f.values[o] != want {
			k.t.Fatalf("record %d has the offset %d and is %.40q, want %.40q", i, o, f.values[o], want)
		}
	}
}

// TestConsumerGroup: a policy keeps what a consumer group of the broker has not read yet, by a fact
// that tierd asks the broker for. What the group commits goes, and nothing beyond it.
func TestConsumerGroup(t *testing.T) {
	t.Parallel()
	guard, err := filepath.Abs("../policies/examples/consumer_guard/consumer_guard.rego")
	if err != nil {
		t.Fatal(err)
	}
	k := filled(t, "orders", 400)
	s := filesystem(t)
	r := beside(t, s, k, k.nodes[0], shortTTL,
		fmt.Sprintf("policies: {paths: [%q], data: [guards.yaml]}", guard),
		"facts: [{name: offsets, kafka: broker, groups: [billing], max_age: 5m}]")
	err = os.WriteFile(r.path("guards.yaml"), []byte("consumer_guards: {orders: [billing]}"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	d := r.daemon()
	eventually(t, "status says that the cluster knows no such group", func() error {
		st, err := r.status()
		if err != nil || !slices.ContainsFunc(st.Reasons, func(why reason) bool {
			return why.Alarm && strings.Contains(why.Text, "no such group")
		}) {
			return errors.Join(err, fmt.Errorf("%+v", st.Reasons))
		}
		return nil
	})
	refused(t, r, k, "orders", "not-consumed")
	for _, committed := range []int64{1, 150, 300} {
		k.commit("billing", "orders", committed)
		var start int64
		eventually(t, fmt.Sprintf("what is below %d goes, and the next segment stays", committed),
			func() (err error) {
				if start, _, err = k.bounds("orders", 0); err != nil {
					return err
				}
				l, err := r.log("orders/0")
				if err != nil {
					return err
				}
				read := fmt.Sprintf("group billing has read up to %d,", committed)
				if start <= committed-100 || !slices.ContainsFunc(l.Reasons, func(why reason) bool {
					return why.Code == "not-consumed" && strings.Contains(why.Text, read)
				}) {
					return fmt.Errorf("the broker's log begins at %d: %+v", start, l)
				}
				return d.ended()
			})
		if start > committed {
			t.Fatalf("the group is at %d, and the broker's log begins at %d", committed, start)
		}
	}
	d.stop()
}

// commit has the group commit the offset of partition 0 of the topic.
func (k *kafka) commit(group, topic string, at int64) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	offsets := kadm.Offsets{}
	offsets.AddOffset(topic, 0, at, -1)
	eventually(k.t, "the group commits", func() error {
		return k.admin().CommitAllOffsets(ctx, group, offsets)
	})
}
