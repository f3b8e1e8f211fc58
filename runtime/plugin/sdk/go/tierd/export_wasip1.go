package tierd

import "unsafe"

//go:wasmexport tierd_abi_v1
func abiV1() {}

//go:wasmexport tierd_alloc
func tierdAlloc(n uint32) unsafe.Pointer { return allocate(n) }

//go:wasmexport tierd_configure
func tierdConfigure(p unsafe.Pointer, n uint32) int32 {
	return configure(unsafe.Slice((*byte)(p), n))
}

//go:wasmexport tierd_select
func tierdSelect(p unsafe.Pointer, _ uint32) uint64 {
	size := *(*uint32)(unsafe.Add(p, 16)) // the header's own size of the batch
	at, n := selectBatch(unsafe.Slice((*byte)(p), size))
	return uint64(uintptr(at))<<32 | uint64(n)
}

//go:wasmimport tierd log
func hostLog(p unsafe.Pointer, n uint32)

// Log writes a line to tierd's log. Its length and rate are bounded.
func Log(text string) { hostLog(unsafe.Pointer(unsafe.StringData(text)), uint32(len(text))) }
