/* drain gets a node ready to be retired: the tables that matter most are copied first, and of
 * them the logs with the least left to copy, so that whole logs become free of this node as soon
 * as possible.
 *
 *	config: {node: broker-1, first: [orders, payments]}
 *
 * The same configuration can be given to every node: on any other node than the named one all
 * scores are 0, and the built-in order stands.
 */
#include "tierd.h"

static int64_t *rank; /* by table: higher goes first; 0 for tables that are not listed */
static uint32_t tables;
static int active;

int tierd_on_configure(tierd_json setup)
{
	tierd_json config = tierd_json_get(setup, "config");
	tierd_json node = tierd_json_get(config, "node"), first = tierd_json_get(config, "first");
	tierd_json list = tierd_json_get(setup, "tables"), table;
	if (!tierd_json_has(node)) {
		tierd_log("drain: config has no node; want the name of the node to drain");
		return 1;
	}
	active = tierd_json_same(node, tierd_json_get(setup, "node"));
	tables = tierd_json_count(list);
	rank = tierd_zeros(tables * sizeof *rank);
	list = tierd_json_open(list);
	for (uint32_t t = 0; tierd_json_next(&list, &table); t++) {
		tierd_json wanted = tierd_json_open(first), name;
		for (int64_t r = tierd_json_count(first); tierd_json_next(&wanted, &name); r--)
			if (tierd_json_same(name, tierd_json_get(table, "name")))
				rank[t] = r;
	}
	return 0;
}

/* A table's rank stands above anything that a log can have left, which is below 2^50 bytes. */
enum { LEFT_BITS = 50 };

void tierd_on_select(const tierd_batch *b, int64_t *score, uint8_t *action)
{
	(void)action;
	if (!active)
		return;
	int64_t *left = tierd_zeros(b->logs * sizeof *left);
	for (uint32_t i = 0; i < b->n; i++)
		if (!b->copied[i])
			left[b->log[i]] += b->bytes[i];
	for (uint32_t i = 0; i < b->n; i++) {
		int64_t t = b->table[i], r = t < 0 || t >= tables ? 0 : rank[t];
		score[i] = (r << LEFT_BITS) - left[b->log[i]];
	}
}
