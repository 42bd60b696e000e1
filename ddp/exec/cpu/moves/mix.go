package moves

import "ebtrain/ddp/exec/cpu/array"

// source is an operand of a mix, and its weight.
type source[T array.Number] struct {
	x []T
	w T
}

// mixer sets y to the sum of w·x over the sources, added up in their order.
type mixer[T array.Number] func(y []T, from []source[T])

// mix is a mixer.
func mix[T array.Number](y []T, from []source[T]) {
	clear(y)
	for _, s := range from {
		axpy(y, s.x, s.w)
	}
}
