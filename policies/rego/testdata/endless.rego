# An expression whose end nobody sees, and which its text does not show: it compares two values that
# are made of a list, once for each of its elements, again and again.
package tierd.endless

deny contains "never" if {
	two := [d |
		some _ in [1, 2]
		list := numbers.range(1, 1000)
		a := [list | some _ in list]
		b := [a | some _ in list]
		c := [b | some _ in list]
		d := [c | some _ in list]
	]
	count({two[0], two[1]}) == 1
}
