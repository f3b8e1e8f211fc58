package tierd.builtin_test

import data.tierd.builtin

hour := 3600000000000

# A copied local segment, three hours old, of a table whose local TTL is a day.
base := {
	"action": "delete_local",
	"now_ns": 1800000000000000000,
	"table": {
		"name": "orders", "labels": {}, "ttl_ns": 168 * hour, "local_ttl_ns": 24 * hour,
		"tiering": true, "disable_policy": "retain", "compacted": false, "local_delete": "unlink",
	},
	"log": {
		"id": "orders/0", "layout": "plain", "tier_state": "ENABLED", "tier_epoch": 1,
		"copied_offset": 300, "source_start": 0, "local_start": 0, "log_start": 0, "local_end": 420,
		"remote_start": 0, "remote_end": 300, "local_bytes": 5000, "remote_bytes": 3000,
	},
	"segment": {
		"base": 0, "next": 100, "bytes": 1000, "age_ns": 3 * hour, "age_source": "record",
		"verified": true, "ordinal_from_newest": 4,
	},
	"node": {"name": "node-1", "disk_used_bytes": 1, "disk_free_bytes": 1},
	"facts": {},
}

# changed gives base with values at paths such as /segment/age_ns.
changed(values) := json.patch(base, [patch |
	some path, value in values
	patch := {"op": "add", "path": path, "value": value}
])

test_local_ttl_is_strict if {
	count(builtin.expire) == 0 with input as changed({"/segment/age_ns": 24 * hour})
	count(builtin.expire) == 1 with input as changed({"/segment/age_ns": (24 * hour) + 1})
}

test_local_ttl_of_zero_keeps_for_ever if {
	in_ := changed({"/segment/age_ns": 100000 * hour, "/table/local_ttl_ns": 0})
	count(builtin.expire) == 0 with input as in_
	builtin.keep == {"no local TTL, size or count limit is set"} with input as in_
}

test_uncopied_is_kept_whatever_the_limits if {
	in_ := changed({
		"/segment/age_ns": 100000 * hour, "/log/copied_offset": 99,
		"/table/local_bytes": 0, "/table/local_segments": 0,
	})
	count(builtin.expire) == 0 with input as in_
	builtin.keep == {"the segment ends at 100, above the copied offset 99"} with input as in_
}

test_copied_offset_is_exclusive if {
	count(builtin.expire) == 1 with input as changed({
		"/segment/age_ns": 25 * hour,
		"/log/copied_offset": 100,
	})
}

test_due_is_the_first_moment_of_being_over if {
	some reason in builtin.keep with input as base
	reason.due_ns == (base.now_ns + (21 * hour)) + 1
	count(builtin.expire) == 1 with input as changed({
		"/now_ns": reason.due_ns,
		"/segment/age_ns": (24 * hour) + 1,
	})
}

test_due_does_not_move_while_the_age_is_0 if {
	future := {"/segment/age_ns": 0, "/segment/max_timestamp_ns": base.now_ns + hour}
	some reason in builtin.keep with input as changed(future)
	reason.due_ns == (base.now_ns + (25 * hour)) + 1
	mtime := object.union(future, {"/segment/age_source": "mtime"})
	builtin.keep == {"age 0ms of 1d 0h, from when the mtime is over"} with input as changed(mtime)
	count(builtin.expire) == 0 with input as changed(mtime)
}

test_age_unknown_is_kept if {
	in_ := changed({"/segment/age_ns": 0, "/segment/age_source": "none"})
	count(builtin.expire) == 0 with input as in_
	count(builtin.keep) == 1 with input as in_
}

# 5000 bytes local, 1000 in the segment: it goes while the rest still fills the limit.
test_local_bytes if {
	count(builtin.expire) == 1 with input as changed({"/table/local_bytes": 4000})
	count(builtin.expire) == 0 with input as changed({"/table/local_bytes": 4001})
}

test_local_segments_counts_the_active_one if {
	count(builtin.expire) == 1 with input as changed({"/table/local_segments": 4})
	count(builtin.expire) == 0 with input as changed({"/table/local_segments": 5})
}

test_limits_of_the_table_do_not_touch_local_segments_of_a_tiered_table if {
	in_ := changed({"/table/bytes": 0, "/segment/age_ns": 100000 * hour, "/table/local_ttl_ns": 0})
	count(builtin.expire) == 0 with input as in_
}

test_untiered if {
	every state in ["DISABLING", "DISABLED"] {
		count(builtin.expire) == 0 with input as changed({
			"/log/tier_state": state, "/log/copied_offset": 0,
			"/segment/age_ns": 168 * hour,
		})
		count(builtin.expire) == 1 with input as changed({
			"/log/tier_state": state, "/log/copied_offset": 0,
			"/segment/age_ns": (168 * hour) + 1,
		})
		count(builtin.expire) == 1 with input as changed({
			"/log/tier_state": state, "/log/copied_offset": 0,
			"/table/bytes": 4000,
		})
		count(builtin.expire) == 0 with input as changed({
			"/log/tier_state": state, "/log/copied_offset": 0,
			"/table/local_bytes": 0, "/table/local_segments": 0,
		})
	}
}

test_remote_ttl_is_strict if {
	count(builtin.expire_remote) == 0 with input as changed({
		"/action": "delete_remote",
		"/segment/age_ns": 168 * hour,
	})
	count(builtin.expire_remote) == 1 with input as changed({
		"/action": "delete_remote",
		"/segment/age_ns": (168 * hour) + 1,
	})
}

test_remote_bytes if {
	count(builtin.expire_remote) == 1 with input as changed({
		"/action": "delete_remote",
		"/table/bytes": 2000,
	})
	count(builtin.expire_remote) == 0 with input as changed({
		"/action": "delete_remote",
		"/table/bytes": 2001,
	})
}

test_what_left_the_log_goes if {
	count(builtin.expire_remote) == 1 with input as changed({
		"/action": "delete_remote",
		"/segment/out_of_log": true,
	})
	count(builtin.expire_remote) == 0 with input as changed({
		"/action": "delete_remote",
		"/segment/out_of_log": false,
	})
	count(builtin.expire_remote) == 0 with input as changed({"/action": "delete_remote"})
	count(builtin.expire) == 0 with input as changed({"/segment/out_of_log": true})
}

test_remote_limits_do_not_touch_local_segments if {
	in_ := changed({"/segment/age_ns": 1000 * hour, "/table/local_ttl_ns": 0})
	count(builtin.expire_remote) == 0 with input as in_
}

test_orphan if count(builtin.expire_remote) == 1 with input as changed({"/action": "delete_orphan"})

test_disable_delete_needs_state_and_policy if {
	count(builtin.expire_remote) == 1 with input as changed({
		"/action": "disable_delete", "/log/tier_state": "DISABLING",
		"/table/disable_policy": "delete",
	})
	count(builtin.expire_remote) == 0 with input as changed({
		"/action": "disable_delete",
		"/log/tier_state": "DISABLING",
	})
	count(builtin.expire_remote) == 0 with input as changed({
		"/action": "disable_delete",
		"/table/disable_policy": "delete",
	})
}

test_keep_names_each_limit_that_is_not_reached if {
	in_ := changed({"/table/local_bytes": 8000, "/table/local_segments": 7})
	builtin.keep == {
		{"msg": "age 3h 0m of 1d 0h", "due_ns": (base.now_ns + (21 * hour)) + 1},
		"5000 bytes of 8000, this segment has 1000",
		"number 5 from the newest, of 7 that stay",
	} with input as in_
}

test_keep_names_the_limits_of_the_last_copy if {
	remote := changed({"/action": "delete_remote", "/table/bytes": 8000})
	builtin.keep == {
		{"msg": "age 3h 0m of 7d 0h", "due_ns": (base.now_ns + (165 * hour)) + 1},
		"3000 bytes of 8000, this segment has 1000",
	} with input as remote
	untiered := changed({"/log/tier_state": "DISABLED", "/table/ttl_ns": 0})
	builtin.keep == {"no TTL and no size limit is set"} with input as untiered
	sized := changed({"/log/tier_state": "DISABLED", "/table/ttl_ns": 0, "/table/bytes": 8000})
	builtin.keep == {"5000 bytes of 8000, this segment has 1000"} with input as sized
}

test_keep_says_why_nothing_is_disabled if {
	builtin.keep == {
		"the tier state is ENABLED, remote.log.disable.policy is retain",
	} with input as changed({"/action": "disable_delete"})
}

test_durations_in_words if {
	builtin.duration(0) == "0ms"
	builtin.duration(1500000000) == "1500ms"
	builtin.duration(61 * 1000000000) == "1m 1s"
	builtin.duration(hour - 1) == "59m 59s"
	builtin.duration(hour) == "1h 0m"
	builtin.duration((24 * hour) - 1) == "23h 59m"
	builtin.duration(36 * hour) == "1d 12h"
	builtin.duration(9223372036854775807) == "106751d 23h"
}
