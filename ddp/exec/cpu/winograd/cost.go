package winograd

import (
	"golang.org/x/sys/cpu"

	"ebtrain/ddp/exec/cpu/engine"
)

// What things cost besides the products, in multiply-adds for each float of a
// transformed image or result, and of a transformed filter. Fitted to the
// benchmarks: see DESIGN.md. What filters cost before the products depends on the
// instruction set; see type isa.
const (
	imageCost          = 12
	gradientImageCost  = 20
	gradientFilterCost = 14
	// As integers, products cost about half, but numbers have to be scaled.
	integerProduct    = 0.55
	integerCost       = 4
	integerFilterCost = 8
	// margin is how much fewer multiply-adds are wanted, as plain convolutions
	// are a little nearer to the processor's peak.
	margin = 1.15
	// bf16Gain is how much faster plain convolutions are in bfloat16, with
	// AVX-512. Transformed numbers rounded to bfloat16 would be off by 1 %, so
	// these products stay float32, and have to gain more.
	bf16Gain         = 1.9
	gradientBF16Gain = 1.5
)

// fits says whether there is a scheme for a convolution. Where bfloat16 has
// matrix instructions (AMX), nothing beats them.
func fits(p engine.ConvProblem) bool {
	plain := p.KH == p.KW && p.StrideH == p.StrideW && p.DilH == 1 && p.DilW == 1 && p.Groups == 1
	known := p.KH == 3 && p.StrideH == 1 || p.KH == 4 && p.StrideH == 2
	return plain && known && p.C%lanes == 0 && p.O%lanes == 0 && !(p.BF16 && cpu.X86.HasAMXBF16)
}

// pays says whether a convolution that fits gains enough: not if there are few
// tiles for many filters, few channels, or tiles that are mostly outside. It sees the
// geometry and the instruction set only, so that all runs on a machine agree.
func (s *scheme) pays(op engine.ConvOp, p engine.ConvProblem) bool {
	list, image, filter, bf16 := forward(p, s), float64(imageCost), s.filterCost, bf16Gain
	switch op {
	case engine.GradX:
		list = gradX(p, s)
	case engine.GradW:
		image, filter, bf16 = gradientImageCost, gradientFilterCost, gradientBF16Gain
	}
	product := 1.0
	if p.BF16 && s.integers != nil {
		product, image, filter = integerProduct, image+integerCost, filter+integerFilterCost
	}
	cost := 0.0
	for i := range list {
		c := &list[i]
		k, n, tiles := float64(c.filter.k), float64(c.filter.n), float64(c.tiling.tiles())
		columns := float64(c.filter.panels() * s.width())
		cost += float64(s.points()) * (product*tiles*k*columns + image*tiles*(k+n) + filter*k*n)
	}
	if p.BF16 {
		cost *= bf16
	}
	return float64(p.Flops())/2 >= margin*cost
}
