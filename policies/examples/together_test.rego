# What the examples do where several of them speak.
package tierd.together_test

import data.tierd.legal_hold
import data.tierd.max_age

too_old := {
	"now_ns": 1800000000000000000,
	"table": {"name": "visits", "labels": {"personal_data": "tracking"}},
	"log": {"id": "visits/0"},
	"segment": {"base": 0, "next": 100, "age_ns": 36000000000000000, "age_source": "record"},
}

# Both speak, and a denial always wins.
test_a_hold_wins_over_the_maximum_age if {
	count(max_age.expire_remote) == 1 with data.max_age as {"classes": {"tracking": "720h"}}
		with input as too_old
	legal_hold.deny == {"held for case 9"} with input as too_old
		with data.holds as {"tables": {"visits": [{"case": "9"}]}, "logs": {}, "patterns": {}}
}
