package winograd

import "ebtrain/ddp/exec/cpu/linalg/engine"

// costs are what there is to do, in multiply-adds of float32: for a multiply-add
// of the products, a float of a transformed image or result, and of a transformed
// filter. Fitted to the benchmarks: see DESIGN.md.
type costs struct{ product, image, filter float64 }

const (
	// margin is how much fewer multiply-adds are wanted, as plain convolutions
	// are a little nearer to the processor's peak.
	margin = 1.15
	// bf16Gain is how much faster plain convolutions are in bfloat16, with
	// AVX-512.
	bf16Gain         = 1.9
	gradientBF16Gain = 1.5
)

// costsOf are the costs of an op in float32, or where integers serve for bfloat16,
// in those. What filters cost before the products depends on the instruction
// set; see type isa.
func (s *scheme) costsOf(op engine.ConvOp, bf16 bool) costs {
	integers := bf16 && s.int16s != nil
	switch {
	case integers && op == engine.GradW:
		return costs{product: 0.7, image: 18, filter: 16}
	case integers:
		return costs{product: 0.6, image: 16, filter: 22}
	case op == engine.GradW:
		return costs{product: 1, image: 20, filter: 14}
	default:
		return costs{product: 1, image: 12, filter: s.filterCost}
	}
}

// fits says whether there is a scheme for a convolution.
func fits(p engine.ConvProblem) bool {
	plain := p.KH == p.KW && p.StrideH == p.StrideW && p.DilH == 1 && p.DilW == 1 && p.Groups == 1
	known := p.KH == 3 && p.StrideH == 1 || p.KH == 4 && p.StrideH == 2
	return plain && known && p.C%lanes == 0 && p.O%lanes == 0
}

// pays says whether a convolution that fits gains enough: not if there are few
// tiles for many filters, few channels, or tiles that are mostly outside. It sees the
// geometry and the instruction set only, so that all runs on a machine agree.
func (s *scheme) pays(op engine.ConvOp, p engine.ConvProblem) bool {
	list, gain, per := forward(p, s), bf16Gain, s.costsOf(op, p.BF16)
	switch op {
	case engine.GradX:
		list = gradX(p, s)
	case engine.GradW:
		gain = gradientBF16Gain
	}
	cost := 0.0
	for i := range list {
		c := &list[i]
		k, n, tiles := float64(c.filter.k), float64(c.filter.n), float64(c.tiles.count())
		columns := float64(c.filter.panels() * s.width())
		cost += float64(s.points()) * (per.product*tiles*k*columns + per.image*tiles*(k+n) + per.filter*k*n)
	}
	if p.BF16 {
		cost *= gain
	}
	return float64(p.Flops())/2 >= margin*cost
}
