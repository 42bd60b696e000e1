package ref

import "ebtrain/ddp/graph"

// matmul sets z[i,j] = Σₖ A[i,k]·B[k,j], A being x or xᵀ, B being y or yᵀ.
func matmul(op graph.MatMul) kernel {
	return func(in, out []*value) error {
		x, y, z := in[0], in[1], out[0]
		m, n := z.typ.Shape.At(0), z.typ.Shape.At(1)
		inner, xi, xk := x.typ.Shape.At(1), x.typ.Shape.At(1), 1
		if op.TransX {
			inner, xi, xk = x.typ.Shape.At(0), 1, x.typ.Shape.At(1)
		}
		yk, yj := y.typ.Shape.At(1), 1
		if op.TransY {
			yk, yj = 1, y.typ.Shape.At(1)
		}
		for i := range m {
			for j := range n {
				var sum float64
				for k := range inner {
					sum += x.f[i*xi+k*xk] * y.f[k*yk+j*yj]
				}
				z.f[i*n+j] = sum
			}
		}
		return nil
	}
}
