package optim

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

var base = Adam{Name: "a", LR: 0.01, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Decay: 1}

// byHand is Adam as PyTorch documents it, in float64, of all parameters p, behind
// clip_grad_norm_ and a warm-up. The loss is Σ wᵢ(pᵢ − 1)⁴/4, so gradients are wᵢ(pᵢ − 1)³.
func byHand(a Adam, p, w []float64, steps, perEpoch int) {
	m, v := make([]float64, len(p)), make([]float64, len(p))
	for step := range steps {
		t, lr := float64(step+1), a.LR*math.Pow(a.Decay, float64(step/perEpoch))
		if step < a.Warmup {
			lr *= t / float64(a.Warmup+1)
		}
		squares, factor := 0.0, 1.0
		for i := range p {
			squares += math.Pow(w[i]*math.Pow(p[i]-1, 3), 2)
		}
		if length := math.Sqrt(squares); a.Clip > 0 && length > a.Clip {
			factor = a.Clip / length
		}
		for i := range p {
			g := factor*w[i]*math.Pow(p[i]-1, 3) + a.WeightDecay*p[i]
			m[i] = a.Beta1*m[i] + (1-a.Beta1)*g
			v[i] = a.Beta2*v[i] + (1-a.Beta2)*g*g
			mHat, vHat := m[i]/(1-math.Pow(a.Beta1, t)), v[i]/(1-math.Pow(a.Beta2, t))
			p[i] -= lr * mHat / (math.Sqrt(vHat) + a.Eps)
		}
	}
}

// powers builds one step on two variables of n numbers, and outputs what
// follows the step sees.
func powers(a Adam, n int, d graph.DType) *nn.Context {
	c := nn.NewContext(nn.Train, 1)
	c.DType = d
	var loss graph.ID
	c.Scope("net", func() {
		for _, name := range []string{"p", "q"} {
			p := c.Weight(name, graph.D(n), nn.Zeros)
			e := c.Square(c.Square(c.Shift(p, -1)))
			term := c.Scale(c.Sum(c.Mul(c.Input("w"+name, graph.T(d, n)), e)), 0.25)
			if loss == 0 {
				loss = term
			} else {
				loss = c.Add(loss, term)
			}
		}
	})
	ps := c.Params("net")
	a.Step(c, ps, c.Grad(loss, nn.IDs(ps)...))
	c.Scope("net", func() { c.Output("seen", c.Weight("p", graph.D(n), nn.Zeros)) })
	return c
}

func TestAdamAgainstLoops(t *testing.T) {
	with := func(f func(a *Adam)) Adam { a := base; f(&a); return a }
	for _, tt := range []struct {
		name string
		a    Adam
	}{
		{"defaults", base},
		{"no momentum", with(func(a *Adam) { a.Beta1, a.Beta2 = 0, 0.9 })},
		{"weight decay", with(func(a *Adam) { a.WeightDecay = 0.3 })},
		{"no momentum, weight decay", with(func(a *Adam) { a.Beta1, a.Beta2, a.WeightDecay = 0, 0.9, 1e-4 })},
		{"schedule", with(func(a *Adam) { a.Decay = 0.5 })},
		{"large epsilon", with(func(a *Adam) { a.Eps = 0.1 })},
		{"both betas 0", with(func(a *Adam) { a.Beta1, a.Beta2 = 0, 0 })},
		{"warm-up and schedule", with(func(a *Adam) { a.Warmup, a.Decay = 4, 0.5 })},
		{"warm-up longer than the run", with(func(a *Adam) { a.Warmup = 100 })},
		{"clipped, weight decay", with(func(a *Adam) { a.Clip, a.WeightDecay, a.Eps = 0.01, 0.3, 0.1 })},
		{"clipped at times", with(func(a *Adam) { a.Clip, a.LR, a.Eps = 3.5, 0.1, 0.1 })},
	} {
		for d, tol := range map[graph.DType]float64{graph.F64: 1e-7, graph.F32: 3e-6} { // the schedule itself is F32
			t.Run(tt.name+" "+d.String(), func(t *testing.T) {
				const n, steps, perEpoch = 5, 7, 3
				vars, ty := ddptest.NewVars(), graph.T(d, n)
				in := ddptest.Values{"wp": ddptest.Noise(1, n), "wq": ddptest.Noise(2, n)}
				p, q := ddptest.Noise(3, n), ddptest.Noise(4, n)
				for name, v := range map[string][]float64{"net.p": p, "net.q": q} {
					if err := vars.Set(name, ddptest.Tensor(ty, v)); err != nil {
						t.Fatal(err)
					}
				}
				c := powers(tt.a, n, d)
				g, err := c.Commit()
				if err != nil {
					t.Fatal(err)
				}
				if err := nn.Initialise(vars, c.Variables(), 1); err != nil {
					t.Fatal(err)
				}
				var out ddptest.Values
				for step := range steps {
					s := tt.a.Schedule(int64(step), step/perEpoch)
					in[tt.a.Input()] = []float64{float64(s[0]), float64(s[1])}
					if out, err = ddptest.Run(g, vars, nil, in); err != nil {
						t.Fatal(err)
					}
				}
				both := slices.Concat(p, q)
				byHand(tt.a, both, slices.Concat(in["wp"], in["wq"]), steps, perEpoch)
				p, q = both[:n], both[n:]
				for name, want := range map[string][]float64{"net.p": p, "net.q": q} {
					got, err := vars.Get(name)
					if err != nil {
						t.Fatal(err)
					}
					if err := ddptest.Near(ddptest.Numbers(got), want, tol); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
				if err := ddptest.Near(out["seen"], p, tol); err != nil {
					t.Errorf("what follows the step sees: %v", err)
				}
			})
		}
	}
}

// Two steps in one graph are two runs of a graph with one, each with the schedule of its
// own number.
func TestStepsOfOneGraph(t *testing.T) {
	const run, epoch = 3, 2
	a := base
	a.Decay = 0.5
	train := func(steps, from, to int) map[string][]float64 {
		c, b := nn.NewContext(nn.Train, 1), ref.New()
		c.Scope("net", func() { c.Weight("p", graph.D(4), nn.Ones) })
		for nth := range steps {
			ps := c.Params("net")
			a.StepN(c, nth, ps, c.Grad(c.Sum(c.Exp(ps[0].ID)), ps[0].ID))
		}
		g, err := c.Commit()
		if err != nil {
			t.Fatal(err)
		}
		vars := b.NewVars()
		if err := nn.Initialise(vars, c.Variables(), 1); err != nil {
			t.Fatal(err)
		}
		p, err := b.Compile(g, exec.Options{Name: "test", Vars: vars})
		if err != nil {
			t.Fatal(err)
		}
		feed := a.Feeders(p, steps)
		for i := from; i < to; i++ {
			feed(int64(i), epoch)
			for nth := range steps {
				want := a.Schedule(int64(i*steps+nth), epoch)
				if got := p.Input(a.InputN(nth)).F32(); !slices.Equal(got, want[:]) {
					t.Errorf("step %d of run %d of %d steps is fed %v, want %v", nth, i, steps, got, want)
				}
			}
			if err := exec.Run(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		all := map[string][]float64{}
		for _, name := range vars.Names() {
			x, err := vars.Get(name)
			if err != nil {
				t.Fatal(err)
			}
			all[name] = ddptest.Numbers(x)
		}
		return all
	}
	got, want := train(2, run, run+1), train(1, 2*run, 2*run+2)
	if !reflect.DeepEqual(got, want) || len(got) != 3 {
		t.Errorf("two steps in one graph leave %v, one after the other %v", got, want)
	}
}

// All steps that a step of the run takes have its share of the rate, and clocks of their own.
func TestWarmupIsOfTheRun(t *testing.T) {
	a := base
	a.Warmup = 3
	for step, share := range []float64{0.25, 0.5, 0.75, 1, 1} {
		for nth := range 2 {
			got, want := a.ScheduleN(int64(step), 0, nth, 2), base.Schedule(int64(2*step+nth), 0)
			if want[0] *= float32(share); !(math.Abs(float64(got[0]/want[0]-1)) <= 1e-6) || got[1] != want[1] {
				t.Errorf("step %d, %d of 2: got %v, want %v", step, nth, got, want)
			}
		}
	}
}

// The moments are variables of their own, named by optimiser and parameter;
// with β₁ = 0 there is no first moment.
func TestMoments(t *testing.T) {
	names := func(a Adam) string {
		var all []string
		for _, v := range powers(a, 1, graph.F32).Variables() {
			if v.Role == nn.Moment {
				all = append(all, v.Name)
			}
		}
		return strings.Join(all, " ")
	}
	if got, want := names(base), "adam.a.net.p.m adam.a.net.p.v adam.a.net.q.m adam.a.net.q.v"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	zero := base
	zero.Beta1 = 0
	if got, want := names(zero), "adam.a.net.p.v adam.a.net.q.v"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Two optimisers of one parameter in one graph do not share moments.
func TestTwoOptimisers(t *testing.T) {
	c := nn.NewContext(nn.Train, 1)
	c.Scope("net", func() { c.Weight("p", graph.D(1), nn.Ones) })
	b := base
	b.Name = "b"
	for _, a := range []Adam{base, b} {
		ps := c.Params("net")
		a.Step(c, ps, []graph.ID{ps[0].ID})
	}
	if _, err := c.Commit(); err != nil {
		t.Fatal(err)
	}
	if n := len(c.Variables()); n != 5 {
		t.Errorf("%d variables, want the parameter and two moments each", n)
	}
}

func TestSchedule(t *testing.T) {
	a := Adam{LR: 3e-4, Beta1: 0.5, Beta2: 0.9, Decay: 0.998}
	for _, tt := range []struct {
		step  int64
		epoch int
		want  [2]float64
	}{
		{0, 0, [2]float64{3e-4 / 0.5, 1 / math.Sqrt(0.1)}},
		{1, 0, [2]float64{3e-4 / 0.75, 1 / math.Sqrt(0.19)}},
		{299999, 599, [2]float64{3e-4 * math.Pow(0.998, 599), 1}},
	} {
		got := a.Schedule(tt.step, tt.epoch)
		for i := range got {
			if !(math.Abs(float64(got[i])/tt.want[i]-1) <= 1e-7) {
				t.Errorf("step %d, epoch %d: got %v, want %v", tt.step, tt.epoch, got, tt.want)
			}
		}
	}
}

func TestValidate(t *testing.T) {
	nan := math.NaN()
	for _, tt := range []struct {
		name   string
		change func(a *Adam)
		want   string
	}{
		{"good", func(*Adam) {}, ""},
		{"no momentum", func(a *Adam) { a.Beta1 = 0 }, ""},
		{"no rate", func(a *Adam) { a.LR = 0 }, "learning rate"},
		{"negative rate", func(a *Adam) { a.LR = -1 }, "learning rate"},
		{"infinite rate", func(a *Adam) { a.LR = math.Inf(1) }, "learning rate"},
		{"rate not a number", func(a *Adam) { a.LR = nan }, "learning rate"},
		{"beta1 of 1", func(a *Adam) { a.Beta1 = 1 }, "betas"},
		{"beta2 of 1", func(a *Adam) { a.Beta2 = 1 }, "betas"},
		{"negative beta1", func(a *Adam) { a.Beta1 = -0.1 }, "betas"},
		{"negative beta", func(a *Adam) { a.Beta2 = -0.1 }, "betas"},
		{"beta not a number", func(a *Adam) { a.Beta1 = nan }, "betas"},
		{"no epsilon", func(a *Adam) { a.Eps = 0 }, "epsilon"},
		{"infinite epsilon", func(a *Adam) { a.Eps = math.Inf(1) }, "epsilon"},
		{"epsilon below float32", func(a *Adam) { a.Eps = 1e-50 }, "epsilon"},
		{"negative weight decay", func(a *Adam) { a.WeightDecay = -1e-4 }, "weight decay"},
		{"infinite weight decay", func(a *Adam) { a.WeightDecay = math.Inf(1) }, "weight decay"},
		{"weight decay not a number", func(a *Adam) { a.WeightDecay = nan }, "weight decay"},
		{"negative warm-up", func(a *Adam) { a.Warmup = -1 }, "steps of warm-up"},
		{"endless warm-up", func(a *Adam) { a.Warmup = 1<<30 + 1 }, "steps of warm-up"},
		{"negative limit", func(a *Adam) { a.Clip = -1 }, "gradients' norm"},
		{"limit not a number", func(a *Adam) { a.Clip = nan }, "gradients' norm"},
		{"infinite limit", func(a *Adam) { a.Clip = math.Inf(1) }, "gradients' norm"},
		{"no decay factor", func(a *Adam) { a.Decay = 0 }, "learning-rate decay"},
		{"growing rate", func(a *Adam) { a.Decay = 1.01 }, "learning-rate decay"},
		{"decay not a number", func(a *Adam) { a.Decay = nan }, "learning-rate decay"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := base
			a.Name = "lower"
			tt.change(&a)
			err := a.Validate()
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("got %v, want no error", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "lower: ")):
				t.Errorf("got %v, want one about %s", err, tt.want)
			}
		})
	}
}
