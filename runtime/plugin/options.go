package plugin

import (
	"encoding/json"
	"time"
)

// Spec is one configured plugin.
type Spec struct {
	Name   string
	Wasm   []byte          // the module; see ReadModule
	SHA256 string          // of Wasm, 64 hexadecimal digits; required
	Config json.RawMessage // handed to tierd_configure; absent is {}
}

// Options is what all plugins of a Set share. The zero value is usable.
type Options struct {
	Node   string  // name of this node, for tierd_configure
	Tables *Tables // for the instance that Load makes to see whether a plugin works at all
	Limits Limits
	// CacheDir keeps compiled modules across restarts, some 10 MB for a Go plugin; it is made if it
	// is not there. Empty turns the cache off. It holds native code that is executed: nobody but
	// tierd's own user may write to it.
	CacheDir string
	// CacheFrozen uses what is in the cache, and writes nothing to it.
	CacheFrozen bool
	Engine      Engine
	// Log receives what plugins log, within the limits. It is called by whatever goroutine runs a
	// plugin, also concurrently. Nil drops the lines.
	Log func(Line)
	// Clock returns a monotonic time of arbitrary origin. A plugin's answer is dropped if its call
	// took longer than Limits.WallMax by this clock. Nil never drops.
	Clock func() time.Duration
}

// Line is a line that a plugin logged.
type Line struct {
	Plugin  string
	Text    string // valid UTF-8 without control characters
	Dropped int    // lines before this one that exceeded the rate
}

// Engine chooses how modules run. All give the same answers and count the same fuel.
type Engine uint8

// The engines.
const (
	EngineAuto        Engine = iota // the compiler where the platform has one
	EngineCompiler                  // to native code
	EngineInterpreter               // some 50 times slower
)

// Limits bounds what one plugin may consume. Zero fields take the defaults.
type Limits struct {
	MemoryPages int // of 64 KiB, per instance; 1024
	// Fuel is counted in about one simple machine instruction a unit; the compiler runs some 10^9
	// of them in a second.
	StartFuel      int64         // for initialization and tierd_configure; 1e9
	ConfigureFuel  int64         // more for each byte of configuration; 2,000
	BatchFuel      int64         // for a batch; 20e6
	SegmentFuel    int64         // more for each segment of a batch; 5,000
	WallMax        time.Duration // of one batch, by Options.Clock; 10s
	BackoffMin     time.Duration // after a first failure; doubles with each further one; 1s
	BackoffMax     time.Duration // 5m
	LogLineBytes   int           // 512
	LogLinesBurst  int           // 20
	LogLinesPerMin int           // 60
}

func (l Limits) withDefaults() Limits {
	set(&l.MemoryPages, 1024)
	set(&l.StartFuel, 1e9)
	set(&l.ConfigureFuel, 2_000)
	set(&l.BatchFuel, 20e6)
	set(&l.SegmentFuel, 5_000)
	set(&l.WallMax, 10*time.Second)
	set(&l.BackoffMin, time.Second)
	set(&l.BackoffMax, 5*time.Minute)
	set(&l.LogLineBytes, 512)
	set(&l.LogLinesBurst, 20)
	set(&l.LogLinesPerMin, 60)
	return l
}

func set[T int | int64 | time.Duration](field *T, v T) {
	if *field == 0 {
		*field = v
	}
}
