package ref

import "fmt"

// gather sets y[i, …] = x[idx[i], …].
func gather[E number](in, out []*value) error {
	x, y := elements[E](in[0]), elements[E](out[0])
	return rows(in[1], in[0], func(at, k, n int) { copy(y[k*n:][:n], x[at*n:][:n]) })
}

// scatterAdd sets y[r, …] = Σ d[i, …] over the i with idx[i] = r.
func scatterAdd[E number](in, out []*value) error {
	out[0].zero()
	d, y := elements[E](in[0]), elements[E](out[0])
	return rows(in[1], out[0], func(at, k, n int) {
		for e := range n {
			y[at*n+e] += d[k*n+e]
		}
	})
}

// rows calls f(idx[k], k, elements per row) for each index into table.
func rows(idx, table *value, f func(at, k, n int)) error {
	v := table.typ.Shape.At(0)
	n := table.typ.Shape.With(0, 1).Len()
	for k, i := range idx.i {
		if i < 0 || i >= int64(v) {
			return fmt.Errorf("index %d at %d is outside a table of %d rows", i, k, v)
		}
		f(int(i), k, n)
	}
	return nil
}
