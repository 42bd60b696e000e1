package gaussian

import (
	"math"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

const samples, size = 5, 3

// evaluate is f of a Gaussian with these means and log variances, and the noise
// "eps".
func evaluate(t *testing.T, in ddptest.Values, f func(c *nn.Context, q Diagonal, eps graph.ID) graph.ID) []float64 {
	t.Helper()
	c := nn.NewContext(nn.Train, 1)
	at := func(name string) graph.ID { return c.Input(name, graph.T(graph.F64, samples, size)) }
	c.Output("y", f(c, Diagonal{at("mean"), at("logvar")}, at("eps")))
	g, err := c.Commit()
	if err != nil {
		t.Fatal(err)
	}
	out, err := ddptest.Run(g, ddptest.NewVars(), nil, in)
	if err != nil {
		t.Fatal(err)
	}
	return out["y"]
}

func noises() ddptest.Values {
	in := ddptest.Values{}
	for i, name := range []string{"mean", "logvar", "eps"} {
		in[name] = ddptest.Noise(uint32(i), samples*size)
	}
	return in
}

// The divergence is ∫ q log(q/p), by Simpson's rule in each dimension.
func TestKLIsTheIntegral(t *testing.T) {
	in := noises()
	got := evaluate(t, in, func(c *nn.Context, q Diagonal, eps graph.ID) graph.ID {
		return c.Add(q.KL(c), c.Scale(c.Sum(eps, 1), 0))
	})
	for i := range samples {
		want := 0.0
		for j := range size {
			want += integral(in["mean"][i*size+j], math.Exp(in["logvar"][i*size+j]/2))
		}
		if !(math.Abs(got[i]-want) <= 1e-9*(1+want)) {
			t.Errorf("sample %d: %v, the integral is %v", i, got[i], want)
		}
	}
}

// integral is KL(N(m, s²) ‖ N(0, 1)) over m ± 12s.
func integral(m, s float64) (sum float64) {
	const steps = 4000 // even
	lo, h := m-12*s, 24*s/steps
	for i := range steps + 1 {
		x := lo + float64(i)*h
		logq := -(x-m)*(x-m)/(2*s*s) - math.Log(s)
		weight := 2.0 + 2*float64(i%2)
		if i == 0 || i == steps {
			weight = 1
		}
		sum += weight * math.Exp(logq) / math.Sqrt(2*math.Pi) * (logq + x*x/2)
	}
	return sum * h / 3
}

// A draw is the mean and the standard deviation times the noise.
func TestDraw(t *testing.T) {
	in := noises()
	got := evaluate(t, in, func(c *nn.Context, q Diagonal, eps graph.ID) graph.ID { return q.Draw(c, eps) })
	for i, x := range got {
		if want := in["mean"][i] + math.Sqrt(math.Exp(in["logvar"][i]))*in["eps"][i]; !(math.Abs(x-want) <= 1e-12) {
			t.Errorf("%d: %v, want %v", i, x, want)
		}
	}
}
