# METADATA
# title: Working hours
# description: Deletes nothing while people work, from Monday to Friday, 08:00 to 18:00 UTC.
# scope: package
package tierd.working_hours

# METADATA
# title: Not now
# custom:
#   code: working-hours
deny contains sprintf("nothing is deleted on a %s before 18:00 UTC", [day]) if {
	day := time.weekday(input.now_ns)
	not day in {"Saturday", "Sunday"}
	[hour, _, _] := time.clock(input.now_ns)
	hour >= 8
	hour < 18
}
