package vages

import (
	"errors"

	"ebtrain/ddp/graph"
)

// pairs are the terms of the kernelised Stein discrepancy of the pairs of slots 2i
// and 2i+1, so that which samples meet does not depend on the number of ranks. The
// gradient is through the score at the second of each pair only: by symmetry the
// first would give as much again.
func (d drawer) pairs(e estimate) (surrogate, loss graph.ID) {
	if d.Batch(d.data)%2 != 0 {
		d.Fail(errors.New("--objective ksd compares samples in pairs, and a rank's share of the batch is odd: take a --batch that is an even number for every rank"))
		return 0, 0
	}
	v := d.see(scorePlace).v
	s := d.flat(e.score(d, v))
	k := d.kernel(d.flat(d.evenRows(v)), d.flat(d.oddRows(v)))
	loss = k.stein(d.evenRows(s), d.oddRows(s))
	second := d
	second.odd = true
	at := d.StopGrad(d.oddRows(v))
	z := d.Reshape(k.pull(d.evenRows(s)), d.Shape(at))
	return e.surrogate(second, at, functional{z: d.StopGrad(z)}), loss
}

// neighbours are the terms of each sample and the next one, the last with the first.
func (d drawer) neighbours(e estimate) graph.ID {
	v := d.see(scorePlace).v
	s, x := d.flat(e.score(d, v)), d.flat(v)
	next := func(x graph.ID) graph.ID {
		n := d.Batch(x)
		return d.Concat(0, d.Slice(x, 0, 1, n, 1), d.Slice(x, 0, 0, 1, 1))
	}
	return d.kernel(x, next(x)).stein(s, next(s))
}

// kernel is the Gaussian kernel k = exp(−‖x−y‖²/(2b²)) of rows x, y (B, n).
type kernel struct {
	d      drawer
	k      graph.ID // (B, 1)
	away   graph.ID // ∇_x k / k = (y−x)/b², (B, n)
	square graph.ID // ‖x−y‖²/b⁴, (B, 1)
}

func (d drawer) kernel(x, y graph.ID) kernel {
	b2 := d.cfg.Bandwidth * d.cfg.Bandwidth
	away := d.Scale(d.Sub(y, x), 1/b2)
	square := d.SumKeep(d.Square(away), 1)
	return kernel{d, d.Exp(d.Scale(square, -b2/2)), away, square}
}

// pull is k·s(x) + ∇_x k, (B, n): what the score at y is multiplied with.
func (k kernel) pull(s graph.ID) graph.ID { return k.d.Mul(k.k, k.d.Add(s, k.away)) }

// stein is s(x)ᵀs(y)k + s(x)ᵀ∇_y k + ∇_x kᵀs(y) + tr ∇_x∇_y k, (B).
func (k kernel) stein(sx, sy graph.ID) graph.ID {
	d := k.d
	n, b2 := float64(d.Shape(sx).At(1)), d.cfg.Bandwidth*d.cfg.Bandwidth
	cross := d.SumKeep(d.Sub(d.Mul(d.Add(sx, k.away), sy), d.Mul(sx, k.away)), 1)
	trace := d.Shift(d.Neg(k.square), n/b2)
	return d.Reshape(d.Mul(k.k, d.Add(cross, trace)), graph.D(d.Batch(sx)))
}
