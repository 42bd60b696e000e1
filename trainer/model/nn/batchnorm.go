package nn

import (
	"fmt"

	"ebtrain/collective"
	"ebtrain/ddp/graph"
)

// BatchNorm2d normalises each channel of (N, C, H, W) to mean 0 and variance 1
// over the global batch, then scales and shifts it, as PyTorch's
// SyncBatchNorm: ε = 1e-5, running statistics with momentum 0.1, the running
// variance unbiased. As there, a batch with one value a channel is an error where
// its statistics are used: it would be normalised to 0 whatever it is.
type BatchNorm2d struct {
	Name string
	C    int
}

const (
	batchNormEps      = 1e-5
	batchNormMomentum = 0.1
)

// moments are what a channel is normalised by, each (1, C, 1, 1).
type moments struct {
	mean, variance graph.ID
	// centre is subtracted from x, and rest = centre − mean added back: a mean
	// far from 0 then costs no digits of the result. rest is 0 where centre is
	// the mean.
	centre, rest graph.ID
}

// Apply normalises x.
func (l BatchNorm2d) Apply(c *Context, x graph.ID) (y graph.ID) {
	c.Scope(l.Name, func() {
		row := func(id graph.ID) graph.ID { return c.Reshape(id, graph.D(1, l.C, 1, 1)) }
		gamma := row(c.Weight("weight", graph.D(l.C), Ones))
		beta := row(c.Weight("bias", graph.D(l.C), Zeros))
		mean := row(c.Buffer("running_mean", graph.D(l.C), Zeros))
		variance := row(c.Buffer("running_var", graph.D(l.C), Ones))
		m := moments{mean: mean, variance: variance, centre: mean}
		if c.Mode != Eval {
			checkValues(c, x)
			m = batchMoments(c, x)
		}
		if c.Mode == Train {
			l.advance(c, x, mean, variance, m)
		}
		scale := c.Mul(gamma, c.Recip(c.Sqrt(c.Shift(m.variance, batchNormEps))))
		if m.rest != 0 {
			beta = c.Add(beta, c.Mul(m.rest, scale))
		}
		y = c.Add(c.Mul(c.Sub(x, m.centre), scale), beta)
	})
	return y
}

// checkValues asks for two values a channel in the global batch.
func checkValues(c *Context, x graph.ID) {
	s := c.Shape(x)
	if c.Err() == nil && s.Rank() == 4 && valuesPerChannel(c, s) < 2 {
		c.Fail(fmt.Errorf("batch norm of %v on %d rank(s) has %d value(s) in each channel, and needs at least 2 to take statistics of: take a larger batch or larger images",
			c.Type(x), c.World, valuesPerChannel(c, s)))
	}
}

// valuesPerChannel is the number of values in each channel of the global batch,
// of which s is a rank's part.
func valuesPerChannel(c *Context, s graph.Shape) int { return c.World * s.At(0) * s.At(2) * s.At(3) }

// batchMoments are the mean and the biased variance of each channel over the
// global batch. With m_r and v_r those of rank r's part,
//
//	mean = ⟨m_r⟩,  variance = ⟨v_r + m_r²⟩ − ⟨m_r⟩²,
//
// in one all-reduce of 2·C numbers. They travel as F64, so that the difference
// keeps every digit of an F32 variance while |mean| < 10⁴ standard deviations.
func batchMoments(c *Context, x graph.ID) moments {
	m := c.MeanKeep(x, 0, 2, 3)
	v := c.MeanKeep(c.Square(c.Sub(x, m)), 0, 2, 3)
	if c.World == 1 {
		return moments{mean: m, variance: v, centre: m}
	}
	own := c.Type(m).DType
	wide := c.Cast(m, graph.F64)
	all := c.AllReduce(collective.Mean, c.fullName("moments"), wide, c.Add(c.Cast(v, graph.F64), c.Square(wide)))
	variance := c.Relu(c.Sub(all[1], c.Square(all[0]))) // rounding alone could make it negative
	return moments{
		mean: c.Cast(all[0], own), variance: c.Cast(variance, own),
		centre: m, rest: c.Cast(c.Sub(wide, all[0]), own),
	}
}

// advance moves the running statistics towards those of the batch.
func (l BatchNorm2d) advance(c *Context, x, oldMean, oldVar graph.ID, m moments) {
	s := c.Shape(x)
	if c.Err() != nil {
		return
	}
	n := float64(valuesPerChannel(c, s))
	toward := func(old, now graph.ID) graph.ID {
		mixed := c.Add(c.Scale(old, 1-batchNormMomentum), c.Scale(c.StopGrad(now), batchNormMomentum))
		return c.Reshape(mixed, graph.D(l.C))
	}
	c.Update("running_mean", toward(oldMean, m.mean))
	c.Update("running_var", toward(oldVar, c.Scale(m.variance, n/(n-1))))
}
