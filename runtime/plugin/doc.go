// Package plugin runs selection plugins: WebAssembly modules that say which segments are copied
// first, and which are held back from copying or kept on local disk.
//
// A plugin reorders and retains, it never permits: a Result has no way to say that something may
// be copied or deleted that might not be without it. Whatever a plugin does (trap, loop, recurse,
// answer garbage, want too much memory or time), the batch goes on without its answer, its
// instance is discarded, and it rests for a delay that doubles with each failure.
//
// # Use
//
// Load makes the plugins of one generation of the configuration ready, all or none. Each goroutine
// that asks has a Worker of its own, with instances of its own, so that nothing waits for a lock;
// Worker.Select asks all plugins about a Batch and fills a Result. There are no goroutines in here:
// fuel (package meter) ends every run, and Worker.Running lets a watchdog tell people of a slow
// one meanwhile. The command line's inspect, test, bench and new are Inspect, Golden, Bench, New.
//
// # ABI v1
//
// A module is a plugin if it exports
//
//	memory                                        its only memory
//	tierd_abi_v1     () -> ()                     a marker; never called
//	tierd_alloc      (n i32) -> (pointer i32)     n bytes, at a multiple of 8 that is not 0
//	tierd_configure  (pointer, length i32) -> (status i32)
//	tierd_select     (pointer, n i32) -> (answer i64)
//
// and imports nothing but tierd.log (pointer, length i32) -> () and functions of
// wasi_snapshot_preview1, which are stubs: no files, arguments, variables or sockets; a clock that
// shows the batch's time; random numbers that are the same in every run; and what is written to
// the standard outputs goes to the log. An exported _initialize () -> () is called first.
//
// Each instance is configured once, before its first batch: the host asks tierd_alloc for memory,
// writes JSON to it and calls tierd_configure, which answers 0, or something else to refuse:
//
//	{"abi": 1, "plugin": "hot-first", "node": "broker-1", "config": {...},
//	 "tables": [{"name": "orders", "labels": {"tier": "hot"}}, ...]}
//
// New keys may appear; a plugin ignores those that it does not know. Where tables or labels
// change, instances are made afresh.
//
// For a batch of n > 0 segments the host asks tierd_alloc for memory, writes the batch to it and
// calls tierd_select with its address and n. All numbers are little-endian.
//
//	byte  size
//	   0     4  "TRD1"
//	   4     4  u32  where the directory of columns begins (64)
//	   8     4  u32  number of columns, c (14)
//	  12     4  u32  number of segments, n
//	  16     4  u32  bytes of the whole batch
//	  20     4  u32  number of tables in tierd_configure
//	  24     4  u32  number of logs in the batch
//	  28     4       0
//	  32     8  i64  now, ns since the Unix epoch
//	  40    24       0
//	  64   8*c       the directory, 8 bytes a column:
//	                   0  2  u16  id
//	                   2  1  u8   type: 1 is int64, 2 is u8
//	                   3  1       0
//	                   4  4  u32  where the column begins, from the start of the batch;
//	                              a multiple of 8
//	         ...      the columns: n elements each, and zeros up to a multiple of 8
//
//	id  type
//	 1  i64  base               first offset
//	 2  i64  next               one past the last offset
//	 3  i64  bytes              of all files of the segment
//	 4  i64  max_timestamp      ns since the Unix epoch; 0 if there is none usable
//	 5  i64  age                ns; 0 if it is not known
//	 6  i64  local_bytes        of the segment's log, on local disk
//	 7  i64  disk_used          bytes of the disk that the log lies on
//	 8  i64  disk_free
//	 9  i64  table              index in the tables of tierd_configure; -1 if it is not there
//	10  i64  log                0, 1, ... within this batch
//	11  u8   tiers              bit 0: on local disk; bit 1: in the object store
//	12  u8   copied             1 if every offset lies below the copied offset
//	13  u8   verified           1 if its copy was verified
//	14  u8   tier_state         1 ENABLED, 2 DISABLING, 3 DISABLED; anything else is unknown
//
// The segments of a log stand together and ascend by offset.
//
// The answer's address stands in the upper 32 bits of tierd_select's result, its length in bytes,
// which must be 9*n, in the lower. It stays in the plugin's memory until the next call:
//
//	byte  size
//	   0   8*n  i64  scores: what should be copied first has the highest
//	 8*n     n  u8   actions: 0 none, 1 hold (do not copy it yet), 2 keep (do not delete it
//	                 locally); anything else makes the whole answer void
//
// # Versions
//
// Within v1 columns may be added, under new ids, the header may grow, and enums may get new
// values. A plugin finds columns by the directory and never by their place, passes over ids and
// types that it does not know, takes a column that is missing for zeros, and an enum's unknown
// value for "unknown". No id, type, unit or meaning ever changes; what would need that is another
// ABI under another marker. A module may export several markers; the host takes the newest that it
// speaks.
package plugin
