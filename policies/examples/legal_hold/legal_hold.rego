# METADATA
# title: Legal hold
# description: |
#   Keeps in both tiers what a hold names: a table, a log, or every table that a pattern matches; all
#   of it, or what was written in a range of time, or what has certain offsets. A hold keeps until
#   somebody takes it out of the data, or until its own date.
#
#   The holds are data, as in holds.yaml. Those of a table or a log are looked up by its name, so
#   that ten thousand of them cost no more than one; patterns are tried one by one.
# scope: package
package tierd.legal_hold

# METADATA
# title: Held
# custom:
#   code: legal-hold
deny contains reason if {
	some hold in held
	not over(hold)
	not outside_time(hold)
	not outside_offsets(hold)
	reason := sprintf("held for case %v", [case(hold)])
}

# What is not understood of a hold bounds nothing: it holds all the same.
case(hold) := object.get(hold, "case", "without a name") if is_object(hold)

case(hold) := hold if not is_object(hold)

# The holds that may concern the segment.
held contains hold if some hold in data.holds.tables[input.table.name]

held contains hold if some hold in data.holds.logs[input.log.id]

held contains hold if {
	some pattern
	some hold in data.holds.patterns[pattern]
	glob.match(pattern, [], input.table.name)
}

over(hold) if time.parse_rfc3339_ns(hold.until) <= input.now_ns

# Whether all records of the segment were written outside of the range. Its newest record is known.
# Its oldest is not, but a segment covers at most data.holds.segment_span; without that, or without a
# usable timestamp, nothing is known to lie outside.
outside_time(hold) if input.segment.max_timestamp_ns < time.parse_rfc3339_ns(hold.from)

outside_time(hold) if {
	span := time.parse_duration_ns(data.holds.segment_span)
	input.segment.max_timestamp_ns - span >= time.parse_rfc3339_ns(hold.to)
}

# Offsets are as everywhere: base is the first, next the one behind the last. To Rego every number is
# less than every text, and more than null.
outside_offsets(hold) if {
	is_number(hold.base)
	input.segment.next <= hold.base
}

outside_offsets(hold) if {
	is_number(hold.next)
	input.segment.base >= hold.next
}
