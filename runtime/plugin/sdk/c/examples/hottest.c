/* hottest has the hottest tables copied first.
 *
 * The heat of a table is how many bytes of its segments hold records of the last hour. Within a
 * table, and among tables of the same heat, the built-in order stands.
 *
 *	config: {window_seconds: 3600}
 */
#include "tierd.h"

#define SECOND INT64_C(1000000000)

static int64_t window; /* ns */
static uint32_t tables;

int tierd_on_configure(tierd_json setup)
{
	tierd_json config = tierd_json_open(tierd_json_get(setup, "config")), key, value;
	window = 3600 * SECOND;
	/* A misspelt key would leave the default in force. */
	while (tierd_json_next(&config, &key) && tierd_json_next(&config, &value)) {
		int64_t n = tierd_json_is(key, "window_seconds") ? tierd_json_int(value, 0) : 0;
		if (n <= 0 || n > INT64_MAX / SECOND) {
			tierd_log("hottest: want config {window_seconds: NUMBER}, at least 1, and nothing else");
			return 1;
		}
		window = n * SECOND;
	}
	tables = tierd_json_count(tierd_json_get(setup, "tables"));
	return 0;
}

/* slot is where the heat of a table stands; the last one is of tables that are not known. */
static uint32_t slot(int64_t table) { return table < 0 || table >= tables ? tables : table; }

void tierd_on_select(const tierd_batch *b, int64_t *score, uint8_t *action)
{
	int64_t *heat = tierd_zeros((tables + 1) * sizeof *heat);
	int64_t oldest = b->now - window;
	(void)action;
	for (uint32_t i = 0; i < b->n; i++)
		if (b->max_timestamp[i] > oldest)
			heat[slot(b->table[i])] += b->bytes[i];
	for (uint32_t i = 0; i < b->n; i++)
		score[i] = heat[slot(b->table[i])];
}
