// Package tierd is the Go side of tierd's plugin ABI v1.
//
// A plugin sees batches of segments and says of each how urgently it should be copied and whether
// it is to be held or kept. It is an ordinary Go program, built as a WebAssembly library:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o plugin.wasm .
//
// It registers itself in an init function; main stays empty, because it never runs:
//
//	func init() { tierd.Register(&plugin{}) }
//	func main() {}
//
// What is printed to the standard outputs goes to tierd's log, as does Log. There are no files,
// no network and no environment; the clock shows the batch's time.
package tierd

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"unsafe"
)

// Action is what a plugin asks for a segment.
type Action uint8

// The actions.
const (
	None Action = 0
	Hold Action = 1 // do not copy it yet; tierd bounds for how long
	Keep Action = 2 // do not delete it locally
)

// The bits of Batch.Tiers.
const (
	Local  uint8 = 1 << 0
	Remote uint8 = 1 << 1
)

// The values of Batch.TierState. Take any other value for StateUnknown.
const (
	StateUnknown   uint8 = 0
	StateEnabled   uint8 = 1
	StateDisabling uint8 = 2
	StateDisabled  uint8 = 3
)

// Table is one table of the node.
type Table struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
}

// Setup is what a plugin is given once, before the first batch.
type Setup struct {
	Plugin string          `json:"plugin"` // its configured name
	Node   string          `json:"node"`
	Config json.RawMessage `json:"config"` // what tierd.yaml says under config
	Tables []Table         `json:"tables"` // Batch.Table holds indices of it
}

// Batch is the candidates to judge. Row i of every column is the i-th segment; the segments of a
// log stand together and ascend by offset. The columns are valid during Select alone.
type Batch struct {
	Now  int64 // ns since the Unix epoch
	Logs int   // how many logs there are

	Base         []int64 // first offset
	Next         []int64 // one past the last offset
	Bytes        []int64 // of all files of the segment
	MaxTimestamp []int64 // ns since the Unix epoch; 0 if there is none usable
	Age          []int64 // ns; 0 if it is not known
	LocalBytes   []int64 // of the segment's log, on local disk
	DiskUsed     []int64 // bytes of the disk that the log lies on
	DiskFree     []int64
	Table        []int64 // index in Setup.Tables; -1 if it is not there
	Log          []int64 // 0 to Logs-1
	Tiers        []uint8 // Local | Remote
	Copied       []uint8 // 1 if every offset was copied
	Verified     []uint8 // 1 if its copy was verified
	TierState    []uint8

	zero struct { // what the columns that the host does not send are slices of
		wide   []int64
		narrow []uint8
	}
}

// Len is the number of segments.
func (b *Batch) Len() int { return len(b.Base) }

// Choices is the answer. All scores are 0 and all actions None to begin with.
type Choices struct {
	Score  []int64 // what should be copied first has the highest
	Action []Action
}

// Plugin is what an author implements.
type Plugin interface {
	// Configure is called once. An error refuses the configuration.
	Configure(*Setup) error
	// Select answers a batch.
	Select(*Batch, *Choices)
}

var (
	registered Plugin
	input      []uint64 // of words, so that it is aligned
	answer     []uint64
	choices    Choices
	batch      Batch
)

// Register makes p the plugin. Call it in an init function.
func Register(p Plugin) { registered = p }

// allocate returns n bytes for the host to write to.
func allocate(n uint32) unsafe.Pointer {
	if words := int(n)/8 + 1; len(input) < words {
		input = make([]uint64, words+words/4)
	}
	return unsafe.Pointer(unsafe.SliceData(input))
}

func configure(text []byte) int32 {
	if registered == nil {
		Log("no plugin is registered: call tierd.Register in an init function")
		return 1
	}
	var s Setup
	err := json.Unmarshal(text, &s)
	if err == nil {
		err = registered.Configure(&s)
	}
	if err != nil {
		Log(err.Error())
		return 1
	}
	return 0
}

// selectBatch answers the batch in text, and returns where the answer is and its bytes.
func selectBatch(text []byte) (unsafe.Pointer, uint32) {
	if err := decode(text, &batch); err != nil {
		panic(err)
	}
	n := batch.Len()
	if words := n + (n+7)/8; cap(answer) < words {
		answer = make([]uint64, words)
	} else {
		answer = answer[:words]
		clear(answer)
	}
	p := unsafe.Pointer(unsafe.SliceData(answer))
	choices.Score = unsafe.Slice((*int64)(p), n)
	choices.Action = unsafe.Slice((*Action)(unsafe.Add(p, 8*n)), n)
	registered.Select(&batch, &choices)
	return p, uint32(9 * n)
}

const (
	magic          = 0x31445254
	headerBytes    = 64
	directoryBytes = 8
	typeInt64      = 1
	typeUint8      = 2
)

// wide and narrow list where the columns go, by their ids.
func (b *Batch) wide(id uint16) *[]int64 {
	all := [...]*[]int64{1: &b.Base, 2: &b.Next, 3: &b.Bytes, 4: &b.MaxTimestamp, 5: &b.Age,
		6: &b.LocalBytes, 7: &b.DiskUsed, 8: &b.DiskFree, 9: &b.Table, 10: &b.Log}
	if int(id) >= len(all) {
		return nil
	}
	return all[id]
}

func (b *Batch) narrow(id uint16) *[]uint8 {
	all := [...]*[]uint8{11: &b.Tiers, 12: &b.Copied, 13: &b.Verified, 14: &b.TierState}
	if int(id) >= len(all) {
		return nil
	}
	return all[id]
}

const lastColumn = 14

// decode points the columns of b into text, which is aligned to 8. Columns that this package does
// not know are passed over; those that the host does not send are zeros.
func decode(text []byte, b *Batch) error {
	le := binary.LittleEndian
	if len(text) < headerBytes || le.Uint32(text) != magic {
		return fmt.Errorf("the batch does not begin with TRD1")
	}
	directory, columns, n := int(le.Uint32(text[4:])), int(le.Uint32(text[8:])),
		int(le.Uint32(text[12:]))
	if directory+columns*directoryBytes > len(text) {
		return fmt.Errorf("%d columns do not fit in %d bytes", columns, len(text))
	}
	*b = Batch{Now: int64(le.Uint64(text[32:])), Logs: int(le.Uint32(text[24:])), zero: b.zero}
	for i := range columns {
		entry := text[directory+i*directoryBytes:]
		id, typ, at := le.Uint16(entry), entry[2], int(le.Uint32(entry[4:]))
		size := n
		if typ == typeInt64 {
			size = 8 * n
		}
		wide, narrow := b.wide(id), b.narrow(id)
		if typ == typeInt64 && wide == nil || typ == typeUint8 && narrow == nil || typ > typeUint8 {
			continue
		}
		if at%8 != 0 || at+size > len(text) {
			return fmt.Errorf("column %d lies outside of the batch", id)
		}
		p := unsafe.Add(unsafe.Pointer(unsafe.SliceData(text)), at)
		if typ == typeInt64 {
			*wide = unsafe.Slice((*int64)(p), n)
		} else {
			*narrow = unsafe.Slice((*uint8)(p), n)
		}
	}
	b.fill(n)
	return nil
}

// fill gives zeros for the columns that were not sent.
func (b *Batch) fill(n int) {
	for id := uint16(1); id <= lastColumn; id++ {
		if c := b.wide(id); c != nil && len(*c) != n {
			if len(b.zero.wide) < n {
				b.zero.wide = make([]int64, n)
			}
			*c = b.zero.wide[:n]
		}
		if c := b.narrow(id); c != nil && len(*c) != n {
			if len(b.zero.narrow) < n {
				b.zero.narrow = make([]uint8, n)
			}
			*c = b.zero.narrow[:n]
		}
	}
}
