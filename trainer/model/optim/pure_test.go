package optim

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// handState is one parameter tensor and its moments.
type handState struct{ p, m, v []float64 }

// adamByHand and descentByHand take one step in float64, written from the
// formulas as loops.
func adamByHand(a PureAdam, s handState, g []float64, r [2]float64) {
	for i := range s.p {
		s.m[i] = a.Beta1*s.m[i] + (1-a.Beta1)*g[i]
		s.v[i] = a.Beta2*s.v[i] + (1-a.Beta2)*g[i]*g[i]
		inRoot := s.v[i]
		if a.Differentiable {
			inRoot += 1e-16
		}
		s.p[i] -= r[0] * s.m[i] / (math.Sqrt(inRoot)*r[1] + a.Eps)
	}
}

func descentByHand(_ PureAdam, s handState, g []float64, r [2]float64) {
	for i := range s.p {
		s.p[i] -= r[0] * g[i]
	}
}

// Four steps in one graph, with gradients and moments from outside, against
// loops.
func TestRulesAgainstLoops(t *testing.T) {
	const steps = 4
	shapes := []graph.Shape{graph.D(3, 5), graph.D(7), graph.D()}
	for _, tt := range []struct {
		name string
		rule Rule
		a    PureAdam
		hand func(PureAdam, handState, []float64, [2]float64)
	}{
		{name: "adam", a: PureAdam{0.9, 0.95, 1e-8, false}, hand: adamByHand},
		{name: "differentiable adam", a: PureAdam{0.9, 0.95, 1e-8, true}, hand: adamByHand},
		{name: "adam without momentum", a: PureAdam{0, 0.9, 1e-3, false}, hand: adamByHand},
		{name: "descent", rule: Descent{}, hand: descentByHand},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rule := tt.rule
			if rule == nil {
				rule = tt.a
			}
			c, in := float64Context(), ddptest.Values{}
			rates := Rows(c, "rates", steps)
			var s State
			hand := make([]handState, len(shapes))
			for i, shape := range shapes {
				n, ty := shape.Len(), graph.Type{DType: graph.F64, Shape: shape}
				h := handState{ddptest.Noise(uint32(i), n), ddptest.Noise(uint32(10+i), n), ddptest.Noise(uint32(20+i), n)}
				for k := range h.v {
					h.v[k] *= h.v[k]
				}
				for what, v := range map[string][]float64{"p": h.p, "m": h.m, "v": h.v} {
					in[fmt.Sprint(what, i)] = slices.Clone(v)
				}
				s.P = append(s.P, c.Input(fmt.Sprint("p", i), ty))
				s.M = append(s.M, c.Input(fmt.Sprint("m", i), ty))
				s.V = append(s.V, c.Input(fmt.Sprint("v", i), ty))
				hand[i] = h
			}
			for step := range steps {
				r := AdamRates(0.01, tt.a.Beta1, tt.a.Beta2, int64(step+3))
				in["rates"] = append(in["rates"], r[:]...)
				var grads []graph.ID
				for i, shape := range shapes {
					name := fmt.Sprintf("g%d.%d", step, i)
					in[name] = ddptest.Noise(uint32(100+10*step+i), shape.Len())
					grads = append(grads, c.Input(name, graph.Type{DType: graph.F64, Shape: shape}))
					tt.hand(tt.a, hand[i], in[name], r)
				}
				s = rule.Step(c, s, grads, rates[step])
			}
			for i := range shapes {
				c.Output(fmt.Sprint("p'", i), s.P[i])
				c.Output(fmt.Sprint("m'", i), s.M[i])
				c.Output(fmt.Sprint("v'", i), s.V[i])
			}
			out := run(t, c, nil, in)
			for i, h := range hand {
				for what, want := range map[string][]float64{"p'": h.p, "m'": h.m, "v'": h.v} {
					if err := ddptest.Near(out[fmt.Sprint(what, i)], want, 1e-13); err != nil {
						t.Errorf("%s of tensor %d: %v", what, i, err)
					}
				}
			}
		})
	}
}

// PureAdam with Declare and Keep gives the same bits as Adam over several runs,
// in both types, and the same variables.
func TestPureAdamIsAdam(t *testing.T) {
	const n, steps = 5, 6
	for _, d := range []graph.DType{graph.F32, graph.F64} {
		t.Run(d.String(), func(t *testing.T) {
			train := func(step func(c *nn.Context, ps []nn.Param, grads []graph.ID), input string) map[string][]float64 {
				c := nn.NewContext(nn.Train, 1)
				c.DType = d
				var loss graph.ID
				c.Scope("net", func() {
					x := c.Mul(c.Weight("p", graph.D(n), nn.Ones), c.Input("w", graph.T(d, n)))
					loss = c.Sum(c.Sin(c.Add(x, c.Square(c.Weight("q", graph.D(), nn.Ones)))))
				})
				ps := c.Params("net")
				step(c, ps, c.Grad(loss, nn.IDs(ps)...))
				g, err := c.Commit()
				if err != nil {
					t.Fatal(err)
				}
				vars, in := ddptest.NewVars(), ddptest.Values{"w": ddptest.Noise(1, n)}
				if err := nn.Initialise(vars, c.Variables(), 1); err != nil {
					t.Fatal(err)
				}
				for i := range steps {
					s := base.Schedule(int64(i), 0)
					in[input] = []float64{float64(s[0]), float64(s[1])}
					if _, err := ddptest.Run(g, vars, nil, in); err != nil {
						t.Fatal(err)
					}
				}
				all := map[string][]float64{}
				for _, v := range c.Variables() {
					x, err := vars.Get(v.Name)
					if err != nil {
						t.Fatal(err)
					}
					all[v.Name] = ddptest.Numbers(x)
				}
				return all
			}
			want := train(func(c *nn.Context, ps []nn.Param, grads []graph.ID) { base.Step(c, ps, grads) }, base.Input())
			got := train(func(c *nn.Context, ps []nn.Param, grads []graph.ID) {
				pure := PureAdam{Beta1: base.Beta1, Beta2: base.Beta2, Eps: base.Eps}
				pure.Step(c, Declare(c, base.Name, ps), grads, Rows(c, "rates", 1)[0]).Keep(c, base.Name, ps)
			}, "rates")
			if len(want) != 6 || len(got) != len(want) {
				t.Fatalf("%d and %d variables, want 6", len(got), len(want))
			}
			for name, w := range want {
				if !slices.Equal(got[name], w) {
					t.Errorf("%s: got %v, want %v", name, got[name], w)
				}
			}
		})
	}
}

// What cannot be a step is an error of the graph.
func TestMisuse(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		f          func(c *nn.Context, p graph.ID)
	}{
		{"no moments", "no moments", func(c *nn.Context, p graph.ID) {
			PureAdam{}.Step(c, State{P: []graph.ID{p}}, []graph.ID{p}, Rates{p, p})
		}},
		{"too few gradients", "want 0 parameters", func(c *nn.Context, p graph.ID) {
			Descent{}.Step(c, State{P: []graph.ID{p}}, nil, Rates{p, p})
		}},
		{"some moments", "moments of all or none", func(c *nn.Context, p graph.ID) {
			Descent{}.Step(c, State{P: []graph.ID{p, p}, M: []graph.ID{p}, V: []graph.ID{p}}, []graph.ID{p, p}, Rates{p, p})
		}},
		{"another optimiser is kept", "set before it is declared", func(c *nn.Context, p graph.ID) {
			c.Scope("net", func() { c.Weight("p", graph.D(), nn.Zeros) })
			ps := c.Params("net")
			Declare(c, "lower", ps).Keep(c, "upper", ps)
		}},
		{"a limit of 0", "limit", func(c *nn.Context, p graph.ID) { ClipNorm(c, []graph.ID{p}, 0) }},
		{"a limit that is no number", "limit", func(c *nn.Context, p graph.ID) { ClipNorm(c, []graph.ID{p}, math.NaN()) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := float64Context()
			tt.f(c, c.Input("p", graph.T(graph.F64)))
			if _, err := c.Commit(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestPureAdamValidate(t *testing.T) {
	good := PureAdam{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}
	for _, tt := range []struct {
		name, want string
		change     func(*PureAdam)
	}{
		{"good", "", func(*PureAdam) {}},
		{"beta2 of 1", "betas", func(a *PureAdam) { a.Beta2 = 1 }},
		{"beta1 of 1", "betas", func(a *PureAdam) { a.Beta1 = 1 }},
		{"beta1 not a number", "betas", func(a *PureAdam) { a.Beta1 = math.NaN() }},
		{"no epsilon", "epsilon", func(a *PureAdam) { a.Eps = 0 }},
		{"infinite epsilon", "epsilon", func(a *PureAdam) { a.Eps = math.Inf(1) }},
		{"epsilon below float32", "epsilon", func(a *PureAdam) { a.Eps = 1e-50 }},
	} {
		a := good
		tt.change(&a)
		if err := a.Validate(); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v", tt.name, err)
		}
	}
}

func float64Context() *nn.Context {
	c := nn.NewContext(nn.Train, 1)
	c.DType = graph.F64
	return c
}

// run runs what c holds once.
func run(t *testing.T, c *nn.Context, outputs map[string]graph.ID, in ddptest.Values) ddptest.Values {
	t.Helper()
	for name, id := range outputs {
		c.Output(name, id)
	}
	g, err := c.Commit()
	if err != nil {
		t.Fatal(err)
	}
	out, err := ddptest.Run(g, nil, nil, in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
