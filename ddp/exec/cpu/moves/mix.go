package moves

import "ebtrain/ddp/exec/cpu/array"

// source is an operand of a mix, and its weight.
type source[T array.Number] struct {
	x []T
	w T
}

// pixels are the results of a mix: count of them, of n numbers each. The first has
// what it is made of at the beginning of y and of each source; the next lies dy numbers
// further in y, and dx in the sources.
type pixels struct{ count, n, dy, dx int }

// mixer sets each pixel of y to the sum of w·x over the sources, added up in their
// order.
type mixer[T array.Number] func(y []T, from []source[T], p pixels)

// mix is a mixer.
func mix[T array.Number](y []T, from []source[T], p pixels) {
	for i := range p.count {
		d := y[i*p.dy:][:p.n]
		clear(d)
		for _, s := range from {
			axpy(d, s.x[i*p.dx:], s.w)
		}
	}
}
