package sim

import (
	"context"
	"path"
	"slices"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/rebuild"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
	"github.com/tierd/tierd/sim/choose"
)

// diskErrors are the errors that a disk gives; nil is EIO.
var diskErrors = []struct {
	name string
	err  error
}{{"EIO", nil}, {"ENOSPC", vfs.ErrFull}}

func (h *play) diskActs() []act {
	arm := func() Fate {
		fate := Fail
		if choose.Yes(h.c, "after it took effect") {
			fate = FailAfter
		}
		names := make([]string, len(diskErrors))
		for i, e := range diskErrors {
			names[i] = e.name
		}
		h.w.cause = diskErrors[choose.Later(h.c, "error", names, nil)].err
		return fate
	}
	return []act{
		{kindDisk, "will fail", 1, func() {
			h.disk = choose.Number(h.c, "operations before", 1, 25)
			h.fate = arm()
		}},
		{kindDisk, "will fail in the next effect of a kind", 2, func() { h.inEffect(arm()) }},
		{kindDisk, "is full from now on", 1, func() { h.full = true }},
		{kindDisk, "has room again", 1, func() { h.full = false }},
	}
}

// growing reports whether the operation takes room on a disk.
func growing(p Point) bool {
	switch vfs.OpKind(p.Kind) {
	case vfs.OpCreate, vfs.OpAppend, vfs.OpWrite, vfs.OpMkdir:
		return p.Place == OnDisk
	}
	return p.Place == InLedger
}

// ledgerActs put the ledger back to an old state, as from a backup, and have another one made, as
// tierd asks for then.
func (h *play) ledgerActs() []act {
	if h.broker != nil {
		return nil
	}
	return []act{
		{kindOperator, "backs the ledger up", 1, func() { h.putBack = h.w.Remember() }},
		{kindStop, "and an old ledger is put back", 2, func() {
			if h.putBack == nil {
				return
			}
			h.out.Crashes++
			h.disk = 0
			h.w.Kill()
			h.putBack()
			h.putBack = nil
			h.line(LaneCrash, "the process is killed, and an old ledger put back")
			h.startProcess()
			h.met(OldLedger)
		}},
		{kindOperator, "rebuilds the ledger", 2, h.rebuilds},
		{kindStop, "and the ledger is lost, and rebuilt", 2, h.losesLedger},
		{kindStop, "later, and commits of the ledger are lost", 2, func() {
			h.lies = true
			h.stopsLater()
		}},
	}
}

// losesCommits notes that the machine stops whose disk said too early that commits are durable:
// what is left is an older ledger.
func (h *play) losesCommits() {
	h.lies = false
	if h.w.Medium.Lossy() {
		h.line(LaneLedger, "commits are lost that were said to be durable")
		h.met(LostCommits)
	}
}

// rebuilds has the ledger made anew, where it is an old one.
func (h *play) rebuilds() {
	if h.o.old {
		h.w.Kill()
		h.makesLedger()
	}
}

// losesLedger ends the process, or its machine, and has a ledger made in place of the one that was
// there.
func (h *play) losesLedger() {
	h.ends()
	h.met(LostLedger)
	h.makesLedger()
}

// landsUnseen lets come to the store, before a rebuild, what it could not know of: uploads of a log
// of which the store has nothing, and entries of manifests, whose positions would be given away
// once more, of a ledger that was rebuilt and had nothing of its own there yet; and deletions, of
// objects that it would find, and take for copies. RATIONALE has the limits.
func (h *play) landsUnseen() {
	ledger, err := h.w.ledgerNow()
	if err != nil {
		return
	}
	store := h.w.storeNow(ledger.id)
	seen := map[tier.LogID]bool{}
	for _, o := range slices.Concat(store.objects, store.others) {
		seen[o.Log] = true
	}
	for i, late := range slices.Backward(h.w.Bucket.Late()) {
		k, err := store.keys.Parse(late.Key)
		again := k.Kind == objstore.KeyEntry && k.Position >= rebuild.LateMax
		unseen := again || !seen[k.Log] || late.Kind == fault.OpDelete
		if err == nil && k.Log != (tier.LogID{}) && unseen {
			must(h.w.Bucket.Land(context.Background(), i))
		}
	}
}

// disarms ends every fault, and takes back what waits for its moment. What is late still is.
func (h *play) disarms() {
	h.storeWorks()
	h.full, h.lies = false, false
	h.disk, h.inside, h.aside, h.brake, h.stopIn, h.moment = 0, 0, 0, 0, "", -1
}

// makesLedger makes a ledger of what the store has, and begins a process with it.
func (h *play) makesLedger() {
	h.disarms()
	must(h.w.Return()) // without its source a rebuild is refused
	h.landsUnseen()
	if _, err := h.w.Rebuild(); err != nil {
		h.o.violate(Recovered, "the ledger cannot be rebuilt: %v", err)
		h.judge()
	}
	h.line(LaneLedger, "is rebuilt")
	h.putBack = nil // RATIONALE says why
	h.startProcess()
}

// movesAway has an operator do what tierd asks for where an interrupted deletion left a file in the
// trash whose name its owner gave to another one meanwhile: the one in the trash is moved away.
func (h *play) movesAway() {
	for _, id := range h.p.Logs {
		files := h.w.files(id)
		for _, x := range files {
			if x.place == pending && slices.ContainsFunc(files, func(f file) bool {
				return f.place == live && f.name == x.name && f.stat.Inode != x.stat.Inode
			}) {
				must(h.w.Disk.Remove(x.at))
				must(h.w.Disk.Sync(path.Dir(x.at)))
				h.line(LaneDisk, "an operator moves %s away", x.at)
			}
		}
	}
}
