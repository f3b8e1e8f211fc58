# METADATA
# title: Legal hold
# description: |
#   Keeps the tables that a hold names, in both tiers, until the hold is over. The holds are data:
#   a list under the key holds, as in holds.yaml.
# scope: package
package tierd.legal_hold

# METADATA
# title: Held
# description: A hold without a date, or with one that is still to come, keeps.
# custom:
#   code: legal-hold
deny contains reason if {
	some hold in data.holds
	glob.match(hold.table, ["/"], input.table.name)
	not over(hold)
	reason := sprintf("held for case %s", [hold.case])
}

over(hold) if time.parse_rfc3339_ns(hold.until) <= input.now_ns
