package tierd.max_age_test

import data.tierd.max_age

classes := {"classes": {"tracking": "720h"}}

hour := 3600000000000

asked(class, age_ns) := {
	"now_ns": 1800000000000000000,
	"table": {"name": "visits", "labels": {"personal_data": class}},
	"log": {"id": "visits/0"},
	"segment": {"base": 0, "next": 100, "age_ns": age_ns, "age_source": "record"},
}

test_too_old_goes_from_both_tiers if {
	in_ := asked("tracking", (720 * hour) + 1)
	want := {"personal data of the class tracking is kept for 720h"}
	max_age.expire == want with data.max_age as classes with input as in_
	max_age.expire_remote == want with data.max_age as classes with input as in_
}

test_young_enough_stays if {
	in_ := asked("tracking", 720 * hour)
	count(max_age.expire) == 0 with data.max_age as classes with input as in_
	count(max_age.expire_remote) == 0 with data.max_age as classes with input as in_
}

test_an_unknown_age_is_no_age if {
	count(max_age.expire) == 0 with data.max_age as classes
		with input as asked("tracking", 10000 * hour)
		with input.segment.age_source as "none"
}

test_other_tables_are_not_concerned if {
	in_ := json.remove(asked("tracking", 10000 * hour), ["/table/labels/personal_data"])
	count(max_age.expire) == 0 with data.max_age as classes with input as in_
	count(max_age.deny) == 0 with data.max_age as classes with input as in_
}

test_an_unknown_class_keeps if {
	in_ := asked("trakking", 10000 * hour)
	count(max_age.expire_remote) == 0 with data.max_age as classes with input as in_
	max_age.deny == {
		"the label personal_data names the class trakking, which data.max_age has not",
	} with data.max_age as classes with input as in_
}
