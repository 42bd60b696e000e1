package optim

import (
	"fmt"
	"math"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

const (
	params = 5
	thetas = 3
)

// unrolled is Σ sin p₃ after three steps of rule on
//
//	G(θ, p) = Σᵢ ½(pᵢ − tanh (Aθ)ᵢ)² + ¼ pᵢ⁴ + θ₀pᵢ
//
// from p₀, m₀, v₀ given from outside: a lower level whose solution depends on θ.
func unrolled(c *nn.Context, rule Rule, theta graph.ID) graph.ID {
	vec := graph.T(c.DType, params)
	target := c.Tanh(c.Reshape(c.MatMul(c.Input("A", graph.T(c.DType, params, thetas)), c.Reshape(theta, graph.D(thetas, 1)), false, false), graph.D(params)))
	s := State{P: []graph.ID{c.Input("p", vec)}, M: []graph.ID{c.Input("m", vec)}, V: []graph.ID{c.Input("v", vec)}}
	for _, r := range Rows(c, "rates", 3) {
		p := s.P[0]
		g := c.Add(c.Scale(c.Sum(c.Square(c.Sub(p, target))), 0.5), c.Scale(c.Sum(c.Pow(p, 4)), 0.25))
		g = c.Add(g, c.Sum(c.Mul(p, c.Reshape(c.Slice(theta, 0, 0, 1, 1), graph.D()))))
		s = rule.Step(c, s, c.Grad(g, p), r)
	}
	return c.Sum(c.Sin(s.P[0]))
}

// The derivatives in θ through three unrolled steps, of order 1 and 2, against
// five-point central differences of the order before.
func TestUnrolledDerivatives(t *testing.T) {
	square := ddptest.Noise(4, params)
	for i, x := range square {
		square[i] = x*x + 0.01
	}
	zero := make([]float64, params)
	for _, tt := range []struct {
		name  string
		rule  Rule
		m, v  []float64
		first int64 // number of the first of Adam's steps
	}{
		{"adam, moments of earlier steps", PureAdam{0.9, 0.95, 1e-8, true}, ddptest.Noise(3, params), square, 6},
		{"adam, first steps", PureAdam{0.9, 0.95, 1e-3, true}, zero, zero, 1},
		{"adam without momentum", PureAdam{0, 0.9, 1e-3, true}, zero, square, 1},
		{"adam without the guard, where no gradient is 0", PureAdam{0.9, 0.95, 1e-8, false}, ddptest.Noise(3, params), square, 6},
		{"descent", Descent{}, zero, zero, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := ddptest.Values{"p": ddptest.Noise(1, params), "A": ddptest.Noise(2, params*thetas), "m": tt.m, "v": tt.v,
				"dir1": ddptest.Noise(5, thetas), "dir2": ddptest.Noise(6, thetas)}
			for i := range int64(3) {
				r := AdamRates(0.05, 0.9, 0.95, tt.first+i)
				in["rates"] = append(in["rates"], r[:]...)
			}
			c := float64Context()
			theta := c.Input("theta", graph.T(graph.F64, thetas))
			l := unrolled(c, tt.rule, theta)
			c.Output("L0", l)
			for order := 1; order <= 2; order++ {
				l = c.Sum(c.Mul(c.Grad(l, theta)[0], c.Input(fmt.Sprint("dir", order), graph.T(graph.F64, thetas))))
				c.Output(fmt.Sprint("L", order), l)
			}
			g, err := c.Commit()
			if err != nil {
				t.Fatal(err)
			}
			at := func(order int, h float64) ddptest.Values {
				in["theta"] = ddptest.Noise(7, thetas)
				for i := range in["theta"] {
					in["theta"][i] += h * in[fmt.Sprint("dir", order)][i]
				}
				out, err := ddptest.Run(g, nil, nil, in)
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
			base := at(1, 0)
			for order := 1; order <= 2; order++ {
				const h = 1e-4
				f := func(x float64) float64 { return at(order, x)[fmt.Sprint("L", order-1)][0] }
				fd := (8*(f(h)-f(-h)) - f(2*h) + f(-2*h)) / (12 * h)
				got := base[fmt.Sprint("L", order)][0]
				if math.Abs(got) < 1e-4 || !(math.Abs(got-fd) <= 1e-8*(1+math.Abs(fd))) {
					t.Errorf("order %d: got %.12g, finite differences give %.12g", order, got, fd)
				}
			}
		})
	}
}

// A coordinate whose gradient is exactly 0 in every step (a dead unit): with
// Differentiable all derivatives are finite and that coordinate's are 0;
// without it they are not numbers. Either way its moments stay 0: the guard is in the
// root, not in what is kept.
func TestGradientOfZero(t *testing.T) {
	for _, d := range []graph.DType{graph.F64, graph.F32} {
		for _, guarded := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, differentiable %v", d, guarded), func(t *testing.T) {
				c := nn.NewContext(nn.Train, 1)
				c.DType = d
				vec := graph.T(d, 2)
				theta, zero := c.Input("theta", vec), c.Zeros(vec)
				s := State{P: []graph.ID{c.Input("p", vec)}, M: []graph.ID{zero}, V: []graph.ID{zero}}
				in := ddptest.Values{"theta": {0.7, -0.4}, "p": {0.3, -0.5}}
				for i, r := range Rows(c, "rates", 3) {
					loss := c.Sum(c.Square(c.Mul(theta, c.Relu(s.P[0])))) // the gradient of p₁ is 0 where p₁ < 0
					s = PureAdam{0.9, 0.95, 1e-8, guarded}.Step(c, s, c.Grad(loss, s.P...), r)
					rates := AdamRates(1e-3, 0.9, 0.95, int64(i+1))
					in["rates"] = append(in["rates"], rates[:]...)
				}
				first := c.Grad(c.Sum(c.Square(s.P[0])), theta)[0]
				out := map[string]graph.ID{"p": s.P[0], "v": s.V[0], "order 1": first, "order 2": c.Grad(c.Sum(c.Sin(first)), theta)[0]}
				got := run(t, c, out, in)
				if p := got["p"]; !(math.Abs(p[0]-0.297) < 1e-3) || !(math.Abs(p[1]+0.5) <= 1e-6) {
					t.Errorf("p is %v, want about 0.297 and -0.5", p)
				}
				if got["v"][1] != 0 {
					t.Errorf("the second moment of a gradient of 0 is %v", got["v"][1])
				}
				for _, order := range []string{"order 1", "order 2"} {
					x := got[order]
					if guarded && (x[1] != 0 || x[0] == 0 || math.IsNaN(x[0]) || math.IsInf(x[0], 0)) {
						t.Errorf("%s: got %v, want a finite number and 0", order, x)
					}
					if !guarded && !math.IsNaN(x[1]) {
						t.Errorf("%s: got %v, where √ of 0 is not guarded: is the guard needed at all?", order, x)
					}
				}
			})
		}
	}
}
