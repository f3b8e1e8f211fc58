# METADATA
# title: Business hours
# description: |
#   Deletes for good only while somebody is there who could say stop. Local segments, of which the
#   store has a copy, go at any time. The hours are data, as in business_hours.yaml.
# scope: package
package tierd.business_hours

# METADATA
# title: Not now
# custom:
#   code: business-hours
deny contains reason if {
	final
	not open
	reason := sprintf("the last copy goes only on %s from %d:00 to %d:00, %s", [
		concat(", ", data.business_hours.days),
		data.business_hours.from,
		data.business_hours.to,
		data.business_hours.timezone,
	])
}

# With what is not the local segment of a table that tiers, the last copy goes.
final if input.action != "delete_local"

final if input.log.tier_state != "ENABLED"

open if {
	here := [input.now_ns, data.business_hours.timezone]
	time.weekday(here) in data.business_hours.days
	[hour, _, _] := time.clock(here)
	is_number(data.business_hours.from) # to Rego every number is less than every text
	is_number(data.business_hours.to)
	hour >= data.business_hours.from
	hour < data.business_hours.to
	not holiday(time.date(here))
}

# To YAML a date without quotes is an instant, such as 2027-05-06T00:00:00Z.
holiday([year, month, day]) if {
	some date in data.business_hours.holidays
	startswith(date, sprintf("%04d-%02d-%02d", [year, month, day]))
}
