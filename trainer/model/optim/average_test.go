package optim

import (
	"math"
	"strings"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// averaged is a step that moves net.p by the input "by", with averages, and its variables;
// net.q is only read, and moment m of p is set.
func averaged(t *testing.T, a Average, d graph.DType, n int) (*graph.Graph, []nn.Variable) {
	t.Helper()
	c := nn.NewContext(nn.Train, 1)
	c.DType = d
	c.Scope("net", func() {
		p, q := c.Weight("p", graph.D(n), nn.Normal(1)), c.Weight("q", graph.D(n), nn.Normal(1))
		c.Output("read", q)
		m := c.Moment("p.m", graph.D(n))
		c.Update("p.m", c.Add(m, p))
		c.Update("p", c.Add(p, c.Input("by", graph.T(d, n))))
	})
	g, err := c.Commit()
	if err != nil {
		t.Fatal(err)
	}
	g, vars, err := a.Add(g, c.Variables())
	if err != nil {
		t.Fatal(err)
	}
	return g, vars
}

// value is that of a variable.
func value(t *testing.T, vars exec.Vars, name string) []float64 {
	t.Helper()
	v, err := vars.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	return ddptest.Numbers(v)
}

// Averages are those of the weights after every step, by the sum that defines them; whatever
// they begin with; of weights that steps move, and of nothing else.
func TestAverage(t *testing.T) {
	for d, tol := range map[graph.DType]float64{graph.F64: 1e-6, graph.F32: 3e-6} { // the rate is F32
		for _, decay := range []float64{1e-9, 0.5, 0.9, 0.9999} {
			const n, steps = 5, 40
			g, specs := averaged(t, Average{decay}, d, n)
			if last := specs[len(specs)-1]; len(specs) != 4 || last.Name != nn.AverageOf("net.p") || last.Role != nn.Average || last.Type != graph.T(d, n) {
				t.Fatalf("variables are %v", specs)
			}
			vars := ddptest.NewVars()
			if err := nn.Initialise(vars, specs, 1); err != nil {
				t.Fatal(err)
			}
			if err := vars.Set(nn.AverageOf("net.p"), ddptest.Tensor(graph.T(d, n), ddptest.Noise(9, n))); err != nil {
				t.Fatal(err)
			}
			b := ref.New()
			p, err := b.Compile(g, exec.Options{Name: "step", Vars: vars})
			if err != nil {
				t.Fatal(err)
			}
			feed := Average{decay}.Feeder(p)
			sum, weight := make([]float64, n), 0.0
			for step := range steps {
				feed(int64(step))
				copy(p.Input("by").Bytes(), ddptest.Tensor(graph.T(d, n), ddptest.Noise(uint32(step+10), n)).Bytes())
				if err := exec.Run(t.Context(), p); err != nil {
					t.Fatal(err)
				}
				weight = decay*weight + 1
				for i, w := range value(t, vars, "net.p") {
					sum[i] = decay*sum[i] + w
					if got := value(t, vars, nn.AverageOf("net.p"))[i]; !(math.Abs(got-sum[i]/weight) <= tol*(1+math.Abs(sum[i]/weight))) {
						t.Fatalf("%v, decay %v, step %d: average %v, want %v", d, decay, step, got, sum[i]/weight)
					}
				}
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// What a step computed before it still does.
func TestAverageChangesNothingElse(t *testing.T) {
	c := powers(base, 3, graph.F32)
	g, err := c.Commit()
	if err != nil {
		t.Fatal(err)
	}
	with, vars, err := Average{0.9}.Add(g, c.Variables())
	if err != nil {
		t.Fatal(err)
	}
	if len(vars) != len(c.Variables())+2 || len(with.Assigns()) != len(g.Assigns())+2 || len(with.Outputs()) != len(g.Outputs()) {
		t.Errorf("%d variables, %d assigned, %d outputs", len(vars), len(with.Assigns()), len(with.Outputs()))
	}
	for i, n := range g.Nodes() {
		if m := with.Nodes()[i]; m.Op != n.Op || m.Scope != n.Scope {
			t.Fatalf("node %d is %v, and was %v", i, m.Op, n.Op)
		}
	}
}

func TestAverageRefuses(t *testing.T) {
	for _, decay := range []float64{0, 1, -0.5, 1.5, math.NaN(), math.Inf(1), 1 - 1e-12} {
		if _, _, err := (Average{decay}).Add(&graph.Graph{}, nil); err == nil || !strings.Contains(err.Error(), "want a decay of averages above 0 and below 1") {
			t.Errorf("%v: %v", decay, err)
		}
	}
}
