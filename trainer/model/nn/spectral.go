package nn

import "ebtrain/ddp/graph"

const spectralEps = 1e-12

// spectralOf is a weight W and its spectral norm σ̂ = uᵀWv, which estimates the
// largest singular value of W, flattened to (Out, rest) [ALGORITHMS.md §1.2;
// Miyato et al. 2018, as PyTorch's spectral_norm]. In Train mode each call makes
// one power iteration first,
//
//	v ← Wᵀu / max(‖Wᵀu‖, ε),  u ← Wv / max(‖Wv‖, ε),
//
// and keeps u and v. The products are written as sums of pointwise products:
// they are bound by reading W once, and their derivatives, outer products, then
// fuse with what is added to them. W keeps its axes, and v has them too, so a device that
// keeps weights in another order need not move W to read it as a matrix. u and v are
// constants to differentiation; σ̂ is not. The learned variable is weight_orig; the
// buffers are weight_u and weight_v.
func (c *Context) spectralOf(s graph.Shape, init Init) (w, sigma graph.ID) {
	w = c.Weight("weight_orig", s, init)
	row, column, rest := s.With(0, 1), s, []int{}
	for i := 1; i < s.Rank(); i++ {
		column, rest = column.With(i, 1), append(rest, i)
	}
	u := c.Reshape(c.Buffer("weight_u", graph.D(column.Len()), UnitVector), column)
	v := c.Reshape(c.Buffer("weight_v", graph.D(row.Len()), UnitVector), row)
	if c.Mode == Train {
		fixed := c.StopGrad(w)
		v = c.unit(c.SumKeep(c.Mul(fixed, u), 0))       // Wᵀu, as a row
		u = c.unit(c.SumKeep(c.Mul(fixed, v), rest...)) // Wv, as a column
		c.Update("weight_u", c.Reshape(u, graph.D(column.Len())))
		c.Update("weight_v", c.Reshape(v, graph.D(row.Len())))
	}
	return w, c.Sum(c.Mul(u, c.SumKeep(c.Mul(w, v), rest...)))
}

// heavyWeight is how many weights a layer has for each number of a sample's
// output from which on the output is divided by σ̂ and not the weight.
const heavyWeight = 2

// normalised is the layer's product with W/σ̂. The quotient is taken of the product, by
// W itself, in a layer with more weights than its images are large: where W/σ̂ is
// written, each pass writes it by a σ̂ of its own, and each backward pass reads as much again
// for σ̂'s gradient, on every rank however few samples it has; and passes by the same W
// may share convolutions (plan.Options.Join). Elsewhere σ̂'s gradient would keep
// images that nothing else reads. The choice must not rest on the batch, of which a rank
// has a part.
func (c *Context) normalised(l layer) graph.ID {
	w, sigma := c.spectralOf(l.shape, l.init)
	if l.shape.Len() > heavyWeight*l.shape.At(0)*l.pixels {
		return c.over(l.by(w), sigma)
	}
	return l.by(c.over(w, sigma))
}

// over is x/s of a number s, as a product with 1/s: a division for each element takes
// several times as long.
func (c *Context) over(x, s graph.ID) graph.ID {
	return c.Mul(x, c.BroadcastTo(c.Recip(s), c.Shape(x)))
}

// unit is x / max(‖x‖, ε).
func (c *Context) unit(x graph.ID) graph.ID {
	norm := c.Sqrt(c.Sum(c.Square(x)))
	return c.Div(x, c.Max(norm, c.Full(c.Type(norm), spectralEps)))
}
