package graph

import "fmt"

// MatMul is the matrix product A·B, where A is x or xᵀ and B is y or yᵀ:
// z[i,j] = Σₖ A[i,k]·B[k,j].
type MatMul struct{ TransX, TransY bool }

func (o MatMul) String() string {
	s := "matmul{x"
	if o.TransX {
		s += "ᵀ"
	}
	s += " y"
	if o.TransY {
		s += "ᵀ"
	}
	return s + "}"
}

func (o MatMul) Infer(in []Type) ([]Type, error) {
	if err := wantInputs(in, 2); err != nil {
		return nil, err
	}
	x, y := in[0].Shape, in[1].Shape
	if x.Rank() != 2 || y.Rank() != 2 || in[0].DType != in[1].DType || !in[0].DType.IsFloat() {
		return nil, fmt.Errorf("want two matrices of the same floating-point type")
	}
	m, k := x.At(0), x.At(1)
	if o.TransX {
		m, k = k, m
	}
	k2, n := y.At(0), y.At(1)
	if o.TransY {
		k2, n = n, k2
	}
	if k != k2 {
		return nil, fmt.Errorf("the inner extents %d and %d differ", k, k2)
	}
	return []Type{T(in[0].DType, m, n)}, nil
}

func (o MatMul) VJP(b *Builder, c Call, dout []ID) []ID {
	x, y, d := c.In[0], c.In[1], dout[0]
	dx := b.MatMul(d, y, false, !o.TransY) // Ā = Z̄·Bᵀ
	if o.TransX {
		dx = b.MatMul(y, d, o.TransY, true) // Āᵀ = B·Z̄ᵀ
	}
	dy := b.MatMul(x, d, !o.TransX, false) // B̄ = Aᵀ·Z̄
	if o.TransY {
		dy = b.MatMul(d, x, true, o.TransX) // B̄ᵀ = Z̄ᵀ·A
	}
	return []ID{dx, dy}
}

// MatMul is x·y, each transposed first if asked.
func (b *Builder) MatMul(x, y ID, transX, transY bool) ID {
	return b.apply1(MatMul{transX, transY}, x, y)
}
