package lebm

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// atRest says whether latents have the variance of a chain in ½‖z‖² that has come to
// rest, 1/(1 − s²/4), to 1 %, and the mean 0.
func atRest(z []float64, size float64) error {
	var sum, squares float64
	for _, x := range z {
		sum, squares = sum+x, squares+x*x
	}
	n := float64(len(z))
	mean, variance, want := sum/n, squares/n, 1/(1-size*size/4)
	var errs []error
	if !(math.Abs(variance/want-1) <= 0.01) {
		errs = append(errs, fmt.Errorf("the variance is %v, want %v", variance, want))
	}
	if !(math.Abs(mean) <= 5*math.Sqrt(want/n)) {
		errs = append(errs, fmt.Errorf("the mean is %v, want 0", mean))
	}
	return errors.Join(errs...)
}

// With E = 0 the prior's chain comes to rest where theory says, 1.042 at s₀ = 0.4;
// with the slope of the published listing, 1/z, it does not.
func TestPriorAtRest(t *testing.T) {
	if testing.Short() {
		t.Skip("16,000 chains are left out in short tests; TestSamplerAtRest has the sampler's")
	}
	const n = 8000
	r := newRig(t, tiny(func(c *Config) { c.Net.Latent, c.PriorChain.Steps = 20, 60 }))
	r.flat(t)
	draw := func(slope func(l latents, z graph.ID) graph.ID) []float64 {
		return r.run(t, nil, func(c *nn.Context) {
			l := newLatents(c, r.cfg)
			key := c.Input(algo.InputKey, graph.KeyType)
			c.Output("z", l.chained(r.cfg.prior(), key, priorPlace, n, func(z graph.ID) graph.ID { return slope(l, z) }))
		})["z"]
	}
	if err := atRest(draw(latents.priorSlope), 0.4); err != nil {
		t.Error(err)
	}
	listing := func(l latents, z graph.ID) graph.ID { return l.Add(l.Sub(l.priorSlope(z), z), l.Recip(z)) }
	if err := atRest(draw(listing), 0.4); err == nil {
		t.Error("latents pushed by 1/z are taken for right ones")
	} else {
		t.Logf("1/z: %v", err)
	}
}

// The sampler's chain, of one program run K₀ times, comes to rest there too; without
// an energy it is N(0, I).
func TestSamplerAtRest(t *testing.T) {
	const n = 4000
	for prior, size := range map[Prior]float64{EBM: 0.4, Gaussian: 0} {
		cfg := tiny(func(c *Config) { c.Prior, c.Net.Latent, c.PriorChain.Steps = prior, 20, 60 })
		plan, err := model{cfg}.Sample(nn.Eval, n)
		if err != nil {
			t.Fatal(err)
		}
		z := plan.Vars[0].Name
		plan.Stages, plan.Out = plan.Stages[:len(plan.Stages)-1], z // the latents alone
		vars := ddptest.NewVars()
		c := nn.NewContext(nn.Train, 1)
		newStep(c, cfg, 1).build()
		if err := nn.Initialise(vars, c.Variables(), testSeed); err != nil {
			t.Fatal(err)
		}
		r := rig{cfg, vars}
		if prior == EBM {
			r.flat(t)
		}
		got, err := chain.Run(t.Context(), ref.New(), vars, plan, testSeed)
		if err != nil {
			t.Fatal(err)
		}
		if err := atRest(ddptest.Numbers(got), size); err != nil {
			t.Errorf("%s: %v", prior, err)
		}
	}
}

// linear is a decoder of 3 values, x = Wz, for W (3, 2) below.
type linear struct{ sigma float64 }

var linearW = [3][2]float64{{0.9, -0.3}, {0.2, 0.8}, {-0.5, 0.4}}

func (d linear) decode(c *nn.Context, z graph.ID) graph.ID {
	var rows []graph.ID
	for _, row := range linearW {
		t := c.Full(graph.T(c.DType, 1, 1), 0)
		rows = append(rows, c.Concat(1, c.Shift(t, row[0]), c.Shift(t, row[1])))
	}
	return c.MatMul(z, c.Concat(0, rows...), false, true)
}

func (d linear) loss(c *nn.Context, x, z graph.ID) graph.ID {
	return c.Sum(c.Square(c.Sub(x, d.decode(c, z))), 1)
}

func (d linear) precision() float64 { return pictures{sigma: d.sigma}.precision() }

// The posterior of a linear generator is N(μ, Λ⁻¹), Λ = WᵀW/σ² + I, μ = Λ⁻¹Wᵀx/σ², and
// the chain's mean is μ for any step size, once it is at rest; its covariance is
// (Λ − s²Λ²/4)⁻¹.
func TestPosteriorOfALinearGenerator(t *testing.T) {
	const n, sigma, size = 20_000, 0.3, 0.1
	x := [3]float64{0.7, -0.4, 0.5}
	cfg := tiny(func(c *Config) {
		c.Prior, c.Net.Latent, c.Sigma, c.PosteriorChain = Gaussian, 2, sigma, Chain{Steps: 150, Size: size}
	})
	out := rig{cfg, ddptest.NewVars()}.run(t, nil, func(c *nn.Context) {
		l := latents{c, cfg, linear{sigma}}
		one := c.Full(graph.T(c.DType, n, 1), 0)
		given := c.Concat(1, c.Shift(one, x[0]), c.Shift(one, x[1]), c.Shift(one, x[2]))
		c.Output("z", l.posterior(c.Input(algo.InputKey, graph.KeyType), given))
	})["z"]

	var a [2][2]float64 // Λ
	var b [2]float64    // Wᵀx/σ²
	for j := range 2 {
		a[j][j] = 1
		for i := range 3 {
			b[j] += linearW[i][j] * x[i] / (sigma * sigma)
			for k := range 2 {
				a[j][k] += linearW[i][j] * linearW[i][k] / (sigma * sigma)
			}
		}
	}
	mu := solve(a, b)
	var mean, variance [2]float64
	for i, z := range out {
		mean[i%2] += z / n
	}
	for i, z := range out {
		variance[i%2] += (z - mean[i%2]) * (z - mean[i%2]) / n
	}
	var m [2][2]float64 // Λ − s²Λ²/4
	for j := range 2 {
		for k := range 2 {
			m[j][k] = a[j][k] - size*size/4*(a[j][0]*a[0][k]+a[j][1]*a[1][k])
		}
	}
	for j := range 2 {
		var unit [2]float64
		unit[j] = 1
		want := solve(m, unit)[j]
		if off := math.Abs(mean[j] - mu[j]); !(off <= 4*math.Sqrt(want/n)) {
			t.Errorf("latent %d: the mean is %v, want %v", j, mean[j], mu[j])
		}
		if !(math.Abs(variance[j]/want-1) <= 0.05) {
			t.Errorf("latent %d: the variance is %v, want %v", j, variance[j], want)
		}
	}
}

// solve is the x of ax = b.
func solve(a [2][2]float64, b [2]float64) [2]float64 {
	det := a[0][0]*a[1][1] - a[0][1]*a[1][0]
	return [2]float64{(b[0]*a[1][1] - b[1]*a[0][1]) / det, (b[1]*a[0][0] - b[0]*a[1][0]) / det}
}

// The longest chains share no draws.
func TestLongestChains(t *testing.T) {
	if priorPlace+maxSteps >= posteriorPlace || posteriorPlace+maxSteps > math.MaxUint16 {
		t.Error("the longest chains share draws")
	}
}

// Annealed steps are the published ones, 20 of them, and stretched where there are more
// or fewer; without noise they shrink latents in ½‖z‖² by ∏(1 − s²/2), and the noise is
// T times what it was.
func TestAnnealed(t *testing.T) {
	sizes := func(h Chain) (all []float64) {
		for i := range h.Steps {
			all = append(all, h.size(i))
		}
		return all
	}
	if got := fmt.Sprint(sizes(Chain{Steps: 5, Annealed: true})); got != "[0.8 0.2 0.05 0.05 0.05]" {
		t.Errorf("5 steps are %v", got)
	}
	if got := sizes(Chain{Steps: 40, Annealed: true}); got[1] != 0.8 || got[2] != 0.7 || got[39] != 0.05 {
		t.Errorf("40 steps are %v", got)
	}
	const n = 300
	ends := func(temperature float64) []float64 {
		r := newRig(t, tiny(func(c *Config) {
			c.Net.Latent, c.PosteriorChain = 4, Chain{Steps: 20, Annealed: true, Temperature: temperature}
		}))
		r.flat(t)
		out := r.run(t, nil, func(c *nn.Context) {
			l := newLatents(c, r.cfg)
			key := c.Input(algo.InputKey, graph.KeyType)
			c.Output("start", l.draw(key, posteriorPlace, n))
			c.Output("end", l.chained(r.cfg.PosteriorChain, key, posteriorPlace, n, l.priorSlope))
		})
		shrunk := 1.0
		for _, s := range annealed {
			shrunk *= 1 - s*s/2
		}
		noise := make([]float64, len(out["end"]))
		for i := range noise {
			noise[i] = out["end"][i] - shrunk*out["start"][i]
		}
		return noise
	}
	still, cold, warm := ends(1e-12), ends(0.25), ends(0)
	var squares float64
	for i := range still {
		squares += warm[i] * warm[i]
		if !(math.Abs(still[i]) <= 1e-10) || !(math.Abs(cold[i]-0.25*warm[i]) <= 1e-12) {
			t.Fatalf("latent %d ends %v, %v, %v beyond where no noise leaves it", i, still[i], cold[i], warm[i])
		}
	}
	want := 0.0 // the variance, by its recursion
	for _, s := range annealed {
		want = want*(1-s*s/2)*(1-s*s/2) + s*s
	}
	if got := squares / float64(len(warm)); !(math.Abs(got/want-1) <= 0.15) { // 1,200 draws: a standard error is 0.04
		t.Errorf("the noise has variance %v, want %v", got, want)
	}
}
