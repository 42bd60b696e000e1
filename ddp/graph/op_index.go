package graph

import "fmt"

// Gather takes rows of x: y[i, …] = x[idx[i], …]. x is (V, …), idx is (n),
// of type I32. An index outside 0 … V−1 is an error of the run.
type Gather struct{}

func (o Gather) String() string { return "gather" }

func (o Gather) Infer(in []Type) ([]Type, error) {
	if err := wantInputs(in, 2); err != nil {
		return nil, err
	}
	x, idx := in[0].Shape, in[1].Shape
	if x.Rank() < 1 || idx.Rank() != 1 || in[1].DType != I32 {
		return nil, fmt.Errorf("want rows (V,…) and i32 indices (n)")
	}
	return []Type{{in[0].DType, x.With(0, idx.At(0))}}, nil
}

func (o Gather) VJP(b *Builder, c Call, dout []ID) []ID {
	return []ID{b.apply1(ScatterAdd{b.Shape(c.In[0]).At(0)}, dout[0], c.In[1]), 0}
}

// ScatterAdd adds rows into a tensor of zeros with Rows rows:
// y[idx[i], …] += d[i, …]. It is the adjoint of Gather.
type ScatterAdd struct{ Rows int }

func (o ScatterAdd) String() string { return fmt.Sprintf("scatter_add{%d rows}", o.Rows) }

func (o ScatterAdd) Infer(in []Type) ([]Type, error) {
	if err := wantInputs(in, 2); err != nil {
		return nil, err
	}
	d, idx := in[0].Shape, in[1].Shape
	if d.Rank() < 1 || idx.Rank() != 1 || in[1].DType != I32 || d.At(0) != idx.At(0) || o.Rows < 1 {
		return nil, fmt.Errorf("want rows (n,…) and i32 indices (n)")
	}
	return []Type{{in[0].DType, d.With(0, o.Rows)}}, nil
}

func (o ScatterAdd) VJP(b *Builder, c Call, dout []ID) []ID {
	return []ID{b.apply1(Gather{}, dout[0], c.In[1]), 0}
}

// Gather takes the rows idx of x.
func (b *Builder) Gather(x, idx ID) ID { return b.apply1(Gather{}, x, idx) }

// ScatterAdd adds the rows of d at idx into a tensor of zeros with rows rows.
func (b *Builder) ScatterAdd(d, idx ID, rows int) ID { return b.apply1(ScatterAdd{rows}, d, idx) }
