package plugin

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"unicode"

	"github.com/tetratelabs/wazero/api"
)

// A plugin may call two things of the host: tierd.log, and stubs of WASI preview 1, without which
// the programs of some compilers do not start. The stubs give no files, no arguments, no
// environment and no network. Their clock is the batch's time, their random numbers are a fixed
// sequence, so that a plugin's answer depends on what it was given alone.
//
// Every host call takes fuel, by its length where it has one: a plugin cannot make the host work
// for nothing.

// hostCallFuel is what any call of the host costs, in units of fuel.
const hostCallFuel = 200

// The errors of WASI preview 1 that the stubs give.
const (
	wasiOK     = 0
	wasiBadFD  = 8
	wasiFault  = 21
	wasiNoSys  = 52
	clockSteps = 1000 // ns that pass at each look at the clock, so that waiting loops end
)

// hostFunction is one function that plugins may import. params and results spell one value type
// a letter: i is i32, I is i64.
type hostFunction struct {
	params, results string
	call            func(c *hostCall) uint32
}

func (f hostFunction) signature() string {
	list := func(s string) string {
		names := make([]string, len(s))
		for i := range s {
			names[i] = api.ValueTypeName(valueType(s[i]))
		}
		return strings.Join(names, ", ")
	}
	return "(" + list(f.params) + ") -> (" + list(f.results) + ")"
}

func valueType(letter byte) api.ValueType {
	if letter == 'I' {
		return api.ValueTypeI64
	}
	return api.ValueTypeI32
}

func valueTypes(s string) []api.ValueType {
	types := make([]api.ValueType, len(s))
	for i := range s {
		types[i] = valueType(s[i])
	}
	return types
}

// hostCall is one call by a plugin.
type hostCall struct {
	inst *instance
	mem  api.Memory
	args []uint64
}

func (c *hostCall) u32(i int) uint32 { return uint32(c.args[i]) }

// handler adapts f to the engine.
func (f hostFunction) handler() api.GoModuleFunc {
	return func(ctx context.Context, mod api.Module, stack []uint64) {
		inst := ctx.Value(instanceKey{}).(*instance)
		inst.charge(hostCallFuel)
		result := f.call(&hostCall{inst: inst, mem: mod.Memory(), args: stack})
		if f.results != "" {
			stack[0] = uint64(result)
		}
	}
}

// hostFunctions holds everything that a plugin may import, by module and name.
var hostFunctions = func() map[string]hostFunction {
	all := map[string]hostFunction{moduleTierd + "." + importLog: {"ii", "", callLog}}
	for name, f := range wasiFunctions {
		all[moduleWASI+"."+name] = f
	}
	return all
}()

// wasiFunctions are the functions of WASI preview 1.
var wasiFunctions = map[string]hostFunction{
	"args_get":                {"ii", "i", succeed},
	"args_sizes_get":          {"ii", "i", twoZeros},
	"clock_res_get":           {"ii", "i", clockResolution},
	"clock_time_get":          {"iIi", "i", clockTime},
	"environ_get":             {"ii", "i", succeed},
	"environ_sizes_get":       {"ii", "i", twoZeros},
	"fd_advise":               {"iIIi", "i", badFD},
	"fd_allocate":             {"iII", "i", badFD},
	"fd_close":                {"i", "i", badFD},
	"fd_datasync":             {"i", "i", badFD},
	"fd_fdstat_get":           {"ii", "i", badFD},
	"fd_fdstat_set_flags":     {"ii", "i", badFD},
	"fd_fdstat_set_rights":    {"iII", "i", badFD},
	"fd_filestat_get":         {"ii", "i", badFD},
	"fd_filestat_set_size":    {"iI", "i", badFD},
	"fd_filestat_set_times":   {"iIIi", "i", badFD},
	"fd_pread":                {"iiiIi", "i", badFD},
	"fd_prestat_get":          {"ii", "i", badFD},
	"fd_prestat_dir_name":     {"iii", "i", badFD},
	"fd_pwrite":               {"iiiIi", "i", badFD},
	"fd_read":                 {"iiii", "i", badFD},
	"fd_readdir":              {"iiiIi", "i", badFD},
	"fd_renumber":             {"ii", "i", badFD},
	"fd_seek":                 {"iIii", "i", badFD},
	"fd_sync":                 {"i", "i", badFD},
	"fd_tell":                 {"ii", "i", badFD},
	"fd_write":                {"iiii", "i", write},
	"path_create_directory":   {"iii", "i", badFD},
	"path_filestat_get":       {"iiiii", "i", badFD},
	"path_filestat_set_times": {"iiiiIIi", "i", badFD},
	"path_link":               {"iiiiiii", "i", badFD},
	"path_open":               {"iiiiiIIii", "i", badFD},
	"path_readlink":           {"iiiiii", "i", badFD},
	"path_remove_directory":   {"iii", "i", badFD},
	"path_rename":             {"iiiiii", "i", badFD},
	"path_symlink":            {"iiiii", "i", badFD},
	"path_unlink_file":        {"iii", "i", badFD},
	"poll_oneoff":             {"iiii", "i", poll},
	"proc_exit":               {"i", "", exit},
	"proc_raise":              {"i", "i", noSys},
	"random_get":              {"ii", "i", random},
	"sched_yield":             {"", "i", succeed},
	"sock_accept":             {"iii", "i", badFD},
	"sock_recv":               {"iiiiii", "i", badFD},
	"sock_send":               {"iiiii", "i", badFD},
	"sock_shutdown":           {"ii", "i", badFD},
}

func succeed(*hostCall) uint32 { return wasiOK }
func badFD(*hostCall) uint32   { return wasiBadFD }
func noSys(*hostCall) uint32   { return wasiNoSys }

func errno(ok bool) uint32 {
	if ok {
		return wasiOK
	}
	return wasiFault
}

// twoZeros says that there are no arguments or variables, and that they take no bytes.
func twoZeros(c *hostCall) uint32 {
	return errno(c.mem.WriteUint32Le(c.u32(0), 0) && c.mem.WriteUint32Le(c.u32(1), 0))
}

func clockResolution(c *hostCall) uint32 { return errno(c.mem.WriteUint64Le(c.u32(1), clockSteps)) }

func clockTime(c *hostCall) uint32 {
	c.inst.clock += clockSteps
	return errno(c.mem.WriteUint64Le(c.u32(2), uint64(c.inst.clock)))
}

// random writes the next numbers of a fixed sequence (splitmix64).
func random(c *hostCall) uint32 {
	c.inst.charge(int64(c.u32(1)))
	out, ok := c.mem.Read(c.u32(0), c.u32(1))
	if !ok {
		return wasiFault
	}
	var word [8]byte
	for len(out) > 0 {
		c.inst.random += 0x9e3779b97f4a7c15
		z := c.inst.random
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		binary.LittleEndian.PutUint64(word[:], z^z>>31)
		out = out[copy(out, word[:]):]
	}
	return wasiOK
}

// poll lets a plugin sleep without anybody waiting: the clock jumps to the earliest deadline that
// is asked for. Subscriptions have 48 bytes: user data at 0, the kind at 8 (0 is the clock), and of
// a clock its time-out at 24 and flags at 40, whose first bit says that the time-out is absolute.
// The event has 32 bytes: user data at 0, error at 8, kind at 10.
func poll(c *hostCall) uint32 {
	in, out, n, count := c.u32(0), c.u32(1), c.u32(2), c.u32(3)
	c.inst.charge(int64(n) * 8)
	earliest, user, found := uint64(math.MaxUint64), uint64(0), false
	for i := range uint64(n) {
		sub, ok := c.mem.Read(in+uint32(48*i), 48)
		if !ok || 48*i > math.MaxUint32 {
			return wasiFault
		}
		if sub[8] != 0 {
			continue
		}
		deadline := binary.LittleEndian.Uint64(sub[24:])
		if sub[40]&1 == 0 {
			deadline += uint64(c.inst.clock)
		}
		if !found || deadline < earliest {
			earliest, user, found = deadline, binary.LittleEndian.Uint64(sub), true
		}
	}
	if !found {
		return wasiNoSys
	}
	if earliest <= math.MaxInt64 {
		c.inst.clock = max(c.inst.clock, int64(earliest))
	}
	var event [32]byte
	binary.LittleEndian.PutUint64(event[:], user)
	return errno(c.mem.Write(out, event[:]) && c.mem.WriteUint32Le(count, 1))
}

// exitError ends a plugin that calls proc_exit.
type exitError struct{ code uint32 }

func (e *exitError) Error() string { return fmt.Sprintf("it exited with code %d", e.code) }

// exit unwinds the plugin: the engine turns the panic into an error of the call.
func exit(c *hostCall) uint32 { panic(&exitError{c.u32(0)}) }

// callLog is tierd.log(pointer, length).
func callLog(c *hostCall) uint32 {
	n := min(c.u32(1), uint32(c.inst.code.limits.LogLineBytes))
	c.inst.charge(int64(n))
	if text, ok := c.mem.Read(c.u32(0), n); ok {
		c.inst.logLine(text)
	}
	return 0
}

// write collects what is written to the standard outputs into lines for the log. The panic
// message of a Go program arrives this way.
func write(c *hostCall) uint32 {
	vectors, n := c.u32(1), c.u32(2)
	if fd := c.u32(0); fd != 1 && fd != 2 {
		return wasiBadFD
	}
	var total uint32
	for i := range uint64(n) {
		c.inst.charge(hostCallFuel)
		v, ok := c.mem.Read(vectors+uint32(8*i), 8)
		if !ok || 8*i > math.MaxUint32 {
			return wasiFault
		}
		size := binary.LittleEndian.Uint32(v[4:])
		text, ok := c.mem.Read(binary.LittleEndian.Uint32(v), size)
		if !ok {
			return wasiFault
		}
		c.inst.charge(int64(size))
		c.inst.output(text)
		total += size
	}
	return errno(c.mem.WriteUint32Le(c.u32(3), total))
}

// output adds text to the line that is being written, and logs it where it ends.
func (i *instance) output(text []byte) {
	for len(text) > 0 {
		part, rest, ended := bytes.Cut(text, []byte{'\n'})
		room := i.code.limits.LogLineBytes - len(i.partial)
		i.partial = append(i.partial, part[:min(len(part), room)]...)
		if ended {
			i.logLine(i.partial)
			i.partial = i.partial[:0]
		}
		text = rest
	}
}

// logLine cleans a line up and hands it on if the rate allows.
func (i *instance) logLine(text []byte) {
	line := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(text), "\uFFFD"))
	line = strings.TrimSpace(line)
	if line == "" {
		return
	}
	if i.said == "" {
		i.said = line
	}
	i.log.line(i.code, i.now, line)
}
