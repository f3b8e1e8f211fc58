/* tierd.h: the C side of tierd's plugin ABI v1, in one header and without a C library.
 *
 * A plugin is one file that includes this header and defines two functions:
 *
 *	int  tierd_on_configure(tierd_json setup);
 *	void tierd_on_select(const tierd_batch *b, int64_t *score, uint8_t *action);
 *
 * Build it with
 *
 *	clang --target=wasm32 -O2 -mbulk-memory -ffreestanding -nostdlib -Wl,--no-entry \
 *		plugin.c -o plugin.wasm
 */
#ifndef TIERD_H
#define TIERD_H

#include <stddef.h>
#include <stdint.h>

#define TIERD_EXPORT(name) __attribute__((export_name(#name), visibility("default"), used))

/* What a plugin asks for a segment. */
enum {
	TIERD_NONE = 0,
	TIERD_HOLD = 1, /* do not copy it yet; tierd bounds for how long */
	TIERD_KEEP = 2, /* do not delete it locally */
};

/* The bits of tiers. */
enum { TIERD_LOCAL = 1, TIERD_REMOTE = 2 };

/* The values of tier_state. Take any other value for TIERD_STATE_UNKNOWN. */
enum {
	TIERD_STATE_UNKNOWN = 0,
	TIERD_STATE_ENABLED = 1,
	TIERD_STATE_DISABLING = 2,
	TIERD_STATE_DISABLED = 3,
};

/* The candidates to judge. Row i of every column is the i-th segment; the segments of a log stand
 * together and ascend by offset. Times and ages are in nanoseconds. */
typedef struct {
	uint32_t n;    /* segments */
	uint32_t logs; /* how many logs there are */
	int64_t now;   /* since the Unix epoch */
	const int64_t *base, *next; /* offsets [base, next) */
	const int64_t *bytes;
	const int64_t *max_timestamp; /* since the Unix epoch; 0 if there is none usable */
	const int64_t *age;           /* 0 if it is not known */
	const int64_t *local_bytes;   /* of the segment's log, on local disk */
	const int64_t *disk_used, *disk_free; /* bytes of the disk that the log lies on */
	const int64_t *table; /* index in the tables of the setup; -1 if it is not there */
	const int64_t *log;   /* 0 to logs-1 */
	const uint8_t *tiers, *copied, *verified, *tier_state;
} tierd_batch;

/* A value within a JSON text. The empty slice is "not there". */
typedef struct {
	const char *p, *end;
} tierd_json;

/* tierd_on_configure is called once, with
 *
 *	{"abi": 1, "plugin": "name", "node": "name", "config": {...},
 *	 "tables": [{"name": "orders", "labels": {"tier": "hot"}}, ...]}
 *
 * and answers 0, or something else to refuse the configuration. The text stays where it is. */
int tierd_on_configure(tierd_json setup);

/* tierd_on_select answers a batch: every score and action is 0 to begin with, and what should be
 * copied first gets the highest score. */
void tierd_on_select(const tierd_batch *b, int64_t *score, uint8_t *action);

__attribute__((import_module("tierd"), import_name("log"))) void tierd_host_log(const char *, size_t);

/* tierd_log writes a line to tierd's log. Its length and rate are bounded. */
static inline void tierd_log(const char *text)
{
	size_t n = 0;
	while (text[n])
		n++;
	tierd_host_log(text, n);
}

/* Memory is a stack: what is taken during tierd_on_configure stays for good, what is taken during
 * tierd_on_select is gone after it. */
extern uint8_t __heap_base;
static uintptr_t tierd_top, tierd_kept;

/* tierd_take returns n bytes, aligned to 16 and not set to anything. It traps where there is no
 * more memory: tierd then goes on without the plugin. */
static inline void *tierd_take(size_t n)
{
	uintptr_t p = tierd_top ? tierd_top : ((uintptr_t)&__heap_base + 15) & ~(uintptr_t)15;
	size_t have = __builtin_wasm_memory_size(0) * 65536ul;
	if (n > UINT32_MAX - 65536 - p)
		__builtin_trap();
	tierd_top = p + ((n + 15) & ~(size_t)15);
	if (tierd_top > have &&
	    __builtin_wasm_memory_grow(0, (tierd_top - have + 65535) / 65536) == (size_t)-1)
		__builtin_trap();
	return (void *)p;
}

/* tierd_zeros returns n bytes that are 0. */
static inline void *tierd_zeros(size_t n)
{
	void *p = tierd_take(n);
	__builtin_memset(p, 0, n);
	return p;
}

/* --- JSON ------------------------------------------------------------------------------------
 *
 * The host sends well-formed JSON. Reading it takes no memory: a value is a slice of the text. */

static inline const char *tierd_json_space(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
		p++;
	return p;
}

/* tierd_json_skip returns the end of the value that begins at p. */
static inline const char *tierd_json_skip(const char *p, const char *end)
{
	int depth = 0, quoted = 0;
	for (; p < end; p++) {
		if (quoted) {
			if (*p == '\\')
				p++;
			else if (*p == '"' && (quoted = 0, depth == 0))
				return p + 1;
			continue;
		}
		switch (*p) {
		case '"':
			quoted = 1;
			break;
		case '{':
		case '[':
			depth++;
			break;
		case '}':
		case ']':
			if (depth == 0)
				return p;
			if (--depth == 0)
				return p + 1;
			break;
		case ',':
		case ':':
			if (depth == 0)
				return p;
			break;
		}
	}
	return end;
}

/* tierd_json_next cuts the next element off an array or object that it has been opened with
 * tierd_json_open, and is false at the end. Keys and values of an object alternate. */
static inline int tierd_json_next(tierd_json *rest, tierd_json *value)
{
	const char *p = tierd_json_space(rest->p, rest->end);
	if (p >= rest->end || *p == ']' || *p == '}')
		return 0;
	value->p = p;
	value->end = tierd_json_skip(p, rest->end);
	p = tierd_json_space(value->end, rest->end);
	rest->p = p < rest->end && (*p == ',' || *p == ':') ? p + 1 : p;
	while (value->end > value->p && (uint8_t)value->end[-1] <= ' ')
		value->end--;
	return value->end > value->p;
}

/* tierd_json_open returns the inside of an array or object. */
static inline tierd_json tierd_json_open(tierd_json v)
{
	v.p = tierd_json_space(v.p, v.end);
	if (v.p < v.end && (*v.p == '[' || *v.p == '{'))
		v.p++;
	else
		v.p = v.end;
	return v;
}

/* tierd_json_is is whether v is the string. Escapes in v are not decoded: they differ. */
static inline int tierd_json_is(tierd_json v, const char *text)
{
	const char *p = v.p;
	if (p >= v.end || *p++ != '"')
		return 0;
	for (; *text; text++, p++)
		if (p >= v.end || *p != *text)
			return 0;
	return p + 1 == v.end && *p == '"';
}

/* tierd_json_same is whether two values are written the same. */
static inline int tierd_json_same(tierd_json a, tierd_json b)
{
	if (a.end - a.p != b.end - b.p)
		return 0;
	for (; a.p < a.end; a.p++, b.p++)
		if (*a.p != *b.p)
			return 0;
	return 1;
}

/* tierd_json_get returns the value of a key of an object; it is empty if it is not there. */
static inline tierd_json tierd_json_get(tierd_json object, const char *key)
{
	tierd_json rest = tierd_json_open(object), k, v;
	while (tierd_json_next(&rest, &k) && tierd_json_next(&rest, &v))
		if (tierd_json_is(k, key))
			return v;
	return (tierd_json){object.end, object.end};
}

/* tierd_json_has is whether v is there. */
static inline int tierd_json_has(tierd_json v) { return v.p < v.end; }

/* tierd_json_int returns a whole number, or otherwise if v is none. */
static inline int64_t tierd_json_int(tierd_json v, int64_t otherwise)
{
	int64_t x = 0;
	const char *p = v.p;
	int negative = p < v.end && *p == '-';
	if (negative)
		p++;
	if (p >= v.end)
		return otherwise;
	for (; p < v.end; p++) {
		if (*p < '0' || *p > '9' || x > (INT64_MAX - (*p - '0')) / 10)
			return otherwise;
		x = x * 10 + (*p - '0');
	}
	return negative ? -x : x;
}

/* tierd_json_count is how many elements an array has, and twice the keys of an object. */
static inline uint32_t tierd_json_count(tierd_json v)
{
	uint32_t n = 0;
	tierd_json rest = tierd_json_open(v), each;
	while (tierd_json_next(&rest, &each))
		n++;
	return n;
}

/* --- the exports ----------------------------------------------------------------------------- */

TIERD_EXPORT(tierd_abi_v1) void tierd_export_abi_v1(void) {}

TIERD_EXPORT(tierd_alloc) void *tierd_export_alloc(size_t n)
{
	if (tierd_kept)
		tierd_top = tierd_kept;
	return tierd_take(n);
}

TIERD_EXPORT(tierd_configure) int tierd_export_configure(const char *p, size_t n)
{
	int status = tierd_on_configure((tierd_json){p, p + n});
	tierd_kept = tierd_top;
	return status;
}

static inline uint32_t tierd_u32(const uint8_t *p) { return *(const uint32_t *)p; }

TIERD_EXPORT(tierd_select) uint64_t tierd_export_select(const uint8_t *in, uint32_t n)
{
	const int64_t *wide[11] = {0};
	const uint8_t *narrow[15] = {0};
	const uint8_t *entry = in + tierd_u32(in + 4);
	/* Columns with other ids are of a newer tierd and are passed over. */
	for (uint32_t k = tierd_u32(in + 8); k > 0; k--, entry += 8) {
		uint32_t id = *(const uint16_t *)entry, at = tierd_u32(entry + 4);
		if (entry[2] == 1 && id < 11)
			wide[id] = (const int64_t *)(in + at);
		else if (entry[2] == 2 && id < 15)
			narrow[id] = in + at;
	}
	/* Columns that an older tierd does not send are zeros. */
	void *zeros = 0;
	for (uint32_t id = 1; id < 15; id++) {
		if (id < 11 ? !wide[id] : !narrow[id]) {
			if (!zeros)
				zeros = tierd_zeros(8 * n);
			if (id < 11)
				wide[id] = zeros;
			else
				narrow[id] = zeros;
		}
	}
	tierd_batch b = {
		.n = n, .logs = tierd_u32(in + 24), .now = *(const int64_t *)(in + 32),
		.base = wide[1], .next = wide[2], .bytes = wide[3], .max_timestamp = wide[4],
		.age = wide[5], .local_bytes = wide[6], .disk_used = wide[7], .disk_free = wide[8],
		.table = wide[9], .log = wide[10],
		.tiers = narrow[11], .copied = narrow[12], .verified = narrow[13],
		.tier_state = narrow[14],
	};
	uint8_t *out = tierd_zeros(9 * n);
	tierd_on_select(&b, (int64_t *)out, out + 8 * n);
	return (uint64_t)(uintptr_t)out << 32 | 9 * n;
}

#endif
