# METADATA
# title: Maximum age
# description: |
#   Personal data must not be kept longer than its purpose allows (GDPR, article 5). Tables carry a
#   label personal_data with the name of a class; the longest time of each class is data, as in
#   max_age.yaml. What is older goes from both tiers, whatever the table's own limits say.
#
#   A hold wins: whatever denies, such as the policy legal_hold, keeps.
# scope: package
package tierd.max_age

# METADATA
# title: Older than its class allows, local
# custom:
#   code: max-age
expire contains reason if reason := too_old

# METADATA
# title: Older than its class allows, in the store
# custom:
#   code: max-age
expire_remote contains reason if reason := too_old

# METADATA
# title: No such class
# description: |
#   A class that nobody defined has no limit, which its author did not mean. Nothing of the table
#   goes until that is put right.
# custom:
#   code: unknown-class
deny contains reason if {
	class := input.table.labels.personal_data
	not data.max_age.classes[class]
	reason := sprintf("the label personal_data names the class %s, which data.max_age has not", [class])
}

# Undefined where the age is not known, and for tables without personal data.
too_old := reason if {
	class := input.table.labels.personal_data
	limit := data.max_age.classes[class]
	input.segment.age_source != "none"
	input.segment.age_ns > time.parse_duration_ns(limit)
	reason := sprintf("personal data of the class %s is kept for %s", [class, limit])
}
