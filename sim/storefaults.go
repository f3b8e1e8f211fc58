package sim

import (
	"errors"

	"github.com/tierd/tierd/objstore/fault"
)

// errBusy is what a store says in a storm.
var errBusy = errors.New("503 slow down")

// What a call of the store can come to.
var (
	uploadFaults = []storeFault{
		{kind: fault.OpUpload, name: "has no effect", effect: fault.Effect{Err: errInjected}},
		{kind: fault.OpUpload, name: "times out, and took effect",
			effect: fault.Effect{Err: errInjected, Applied: true}},
		{kind: fault.OpUpload, name: "times out, and comes late",
			effect: fault.Effect{Err: errInjected, Late: true}},
		{kind: fault.OpUpload, name: "comes late, and says it is done",
			effect: fault.Effect{Late: true}},
		{kind: fault.OpUpload, name: "is cut, and says it is whole",
			effect: fault.Effect{Mangle: fault.Cut(4)}},
		{kind: fault.OpUpload, name: "is cut, and says so",
			effect: fault.Effect{Err: errInjected, Mangle: fault.Cut(4)}},
		{kind: fault.OpUpload, name: "rots, and says it is well",
			effect: fault.Effect{Mangle: fault.Flip(3)}},
	}
	readFaults = []storeFault{
		{kind: fault.OpGet, name: "gives no answer", effect: fault.Effect{Err: errInjected}},
		{kind: fault.OpGet, name: "gives less", effect: fault.Effect{Mangle: fault.Cut(5)}},
		{kind: fault.OpGet, name: "gives other bytes", effect: fault.Effect{Mangle: fault.Flip(2)}},
		{kind: fault.OpGet, name: "finds nothing", effect: fault.Effect{Err: fault.ErrNotFound}},
		{kind: fault.OpGetRange, name: "gives no answer", effect: fault.Effect{Err: errInjected}},
		{kind: fault.OpGetRange, name: "gives less", effect: fault.Effect{Mangle: fault.Cut(5)}},
		{kind: fault.OpAttributes, name: "gives no answer", effect: fault.Effect{Err: errInjected}},
		{kind: fault.OpAttributes, name: "finds nothing",
			effect: fault.Effect{Err: fault.ErrNotFound}},
	}
	deleteFaults = []storeFault{
		{kind: fault.OpDelete, name: "has no effect", effect: fault.Effect{Err: errInjected}},
		{kind: fault.OpDelete, name: "times out, and took effect",
			effect: fault.Effect{Err: errInjected, Applied: true}},
		{kind: fault.OpDelete, name: "times out, and comes late",
			effect: fault.Effect{Err: errInjected, Late: true}},
	}
	// A client or something on the way asks again, and the first request was only slow: it takes
	// effect once more, at any later time.
	twiceFaults = []storeFault{
		{kind: fault.OpUpload, name: "takes effect, and once more later",
			effect: fault.Effect{Twice: true}},
		{kind: fault.OpUpload, name: "times out, took effect, and does once more later",
			effect: fault.Effect{Err: errInjected, Applied: true, Twice: true}},
		{kind: fault.OpDelete, name: "takes effect, and once more later",
			effect: fault.Effect{Twice: true}},
		{kind: fault.OpDelete, name: "times out, took effect, and does once more later",
			effect: fault.Effect{Err: errInjected, Applied: true, Twice: true}},
	}
	listFaults = []storeFault{
		{kind: fault.OpIter, name: "gives no answer", effect: fault.Effect{Err: errInjected}},
		{kind: fault.OpIter, name: "lacks everything new",
			effect: fault.Effect{Hide: func(string) bool { return true }}},
	}
)
