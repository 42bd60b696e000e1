package nn

import (
	"ebtrain/collective"
	"ebtrain/ddp/graph"
)

// BatchNorm2d normalises each channel of (N, C, H, W) to mean 0 and variance 1
// over the global batch, then scales and shifts it, as PyTorch's
// SyncBatchNorm: ε = 1e-5, running statistics with momentum 0.1, the running
// variance unbiased.
type BatchNorm2d struct {
	Name string
	C    int
}

const (
	batchNormEps      = 1e-5
	batchNormMomentum = 0.1
)

// Apply normalises x.
func (l BatchNorm2d) Apply(c *Context, x graph.ID) (y graph.ID) {
	c.Scope(l.Name, func() {
		perChannel := graph.D(1, l.C, 1, 1)
		row := func(id graph.ID) graph.ID { return c.Reshape(id, perChannel) }
		gamma := row(c.Weight("weight", graph.D(l.C), Ones))
		beta := row(c.Weight("bias", graph.D(l.C), Zeros))
		mean := row(c.Buffer("running_mean", graph.D(l.C), Zeros))
		variance := row(c.Buffer("running_var", graph.D(l.C), Ones))
		if c.Mode != Eval {
			old, oldVar := mean, variance
			mean, variance = l.statistics(c, x, row(c.Initial("running_mean")))
			if c.Mode == Train {
				l.advance(c, x, old, oldVar, mean, variance)
			}
		}
		scale := c.Mul(gamma, c.Recip(c.Sqrt(c.Shift(variance, batchNormEps))))
		shift := c.Sub(beta, c.Mul(mean, scale))
		y = c.Add(c.Mul(x, scale), shift)
	})
	return y
}

// statistics are the mean and the biased variance of each channel over the
// global batch, in one all-reduce of 2·C numbers: with m_r and v_r those of
// rank r's part and d_r = m_r − shift,
//
//	mean = shift + ⟨d_r⟩,  variance = ⟨v_r + d_r²⟩ − ⟨d_r⟩².
//
// shift is the running mean at the start of the run: close to every m_r, so
// that nothing is lost in the difference, and the same in every pass over the
// same x, so that equal passes are one computation.
func (l BatchNorm2d) statistics(c *Context, x, shift graph.ID) (mean, variance graph.ID) {
	m := c.MeanKeep(x, 0, 2, 3)
	v := c.MeanKeep(c.Square(c.Sub(x, m)), 0, 2, 3)
	if c.World == 1 {
		return m, v
	}
	d := c.Sub(m, shift)
	all := c.AllReduce(collective.Mean, l.Name, d, c.Add(v, c.Square(d)))
	return c.Add(shift, all[0]), c.Sub(all[1], c.Square(all[0]))
}

// advance moves the running statistics towards those of the batch.
func (l BatchNorm2d) advance(c *Context, x, oldMean, oldVar, mean, variance graph.ID) {
	s := c.Shape(x)
	if c.Err() != nil {
		return
	}
	n := float64(c.World * s.At(0) * s.At(2) * s.At(3))
	toward := func(old, now graph.ID) graph.ID {
		mixed := c.Add(c.Scale(old, 1-batchNormMomentum), c.Scale(c.StopGrad(now), batchNormMomentum))
		return c.Reshape(mixed, graph.D(l.C))
	}
	c.Update("running_mean", toward(oldMean, mean))
	c.Update("running_var", toward(oldVar, c.Scale(variance, n/max(n-1, 1))))
}
