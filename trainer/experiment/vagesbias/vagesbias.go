package vagesbias

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"

	"ebtrain/data/dataset"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/experiment/batch"
	"ebtrain/trainer/experiment/measure"
	"ebtrain/trainer/experiment/plan"
	"ebtrain/trainer/model/grbm"
	"ebtrain/trainer/model/nn"
)

// Flags of a row.
const (
	FlagModel    = "model"     // units or gauss
	FlagEstimate = "estimate"  // vaes or vages
	FlagMost     = "noise-max" // deviation of the noise at the last level; at the first it is 10⁻⁴ of that
)

// Columns of a row.
const (
	Slope  = "slope"      // of log bias² over log divergence, in the lower half of the levels
	Bound  = "bound"      // the fitted C in bias² ≤ C·divergence: the largest ratio there
	Over   = "over-bound" // the largest ratio at all levels, over the fitted one
	Proven = "of-proven"  // the largest bias² over what it can be by Pinsker's inequality, or its like
	Least  = "least-divergence"
	Most   = "most-divergence"
)

// Curves over the divergence.
const (
	Bias   = "bias"
	Fitted = "fitted"
)

// Values of the flags.
const (
	Units = "units"
	Gauss = "gauss"
	VaES  = "vaes"
	VaGES = "vages"
)

const (
	hidden = 400
	levels = 20
	draws  = 32   // directions of noise, over which bias² and divergence are averaged
	span   = 1e-4 // the noise at the first level over that at the last
	stiff  = 4    // about which κ lies: with it p(v) can be normalised
)

// Compute measures a row, at the first face of the seed's order.
func Compute(ctx context.Context, in plan.Computing) (out plan.Computed, err error) {
	model, estimate := in.Row.Flags[FlagModel], in.Row.Flags[FlagEstimate]
	if model != Units && model != Gauss || estimate != VaES && estimate != VaGES {
		return out, fmt.Errorf("vages-bias: --%s %q --%s %q: want %s or %s, and %s or %s", FlagModel, model, FlagEstimate, estimate, Units, Gauss, VaES, VaGES)
	}
	var most float64
	if _, err := fmt.Sscan(in.Row.Flags[FlagMost], &most); err != nil || !(most > 0) || math.IsInf(most, 1) {
		return out, fmt.Errorf("vages-bias: --%s %q: want a number above 0", FlagMost, in.Row.Flags[FlagMost])
	}
	src, err := dataset.Open(in.Data, "train")
	if err != nil {
		return out, err
	}
	d := src.Schema()
	machine := grbm.Spec{C: d.C, H: d.H, W: d.W, Hidden: hidden}.Machine()
	x, err := batch.First(ctx, src, machine.Takes().Range, 1, in.Seed)
	if err != nil {
		return out, err
	}
	v := make([]float64, len(x))
	for i := range x {
		v[i] = float64(x[i])
	}
	s := drawn(machine.Size, v, model == Gauss, in.Seed)
	return s.measure(estimate, most, in.Seed, in.Tell)
}

// drawn is a scene with θ as a machine's is drawn, and κ besides.
func drawn(z grbm.Size, v []float64, gauss bool, seed uint64) scene {
	c := nn.NewContext(nn.Eval, 1)
	z.Declare(c)
	const kappa = "kappa"
	c.Scope(grbm.Scope, func() { c.Weight(kappa, graph.D(z.Hidden), nn.FanIn(z.Hidden)) })
	all := map[string][]float64{}
	for _, one := range c.Variables() {
		t := one.Value(seed)
		x := make([]float64, t.Type.Shape.Len())
		for i := range x {
			x[i] = t.At(i)
		}
		all[one.Name] = x
	}
	var k []float64
	if gauss {
		k = all[grbm.Scope+"."+kappa]
		for j := range k {
			k[j] += stiff
		}
	}
	return newScene(v, all[grbm.Scope+".w"], all[grbm.Scope+".c"], k)
}

// directions are what noise of deviation 1 on all weights of q's linear layer does to
// what the layer gives at v.
func (s scene) directions(seed uint64) [][]float64 {
	noise := make([]float64, len(s.v)+1) // of the weights to one output, and of its bias
	all := make([][]float64, draws)
	for k := range all {
		all[k] = make([]float64, len(s.posterior()))
		for j := range all[k] {
			philox.Name{Seed: seed, Purpose: philox.Perturb, Sub: uint16(k), Sample: uint32(j)}.Normal(noise)
			all[k][j] = noise[len(s.v)]
			for i, x := range s.v {
				all[k][j] += noise[i] * x
			}
		}
	}
	return all
}

// measure goes through the levels.
func (s scene) measure(estimate string, most float64, seed uint64, tell func(done, total int64)) (plan.Computed, error) {
	bias := s.vaes
	if estimate == VaGES {
		bias = s.vages
	}
	p := s.posterior()
	moments := s.moments(p)
	directions := s.directions(seed)
	curve := make([]measure.Point, levels)
	for i := range curve {
		eta := most * math.Pow(span, 1-float64(i)/(levels-1))
		for _, d := range directions {
			q := p.moved(eta, d)
			curve[i].X += s.divergence(q, p) / draws
			curve[i].Y += bias(s.moments(q).less(moments)) / draws
		}
		tell(int64(i+1), levels)
	}
	values := fit(curve)
	if proven, ok, err := s.proven(estimate); err != nil {
		return plan.Computed{}, err
	} else if ok {
		values[Proven] = values[Over] * values[Bound] / proven
	}
	fitted := make([]measure.Point, levels)
	for i, c := range curve {
		fitted[i] = measure.Point{X: c.X, Y: c.X * values[Bound]}
	}
	return plan.Computed{Values: values, Curves: map[string][]measure.Point{Bias: curve, Fitted: fitted}}, nil
}

// fit is what is said of bias² over divergence: the line and the bound of the lower half
// of the levels, and whether all keep to it.
func fit(curve []measure.Point) map[string]float64 {
	lower := len(curve) / 2
	var x, y []float64
	bound, most := 0.0, 0.0
	for i, c := range curve {
		most = max(most, c.Y/c.X)
		if i < lower {
			bound = most
			x, y = append(x, math.Log(c.X)), append(y, math.Log(c.Y))
		}
	}
	_, slope := stat.LinearRegression(x, y, nil, false)
	return map[string]float64{Slope: slope, Bound: bound, Over: most / bound, Least: curve[0].X, Most: curve[len(curve)-1].X}
}

// proven is a C for which bias² ≤ C·divergence can be proven, if there is one. Of units,
// KL ≥ 2Σ Δmⱼ² [Pinsker], and |ΔVⱼ| ≤ |Δmⱼ|. Of a Gaussian h the divergence is at least
// ½Σ κⱼ²Δmⱼ²; VaGES has none there, since ΔVⱼ² grows as Vⱼ², and the divergence as Vⱼ.
func (s scene) proven(estimate string) (c float64, ok bool, err error) {
	if estimate == VaES {
		norm, err := s.norm2()
		if s.kappa == nil {
			return norm / 2, true, err
		}
		least := math.Inf(1)
		for _, k := range s.kappa {
			least = min(least, k)
		}
		return 2 * norm / (least * least), true, err
	}
	if s.kappa != nil {
		return 0, false, nil
	}
	square := 0.0
	for _, x := range s.v {
		square += x * x
	}
	for j := range s.c {
		c = max(c, float64(len(s.v))+2*math.Abs(s.along[j])+(1+square)*s.squares[j])
	}
	return c / 2, true, nil
}
