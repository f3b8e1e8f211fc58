# METADATA
# title: Built-in retention
# description: |
#   Decides by time, size and count whether a segment may go. Every limit comes from the table's
#   configuration. A limit that is not set is absent from the input, so that its rule is undefined
#   and never fires; a TTL of 0 keeps for ever.
#
#   Three sets answer: `expire` for local deletions, `expire_remote` for deletions from the store,
#   and `keep`, which says of each limit that is not reached what it waits for, and counts only
#   where nothing expires. Every input has a member in one of them.
# scope: package
package tierd.builtin

# METADATA
# title: table.log.local-ttl
# description: A copied segment goes once it is older than the table's local TTL.
# custom:
#   code: local-ttl
expire contains reason if {
	local_copied
	older_than(input.table.local_ttl_ns)
	reason := sprintf("age %s, over the local TTL of %s", [age, duration(input.table.local_ttl_ns)])
}

# METADATA
# title: table.log.local-bytes
# description: |
#   Copied segments go, oldest first, while the rest still fills the limit: a segment that would
#   take the log below it stays.
# custom:
#   code: local-bytes
expire contains reason if {
	local_copied
	beyond(input.log.local_bytes, input.table.local_bytes)
	reason := sprintf("%d bytes local, over the limit of %d", [
		input.log.local_bytes,
		input.table.local_bytes,
	])
}

# METADATA
# title: table.log.tiered.local-segments
# description: Copied segments beyond the newest N go; the active segment counts as one of the N.
# custom:
#   code: local-segments
expire contains reason if {
	local_copied
	input.segment.ordinal_from_newest >= input.table.local_segments
	reason := sprintf("number %d from the newest, the limit is %d", [
		input.segment.ordinal_from_newest + 1,
		input.table.local_segments,
	])
}

# METADATA
# title: table.log.ttl, with tiering off
# description: The only copy of a segment is the local one, and the table's TTL governs it.
# custom:
#   code: ttl
expire contains reason if {
	local_untiered
	older_than(input.table.ttl_ns)
	reason := sprintf("age %s, over the TTL of %s", [age, duration(input.table.ttl_ns)])
}

# METADATA
# title: table.log.bytes, with tiering off
# description: As table.log.local-bytes, for the only copy.
# custom:
#   code: bytes
expire contains reason if {
	local_untiered
	beyond(input.log.local_bytes, input.table.bytes)
	reason := sprintf("%d bytes, over the limit of %d", [input.log.local_bytes, input.table.bytes])
}

# METADATA
# title: table.log.ttl
# description: A remote segment goes once it is older than the table's TTL.
# custom:
#   code: ttl
expire_remote contains reason if {
	input.action == "delete_remote"
	older_than(input.table.ttl_ns)
	reason := sprintf("age %s, over the TTL of %s", [age, duration(input.table.ttl_ns)])
}

# METADATA
# title: table.log.bytes
# description: Remote segments go, oldest first, while the rest still fills the limit.
# custom:
#   code: bytes
expire_remote contains reason if {
	input.action == "delete_remote"
	beyond(input.log.remote_bytes, input.table.bytes)
	reason := sprintf("%d bytes remote, over the limit of %d", [
		input.log.remote_bytes,
		input.table.bytes,
	])
}

# METADATA
# title: Out of the log
# description: |
#   A copy that has left the log, by whichever limit or cause, is of no use any more: its objects
#   go, once readers have had their grace, which is for the guard to know.
# custom:
#   code: out-of-log
expire_remote contains reason if {
	input.action == "delete_remote"
	input.segment.out_of_log
	reason := sprintf("it is no longer part of the log, which begins at %d", [input.log.log_start])
}

# METADATA
# title: Orphans
# description: |
#   Objects that no manifest, attempt or tombstone names are of no use to anyone. That they are
#   such, and old enough, is for the guard to know.
# custom:
#   code: allowed
expire_remote contains "an orphan: nothing names it" if {
	input.action == "delete_orphan"
}

# METADATA
# title: remote.log.disable.policy=delete
# description: |
#   The remote data of a table goes when its tiering is turned off by `delete`, or when it is
#   dropped. What was denied then goes once it is no more.
# custom:
#   code: tiering-disabled
expire_remote contains "tiering was turned off with the policy delete, or the table was dropped" if {
	disabling
}

# METADATA
# title: Not copied
# description: A table that tiers keeps what lies above the copied offset, whatever the limits say.
# custom:
#   code: not-copied
keep contains reason if {
	local_tiered
	not copied
	reason := sprintf("the segment ends at %d, above the copied offset %d", [
		input.segment.next,
		input.log.copied_offset,
	])
}

# METADATA
# title: Within table.log.local-ttl
# custom:
#   code: local-ttl
keep contains reason if {
	local_copied
	reason := within(input.table.local_ttl_ns)
}

# METADATA
# title: Within table.log.local-bytes
# custom:
#   code: local-bytes
keep contains reason if {
	local_copied
	reason := fits(input.log.local_bytes, input.table.local_bytes)
}

# METADATA
# title: Within table.log.tiered.local-segments
# custom:
#   code: local-segments
keep contains reason if {
	local_copied
	input.segment.ordinal_from_newest < input.table.local_segments
	reason := sprintf("number %d from the newest, of %d that stay", [
		input.segment.ordinal_from_newest + 1,
		input.table.local_segments,
	])
}

# METADATA
# title: No limit on local segments
# custom:
#   code: retain-for-ever
keep contains "no local TTL, size or count limit is set" if {
	local_copied
	input.table.local_ttl_ns == 0
	not input.table.local_bytes
	not input.table.local_segments
}

# METADATA
# title: Within table.log.ttl
# custom:
#   code: ttl
keep contains reason if {
	last_copy
	reason := within(input.table.ttl_ns)
}

# METADATA
# title: Within table.log.bytes
# custom:
#   code: bytes
keep contains reason if {
	last_copy
	reason := fits(last_copy_bytes, input.table.bytes)
}

# METADATA
# title: No limit
# custom:
#   code: retain-for-ever
keep contains "no TTL and no size limit is set" if {
	last_copy
	input.table.ttl_ns == 0
	not input.table.bytes
}

# METADATA
# title: Not being disabled by delete
# custom:
#   code: tier-state
keep contains reason if {
	input.action == "disable_delete"
	not disabling
	reason := sprintf("the tier state is %s, remote.log.disable.policy is %s", [
		input.log.tier_state,
		input.table.disable_policy,
	])
}

# The ledger's tier state decides, not the configuration: it says which copies prove anything.
local_tiered if {
	input.action == "delete_local"
	input.log.tier_state == "ENABLED"
}

local_untiered if {
	input.action == "delete_local"
	input.log.tier_state in {"DISABLING", "DISABLED"}
}

copied if input.segment.next <= input.log.copied_offset

local_copied if {
	local_tiered
	copied
}

# With the local segment of a table that does not tier, or with the remote one, the last copy goes.
last_copy if local_untiered

last_copy if input.action == "delete_remote"

last_copy_bytes := input.log.local_bytes if local_untiered

last_copy_bytes := input.log.remote_bytes if input.action == "delete_remote"

disabling if {
	input.action == "disable_delete"
	input.log.tier_state in {"DISABLING", "DISABLED"}
	input.table.disable_policy == "delete"
}

older_than(ttl_ns) if {
	ttl_ns > 0
	input.segment.age_ns > ttl_ns
}

beyond(bytes, limit) if bytes - limit >= input.segment.bytes

# within is undefined where the TTL is 0 or over. It is due at the first nanosecond of being over.
within(ttl_ns) := {"msg": sprintf("age %s of %s", [age, duration(ttl_ns)]), "due_ns": due_ns} if {
	ttl_ns > 0
	input.segment.age_ns <= ttl_ns
	input.segment.age_source != "none"
	due_ns := (born + ttl_ns) + 1
}

# An mtime in the future gives an age of 0, and is not in the input: nobody knows when it is over.
within(ttl_ns) := sprintf("age %s of %s, from when the mtime is over", [age, duration(ttl_ns)]) if {
	ttl_ns > 0
	input.segment.age_source != "none"
	not born
}

within(ttl_ns) := "age not known: neither a record timestamp nor the file's mtime is usable" if {
	ttl_ns > 0
	input.segment.age_source == "none"
}

fits(bytes, limit) := reason if {
	bytes - limit < input.segment.bytes
	reason := sprintf("%d bytes of %d, this segment has %d", [bytes, limit, input.segment.bytes])
}

# born is when the age began.
born := input.now_ns - input.segment.age_ns if input.segment.age_ns > 0

born := input.segment.max_timestamp_ns if {
	input.segment.age_ns == 0
	input.segment.age_source == "record"
}

age := duration(input.segment.age_ns)

# duration gives nanoseconds in the two largest units that fit, rounded down.
duration(ns) := sprintf("%dd %dh", [floor(s / 86400), floor((s % 86400) / 3600)]) if {
	s := floor(ns / 1000000000)
	s >= 86400
} else := sprintf("%dh %dm", [floor(s / 3600), floor((s % 3600) / 60)]) if {
	s := floor(ns / 1000000000)
	s >= 3600
} else := sprintf("%dm %ds", [floor(s / 60), s % 60]) if {
	s := floor(ns / 1000000000)
	s >= 60
} else := sprintf("%dms", [floor(ns / 1000000)])
