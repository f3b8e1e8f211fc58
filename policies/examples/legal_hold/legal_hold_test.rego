package tierd.legal_hold_test

import data.tierd.legal_hold

holds := {
	"segment_span": "168h",
	"tables": {
		"payroll": [{"case": "2026-17"}],
		"orders": [{
			"case": "2026-23", "from": "2026-01-01T00:00:00Z", "to": "2026-04-01T00:00:00Z",
			"until": "2029-06-30T00:00:00Z",
		}],
	},
	"logs": {"clicks/7": [{"case": "2026-31", "base": 1000, "next": 2000}]},
	"patterns": {"hr-*": [{"case": "2026-40"}]},
}

ns(text) := time.parse_rfc3339_ns(text)

# A segment [1500, 1600) of a log 7 whose newest record was written at the given time.
asked(table, written) := {
	"now_ns": ns("2027-01-15T08:00:00Z"),
	"table": {"name": table},
	"log": {"id": sprintf("%s/7", [table])},
	"segment": {"base": 1500, "next": 1600, "max_timestamp_ns": ns(written)},
}

# changed gives it with other values at paths such as /segment/base.
changed(in_, values) := json.patch(in_, [patch |
	some path, value in values
	patch := {"op": "add", "path": path, "value": value}
])

test_a_table_is_held if {
	legal_hold.deny == {"held for case 2026-17"} with data.holds as holds
		with input as asked("payroll", "2026-02-01T00:00:00Z")
}

test_a_pattern_holds if {
	legal_hold.deny == {"held for case 2026-40"} with data.holds as holds
		with input as asked("hr-reviews", "2026-02-01T00:00:00Z")
}

test_others_are_free if {
	count(legal_hold.deny) == 0 with data.holds as holds
		with input as asked("thr-reviews", "2026-02-01T00:00:00Z")
}

test_until_its_date if {
	in_ := asked("orders", "2026-02-01T00:00:00Z")
	until := ns("2029-06-30T00:00:00Z")
	count(legal_hold.deny) == 1 with data.holds as holds
		with input as changed(in_, {"/now_ns": until - 1})
	count(legal_hold.deny) == 0 with data.holds as holds
		with input as changed(in_, {"/now_ns": until})
}

# Written before the range, in it, and so long after it that no record of the segment can be in it.
test_a_range_of_time[written] if {
	some written, want in {
		"2025-12-31T23:59:59Z": 0,
		"2026-01-01T00:00:00Z": 1,
		"2026-04-07T23:59:59Z": 1,
		"2026-04-08T00:00:00Z": 0,
	}
	count(legal_hold.deny) == want with data.holds as holds with input as asked("orders", written)
}

test_without_a_span_nothing_lies_behind_a_range if {
	count(legal_hold.deny) == 1 with data.holds as json.remove(holds, ["/segment_span"])
		with input as asked("orders", "2027-01-01T00:00:00Z")
}

test_without_a_timestamp_nothing_lies_outside if {
	count(legal_hold.deny) == 1 with data.holds as holds with input as json.remove(
		asked("orders", "2020-01-01T00:00:00Z"),
		["/segment/max_timestamp_ns"],
	)
}

# A segment that ends where the hold begins, one that holds an offset of it, and one behind it.
test_a_range_of_offsets[note] if {
	some note, c in {
		"before": {"base": 900, "next": 1000, "want": 0},
		"first": {"base": 900, "next": 1001, "want": 1},
		"around": {"base": 0, "next": 9000, "want": 1},
		"last": {"base": 1999, "next": 3000, "want": 1},
		"behind": {"base": 2000, "next": 3000, "want": 0},
	}
	in_ := changed(
		asked("clicks", "2026-02-01T00:00:00Z"),
		{"/segment/base": c.base, "/segment/next": c.next},
	)
	count(legal_hold.deny) == c.want with data.holds as holds with input as in_
}

# A hold that somebody wrote otherwise than was meant holds more, and never less.
test_what_is_not_understood_holds[note] if {
	some note, hold in {
		"no case": {},
		"a text": "2026-17",
		"nothing": null,
		"a misspelt key": {"case": "9", "bsae": 5000},
		"a base that is a text": {"case": "9", "base": "5000"},
		"a next that is nothing": {"case": "9", "next": null},
	}
	count(legal_hold.deny) == 1 with input as asked("payroll", "2026-02-01T00:00:00Z")
		with data.holds as {"tables": {"payroll": [hold]}, "logs": {}, "patterns": {}}
}

test_a_text_is_the_case if {
	legal_hold.deny == {"held for case 2026-17", "held for case without a name"}
		with input as asked("payroll", "2026-02-01T00:00:00Z")
		with data.holds as {"tables": {"payroll": ["2026-17", {}]}, "logs": {}, "patterns": {}}
}
