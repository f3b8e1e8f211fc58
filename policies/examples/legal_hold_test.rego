package tierd.legal_hold_test

import data.tierd.legal_hold

start := time.parse_rfc3339_ns("2027-01-15T08:00:00Z")

holds := [
	{"table": "payroll*", "case": "2026-17"},
	{"table": "orders", "case": "2026-23", "until": "2027-06-30T00:00:00Z"},
]

asked(table, now_ns) := {"table": {"name": table}, "now_ns": now_ns}

test_held_without_a_date if {
	legal_hold.deny == {"held for case 2026-17"} with data.holds as holds
		with input as asked("payroll-eu", start)
}

test_held_until_its_date if {
	until := time.parse_rfc3339_ns("2027-06-30T00:00:00Z")
	count(legal_hold.deny) == 1 with data.holds as holds with input as asked("orders", until - 1)
	count(legal_hold.deny) == 0 with data.holds as holds with input as asked("orders", until)
}

test_others_are_free if {
	count(legal_hold.deny) == 0 with data.holds as holds with input as asked("clicks", start)
}
