package langevin

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

const seed = 5

var short = Annealed{Step: 0.3, Hottest: 4, Hot: 2, Cooling: 3, Last: 3, Denoise: 0.2}

// The energy of the tests has one weight w, and pictures of two pixels:
//
//	E = Σᵢ w(vᵢ − ½)⁴ + (v₀h₀ + ½h₀²), the second term where there is a latent
func energy(c *nn.Context, v, h graph.ID) graph.ID {
	if c.Mode != nn.Eval {
		c.Fail(fmt.Errorf("a sampler's layers are in mode %v, want %v", c.Mode, nn.Eval))
	}
	w := c.Weight("w", graph.D(), nn.Ones)
	n := c.Batch(v)
	flat := c.Reshape(v, graph.D(n, 2))
	e := c.Mul(c.Sum(c.Square(c.Square(c.Shift(flat, -0.5))), 1), w)
	if h == 0 {
		return e
	}
	first := c.Slice(flat, 1, 0, 1, 1)
	return c.Add(e, c.Sum(c.Add(c.Mul(first, h), c.Scale(c.Square(h), 0.5)), 1))
}

// slopes is ∇E by hand.
func slopes(w float64, v []float64, h float64, latent bool) (dv []float64, dh float64) {
	for _, x := range v {
		dv = append(dv, 4*w*math.Pow(x-0.5, 3))
	}
	if latent {
		dv[0] += h
		dh = v[0] + h
	}
	return dv, dh
}

func normal(transition, sample, sub, n int) []float64 {
	x := make([]float64, n)
	philox.Name{Seed: seed, Purpose: philox.Chain, Step: uint32(transition), Sample: uint32(sample), Sub: uint16(sub)}.Normal(x)
	return x
}

// byHand is chain number i, as the package comment has it.
func byHand(a Annealed, w float64, i int, given *float64, joint bool) []float64 {
	v, h := normal(0, i, 0, 2), 0.0
	for j := range v {
		v[j] += 0.5
	}
	if joint {
		h = normal(0, i, 1, 1)[0] + 0.5
	}
	if given != nil {
		h = *given
	}
	latent := joint || given != nil
	move := func(rate, noise float64, transition int) {
		dv, dh := slopes(w, v, h, latent)
		xi := normal(transition, i, 0, 2)
		for j := range v {
			v[j] += noise*xi[j] - rate*dv[j]
		}
		if joint {
			h += noise*normal(transition, i, 1, 1)[0] - rate*dh
		}
	}
	temperatures := a.Temperatures()
	for k, t := range temperatures {
		move(a.Step*a.Step/2, math.Sqrt(t)*a.Step, k+1)
	}
	move(a.Denoise*a.Denoise, 0, 0)
	for j := range v {
		v[j] = min(max(v[j], 0), 1)
	}
	return v
}

// sample runs the plan of s.
func sample(t *testing.T, a Annealed, s System, given []float64) []float64 {
	t.Helper()
	plan, err := a.Plan(s)
	if err != nil {
		t.Fatal(err)
	}
	b := ref.New()
	vars := b.NewVars()
	if err := vars.Set("w", ddptest.Tensor(graph.T(graph.F32), []float64{0.7})); err != nil {
		t.Fatal(err)
	}
	c, err := chain.New(b, vars, plan, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	var out *exec.Tensor
	if given == nil {
		out, err = c.Run(t.Context(), seed, nil)
	} else {
		first := plan.Vars[0]
		if err := vars.Set(first.Name, ddptest.Tensor(first.Type, given)); err != nil {
			t.Fatal(err)
		}
		out, err = c.Continue(t.Context(), seed, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ddptest.Numbers(out)
}

// Chains of pictures alone, with latents that are given, and with latents that
// move, against loops.
func TestAgainstLoops(t *testing.T) {
	const n = 3
	pictures, latents := graph.D(n, 1, 1, 2), graph.D(n, 1)
	hs := []float64{-0.3, 0, 0.4}
	for name, tt := range map[string]struct {
		System
		given []float64
	}{
		"pictures": {System{Pictures: pictures, Energy: energy}, nil},
		"given":    {System{Pictures: pictures, Given: latents, Energy: energy}, hs},
		"joint":    {System{Pictures: pictures, Moving: latents, Energy: energy}, nil},
	} {
		got := sample(t, short, tt.System, tt.given)
		var want []float64
		for i := range n {
			var h *float64
			if tt.given != nil {
				h = &tt.given[i]
			}
			want = append(want, byHand(short, 0.7, i, h, tt.Moving.Rank() > 0)...)
		}
		if err := ddptest.Near(got, want, 1e-5); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if inside := slices.ContainsFunc(got, func(x float64) bool { return x > 0 && x < 1 }); !inside {
			t.Errorf("%s: all pixels %v are clamped: the test sees nothing", name, got)
		}
	}
}

// The first chains of many are those of a few.
func TestFewerChains(t *testing.T) {
	few := sample(t, short, System{Pictures: graph.D(2, 1, 1, 2), Energy: energy}, nil)
	many := sample(t, short, System{Pictures: graph.D(5, 1, 1, 2), Energy: energy}, nil)
	if !slices.Equal(many[:len(few)], few) {
		t.Errorf("got %v of five chains, want those of two, %v", many, few)
	}
}

func TestTemperatures(t *testing.T) {
	all := Published().Temperatures()
	if len(all) != 2700 {
		t.Fatalf("%d steps, want 2,700", len(all))
	}
	for i, want := range map[int]float64{0: 100, 499: 100, 500: 100, 1500: 10, 2499: 100 * math.Pow(100, -1999.0/2000), 2500: 1, 2600: 1 - 100.0/199, 2699: 0} {
		if !(math.Abs(all[i]-want) <= 1e-12*want) {
			t.Errorf("step %d: temperature %v, want %v", i, all[i], want)
		}
	}
	if got, want := Published().Shortened(0.01), (Annealed{Step: 0.02, Hottest: 100, Hot: 5, Cooling: 20, Last: 2, Denoise: 0.1}); got != want {
		t.Errorf("a hundredth is %+v, want %+v", got, want)
	}
	if got := Published().Shortened(1); got != Published() {
		t.Errorf("the whole is %+v", got)
	}
}

func TestValidate(t *testing.T) {
	for want, change := range map[string]func(a *Annealed){
		"step above 0":                        func(a *Annealed) { a.Step = 0 },
		"first temperature":                   func(a *Annealed) { a.Hottest = 0.5 },
		"got [500 -1 200]":                    func(a *Annealed) { a.Cooling = -1 },
		"steps of at least 0, got [-":         func(a *Annealed) { a.Hot = -1 },
		"temperature of at least 1, got +Inf": func(a *Annealed) { a.Hottest = math.Inf(1) },
		"denoising noise":                     func(a *Annealed) { a.Denoise = math.NaN() },
		"noise of at least 0, got +Inf":       func(a *Annealed) { a.Denoise = math.Inf(1) },
		"either move or are given":            func(*Annealed) {},
		"langevin: want a step":               func(a *Annealed) { a.Step = math.Inf(1) },
		"at least 1, got 0.99999999":          func(a *Annealed) { a.Hottest = 0.99999999 },
	} {
		a := Published()
		change(&a)
		_, err := a.Plan(System{Pictures: graph.D(1, 1, 1, 2), Moving: graph.D(1, 1), Given: graph.D(1, 1), Energy: energy})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}
