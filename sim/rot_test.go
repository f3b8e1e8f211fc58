package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

const rotsABit = "disk: lets a segment rot; what rots: one bit"

// after is where the first log stands after a step of the history.
func after(t *testing.T, out *Outcome, step int) LogSnapshot {
	t.Helper()
	i := slices.IndexFunc(out.Snapshots, func(s Snapshot) bool { return s.Step == step })
	if i < 0 || len(out.Snapshots[i].Logs) == 0 {
		t.Fatalf("nothing is known after step %d: %v", step, out.Violation)
	}
	return out.Snapshots[i].Logs[0]
}

// TestRotBeforeTheCopy: batches of Kafka have checksums, and a segment that rotted is not copied
// before its owner has repaired it. Nobody can tell that a plain file rotted: it is copied as it
// is.
func TestRotBeforeTheCopy(t *testing.T) {
	t.Parallel()
	for _, how := range rotNames {
		rots := "disk: lets a segment rot; what rots: " + how
		kafka := scripted(t, kafkaProject(t), "owner: rolls", rots, "process: runs",
			"owner: repairs what rotted", "process: runs")
		if kafka.Violation != nil {
			t.Errorf("%s, kafka: %s", how, kafka.Violation)
		}
		if l := after(t, kafka, 3); l.Copied != 0 || len(l.Remote) > 0 || len(l.Local) != 2 {
			t.Errorf("%s, kafka: it stands at %+v, want nothing copied", how, l)
		}
		if l := after(t, kafka, 5); l.Copied == 0 {
			t.Errorf("%s, kafka: repaired it is not copied: %+v", how, l)
		}
		plain := scripted(t, plainProject(t), rots, "process: runs")
		if plain.Violation != nil {
			t.Errorf("%s, plain: %s", how, plain.Violation)
		}
		if l := after(t, plain, 2); l.Copied != 10 {
			t.Errorf("%s, plain: it stands at %+v, want it copied as it is", how, l)
		}
	}
}

// TestRotAfterTheCopy: a file that has nothing but another bit goes on the proof of what was
// copied. One of Kafka that looks changed stays, since it is neither what was copied nor whole.
func TestRotAfterTheCopy(t *testing.T) {
	t.Parallel()
	day := "time: passes, and the process runs; time: a day"
	for _, p := range []*Project{plainProject(t), kafkaProject(t)} {
		rolls := "owner: rolls"
		out := scripted(t, p, rolls, "process: runs", rotsABit, day)
		if l := after(t, out, 4); out.Violation != nil || l.Local[0].Base == 0 || l.Copied == 0 {
			t.Errorf("%s: it stands at %+v (%v), want the segment gone", p.Config.Layout, l, out.Violation)
		}
		out = scripted(t, p, rolls, "process: runs", rotsABit+", and its time", day)
		l := after(t, out, 4)
		if stays := l.Local[0].Base == 0; out.Violation != nil ||
			p.Config.Layout == tier.LayoutKafka && !stays {
			t.Errorf("%s: it stands at %+v (%v), want the segment to stay", p.Config.Layout, l,
				out.Violation)
		}
	}
}

// TestWhatRotsIsAsOldAsTheFileSays: nothing of it can be read, and where the clock went back its
// time is before that of its records.
func TestWhatRotsIsAsOldAsTheFileSays(t *testing.T) {
	t.Parallel()
	p := kafkaProject(t)
	tables := p.Config.Tables
	p.Config.Tables = func(name string) (tier.Table, bool) {
		table, ok := tables(name)
		table.Tiering, table.TTL, table.LocalTTL = false, time.Minute, time.Minute
		return table, ok
	}
	out := scripted(t, p, "clock: goes back, and the store's does not; seconds: 2", "owner: rolls",
		rotsABit+", and its time", "time: passes, and the process runs; time: a minute")
	if l := after(t, out, 4); out.Violation != nil || len(l.Local) != 1 {
		t.Errorf("it stands at %+v (%v), want the segment gone", l, out.Violation)
	}
}

// TestTheOracleSeesRotThatIsCopied: where nothing of an upload is read back, what rots between its
// check and its upload is copied, though it has a checksum.
func TestTheOracleSeesRotThatIsCopied(t *testing.T) {
	t.Parallel()
	p := kafkaProject(t)
	p.Config.Verify = tier.VerifySize
	for n := range 40 {
		out := scripted(t, p, "process: runs", "owner: rolls", "process: scans", fmt.Sprintf(
			"overlap: with a segment that rots; what rots: one bit; operations before: %d", n),
			"process: performs one effect")
		if v := out.Violation; v != nil {
			if v.Property != CopiedSound {
				t.Error(v)
			}
			return
		}
	}
	t.Error("no history copies what rotted")
}

func plainProject(t *testing.T) *Project { return projectOf(t, Builtin) }
func kafkaProject(t *testing.T) *Project { return projectOf(t, BuiltinKafka) }

func projectOf(t *testing.T, load func() (*Project, error)) *Project {
	t.Helper()
	p, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return p
}
