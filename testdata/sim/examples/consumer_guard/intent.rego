# Nothing of orders goes that billing has not read.
package tierd.sim

violation contains msg if {
	input.table.name == "orders"
	input.segment.next > input.facts.offsets.billing[input.log.id]
	msg := sprintf("%s@%d goes unread", [input.log.id, input.segment.base])
}
