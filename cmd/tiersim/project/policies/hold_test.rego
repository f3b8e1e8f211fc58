package tierd.hold_test

import data.tierd.hold

test_held if {
	hold.deny == {"held for case 2026-17"} with data.holds as {"payroll": {"case": "2026-17"}}
		with input.table.name as "payroll"
}

test_others_are_free if {
	count(hold.deny) == 0 with data.holds as {"payroll": {"case": "2026-17"}}
		with input.table.name as "clicks"
}
