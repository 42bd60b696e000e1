package eblvm

import (
	"math"
	"strconv"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

var tiny = Net{Trunk: Trunk{Size: 8, Channels: 1, Width: 2, Blocks: 2}, Latent: 3, PosteriorWidth: 2}

// point carves tensors out of one long vector x, so that a function of pictures,
// latents and weights is one of a vector.
type point struct {
	*nn.Context
	x    graph.ID
	used int
}

func (p *point) take(s graph.Shape) graph.ID {
	at := p.used
	p.used += s.Len()
	return p.Reshape(p.Slice(p.x, 0, at, p.used, 1), s)
}

func (p *point) takeAll(ps []nn.Param) (ids []graph.ID) {
	for _, one := range ps {
		ids = append(ids, p.take(p.Shape(one.ID)))
	}
	return ids
}

// differentiated are scalar functions of pictures, latents and weights.
func differentiated() map[string]func(p *point) graph.ID {
	picture, latent := graph.D(2, 1, 8, 8), graph.D(2, tiny.Latent)
	return map[string]func(p *point) graph.ID{
		"energy": func(p *point) (y graph.ID) {
			ps := tiny.Declare(p.Context)
			v, h := p.take(picture), p.take(latent)
			p.With(ps, p.takeAll(ps), func() { y = p.Sum(tiny.Energy(p.Context, v, h)) })
			return y
		},
		"visible energy": func(p *point) (y graph.ID) {
			ps := tiny.DeclareVisible(p.Context)
			v := p.take(picture)
			p.With(ps, p.takeAll(ps), func() { y = p.Sum(tiny.VisibleEnergy(p.Context, v)) })
			return y
		},
		"posterior": func(p *point) (y graph.ID) {
			ps := tiny.DeclarePosterior(p.Context)
			v, eps := p.take(picture), p.take(latent)
			p.With(ps, p.takeAll(ps), func() {
				q := tiny.Posterior(p.Context, v)
				y = p.Sum(p.Add(q.LogProb(p.Context, eps), p.Sum(p.Square(q.Sample(p.Context, eps)), 1)))
			})
			return y
		},
	}
}

// Derivatives of orders 1, 2 and 3 along directions in pictures, latents and
// weights at once: D₀ = y, Dₖ = ⟨∇Dₖ₋₁, dₖ⟩, and each Dₖ against the central
// difference of Dₖ₋₁ along dₖ.
func TestDerivatives(t *testing.T) {
	const orders, room, h = 3, 1 << 14, 1e-5
	for name, f := range differentiated() {
		c := nn.NewContext(nn.Train, 1)
		c.DType = graph.F64
		long := graph.T(graph.F64, room)
		p := &point{Context: c, x: c.Input("x", long)}
		d := f(p)
		n := p.used
		c.Output("D0", d)
		for k := 1; k <= orders; k++ {
			d = c.Sum(c.Mul(c.Grad(d, p.x)[0], c.Input(direction(k), long)))
			c.Output("D"+strconv.Itoa(k), d)
		}
		g, err := c.Commit()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		x := make([]float64, room)
		for i, z := range ddptest.Noise(1, n) {
			x[i] = 0.4 * z
		}
		in := ddptest.Values{"x": x}
		for k := 1; k <= orders; k++ {
			in[direction(k)] = append(ddptest.Noise(uint32(k+1), n), make([]float64, room-n)...)
		}
		at := func(k int, step float64) float64 {
			moved := append([]float64(nil), x...)
			for i, z := range in[direction(k)] {
				moved[i] += step * z
			}
			out, err := ddptest.Run(g, ddptest.NewVars(), nil, with(in, "x", moved))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return out["D"+strconv.Itoa(k-1)][0]
		}
		out, err := ddptest.Run(g, ddptest.NewVars(), nil, in)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for k := 1; k <= orders; k++ {
			got := out["D"+strconv.Itoa(k)][0]
			// Fourth order in h, so that rounding and truncation are both small.
			want := (8*(at(k, h)-at(k, -h)) - (at(k, 2*h) - at(k, -2*h))) / (12 * h)
			if !(math.Abs(got-want) <= 1e-7*(1+math.Abs(want))) || math.Abs(want) < 1e-3 {
				t.Errorf("%s: derivative of order %d is %v, finite differences give %v", name, k, got, want)
			}
		}
	}
}

func direction(k int) string { return "d" + strconv.Itoa(k) }

func with(in ddptest.Values, name string, v []float64) ddptest.Values {
	out := ddptest.Values{name: v}
	for k, x := range in {
		if k != name {
			out[k] = x
		}
	}
	return out
}
