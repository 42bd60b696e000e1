package nn

import "ebtrain/ddp/graph"

const spectralEps = 1e-12

// spectralWeight is W/σ̂, where σ̂ = uᵀWv estimates the largest singular value
// of W, flattened to (Out, rest) [algorithms.md §1.2; Miyato et al. 2018, as
// PyTorch's spectral_norm]. In Train mode each call makes one power iteration
// first,
//
//	v ← Wᵀu / max(‖Wᵀu‖, ε),  u ← Wv / max(‖Wv‖, ε),
//
// and keeps u and v. The products are written as sums of pointwise products:
// they are bound by reading W once, and their derivatives, outer products, then
// fuse with what is added to them. They are constants to differentiation; σ̂ is not. The
// learned variable is weight_orig; the buffers are weight_u and weight_v.
func (c *Context) spectralWeight(s graph.Shape, init Init) graph.ID {
	w := c.Weight("weight_orig", s, init)
	out := s.At(0)
	rest := s.Len() / out
	flat := c.Reshape(w, graph.D(out, rest))
	u := c.Buffer("weight_u", graph.D(out), UnitVector)
	v := c.Buffer("weight_v", graph.D(rest), UnitVector)
	u, v = c.Reshape(u, graph.D(out, 1)), c.Reshape(v, graph.D(1, rest))
	if c.Mode == Train {
		fixed := c.StopGrad(flat)
		v = c.unit(c.SumKeep(c.Mul(fixed, u), 0)) // Wᵀu, as a row
		u = c.unit(c.SumKeep(c.Mul(fixed, v), 1)) // Wv, as a column
		c.Update("weight_u", c.Reshape(u, graph.D(out)))
		c.Update("weight_v", c.Reshape(v, graph.D(rest)))
	}
	sigma := c.Sum(c.Mul(u, c.SumKeep(c.Mul(flat, v), 1)))
	return c.Div(w, c.BroadcastTo(sigma, s))
}

// unit is x / max(‖x‖, ε).
func (c *Context) unit(x graph.ID) graph.ID {
	norm := c.Sqrt(c.Sum(c.Square(x)))
	return c.Div(x, c.Max(norm, c.Full(c.Type(norm), spectralEps)))
}
