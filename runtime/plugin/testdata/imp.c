/* imp is a plugin that behaves as badly as its configuration says, for tests of whoever runs it.
 *
 *	config: {moods: [trap, hold, keep], seed: 7}
 *
 * For each batch it takes one of the moods, by the batch and the seed alone: an instance that was
 * discarded after a fault and one that was not do the same.
 */
#include "tierd.h"

static tierd_json moods;
static uint64_t seed;
static uint32_t count;

int tierd_on_configure(tierd_json setup)
{
	tierd_json config = tierd_json_get(setup, "config");
	moods = tierd_json_get(config, "moods");
	count = tierd_json_count(moods);
	seed = (uint64_t)tierd_json_int(tierd_json_get(config, "seed"), 0);
	return 0;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

static volatile uint64_t sink;

__attribute__((noinline)) static uint64_t recurse(uint64_t n)
{
	return n == 0 ? sink : recurse(n + 1) ^ (sink + n);
}

/* act does what the mood says for all segments. */
static void act(tierd_json mood, uint64_t h, const tierd_batch *b, int64_t *score, uint8_t *action)
{
	if (tierd_json_is(mood, "trap"))
		__builtin_trap();
	while (tierd_json_is(mood, "spin"))
		sink++;
	while (tierd_json_is(mood, "hoard"))
		tierd_take(1 << 20);
	while (tierd_json_is(mood, "chatter"))
		tierd_log("and another thing");
	if (tierd_json_is(mood, "recurse"))
		sink = recurse(h | 1);
	for (uint32_t i = 0; i < b->n; i++) {
		uint64_t r = mix(mix(h, (uint64_t)b->base[i]), (uint64_t)b->log[i]);
		if (tierd_json_is(mood, "hold"))
			action[i] = TIERD_HOLD;
		else if (tierd_json_is(mood, "keep"))
			action[i] = TIERD_KEEP;
		else if (tierd_json_is(mood, "garbage"))
			action[i] = (uint8_t)(3 + r % 253);
		else if (tierd_json_is(mood, "any"))
			action[i] = (uint8_t)(r % 3);
		if (!tierd_json_is(mood, "none"))
			score[i] = r % 7 == 0 ? INT64_MIN : r % 7 == 1 ? INT64_MAX : (int64_t)r;
	}
}

void tierd_on_select(const tierd_batch *b, int64_t *score, uint8_t *action)
{
	uint64_t h = mix(seed, (uint64_t)b->now);
	for (uint32_t i = 0; i < b->n; i++)
		h = mix(h, (uint64_t)b->base[i]);
	if (count == 0)
		return;
	tierd_json rest = tierd_json_open(moods), mood = moods;
	for (uint32_t k = h % count + 1; k > 0; k--)
		tierd_json_next(&rest, &mood);
	act(mood, h, b, score, action);
}
