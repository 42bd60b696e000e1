package sm

import (
	"math"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// board are n points, uniform on the two diagonal cells of the unit square.
func board(n int, stream uint32) []float64 {
	u := make([]float64, 3*n)
	philox.Name{Seed: 1, Purpose: philox.Testing, Sample: stream}.Uniform(u)
	var x []float64
	for i := range n {
		cell := math.Round(u[3*i]) / 2
		x = append(x, cell+u[3*i+1]/2, cell+u[3*i+2]/2)
	}
	return x
}

// logLikelihood is the mean of log p over points, its normaliser by enumeration
// of the hidden states [ALGORITHMS.md §2.2].
func (m rbm) logLikelihood(points []float64) float64 {
	d, n := len(m.b), len(m.c)
	z := 0.0
	for state := range 1 << n {
		e := 0.0
		wh := make([]float64, d)
		for j := range n {
			h := float64(state >> j & 1)
			e += m.c[j] * h
			for i := range d {
				wh[i] += m.w[i*n+j] * h
			}
		}
		for i := range d {
			e += m.b[i]*wh[i] + math.Exp(2*m.s[i])*wh[i]*wh[i]/2
		}
		z += math.Exp(e)
	}
	logZ := math.Log(z)
	for _, s := range m.s {
		logZ += s + math.Log(2*math.Pi)/2
	}
	sum := 0.0
	for k := 0; k < len(points); k += d {
		for i, x := range points[k : k+d] {
			sum -= (x - m.b[i]) * (x - m.b[i]) * math.Exp(-2*m.s[i]) / 2
		}
		for j := range n {
			l := m.c[j]
			for i, x := range points[k : k+d] {
				l += x * m.w[i*n+j]
			}
			sum += math.Log1p(math.Exp(l))
		}
	}
	return sum/float64(len(points)/d) - logZ
}

// A short run of the published settings at a larger rate raises the likelihood
// of points that it has not seen, by each way of having the score right.
func TestLearnsTheBoard(t *testing.T) {
	const steps, batch = 3000, 100
	test := board(2000, 1)
	for name, change := range map[string]func(c *Config){
		"ssm":    func(*Config) {},
		"sliced": func(c *Config) { c.Trace = Sliced },
		"dsm":    func(c *Config) { c.Objective, c.Sigma = DSM, 0.05 },
	} {
		t.Run(name, func(t *testing.T) {
			c := checkerboard(SSM)
			c.LR = 1e-2
			change(c)
			g, specs, err := c.Model().Step(1, batch)
			if err != nil {
				t.Fatal(err)
			}
			b := ref.New()
			vars := b.NewVars()
			if err := nn.Initialise(vars, specs, testSeed); err != nil {
				t.Fatal(err)
			}
			p, err := b.Compile(g, exec.Options{Name: "step", Vars: vars})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			}()
			likelihood := func() float64 {
				m := rbm{numbers(t, vars, names[0]), numbers(t, vars, names[1]), numbers(t, vars, names[2]), numbers(t, vars, names[3])}
				return m.logLikelihood(test)
			}
			before := likelihood()
			feed := c.Model().Feeder(p)
			for i := range steps {
				copy(p.Input(algo.InputImages).Bytes(), ddptest.Tensor(p.Input(algo.InputImages).Type, board(batch, uint32(i+2))).Bytes())
				if key := p.Input(algo.InputKey); key != nil {
					copy(key.I64(), []int64{testSeed, int64(i), 0})
				}
				feed(int64(i), 0)
				if err := exec.Run(t.Context(), p); err != nil {
					t.Fatal(err)
				}
			}
			after := likelihood()
			t.Logf("log-likelihood %.3f, then %.3f", before, after)
			if !(before < -1 && after > 0) {
				t.Errorf("the log-likelihood goes from %.3f to %.3f in %d steps, want from below -1 to above 0", before, after, steps)
			}
		})
	}
}
