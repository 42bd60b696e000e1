package sm

import (
	"math"
	"slices"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/nn"
)

// rbm is a GRBM in loops [ALGORITHMS.md §2.2]: w is (visible, hidden).
type rbm struct{ s, w, b, c []float64 }

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// probs are p(h = 1|v).
func (m rbm) probs(v []float64) []float64 {
	p := slices.Clone(m.c)
	for i, x := range v {
		for j := range p {
			p[j] += x * m.w[i*len(p)+j]
		}
	}
	for j := range p {
		p[j] = sigmoid(p[j])
	}
	return p
}

// denoise is ½‖S(ṽ) + ε/σ‖² at one sample and its gradient in all parameters.
func (m rbm) denoise(v, eps []float64, sigma float64) (loss float64, g rbm) {
	noisy := slices.Clone(v)
	for i := range v {
		noisy[i] += sigma * eps[i]
	}
	p := m.probs(noisy)
	n := len(p)
	g = rbm{make([]float64, len(m.s)), make([]float64, len(m.w)), make([]float64, len(m.b)), make([]float64, n)}
	back := make([]float64, n) // Wᵀr
	for i, x := range noisy {
		precision := math.Exp(-2 * m.s[i])
		r := eps[i]/sigma - (x-m.b[i])*precision
		for j := range p {
			r += m.w[i*n+j] * p[j]
		}
		loss += r * r / 2
		g.s[i], g.b[i] = 2*r*(x-m.b[i])*precision, r*precision
		for j := range p {
			g.w[i*n+j] = r * p[j]
			back[j] += m.w[i*n+j] * r
		}
	}
	for j := range p {
		g.c[j] = back[j] * p[j] * (1 - p[j])
		for i, x := range noisy {
			g.w[i*n+j] += g.c[j] * x
		}
	}
	return loss, g
}

func (m rbm) parts() [][]float64 { return [][]float64{m.s, m.w, m.b, m.c} }

// adam is Adam in loops.
type adam struct{ m, v [][]float64 }

func (a *adam) step(c *Config, t int, params, grads [][]float64) {
	for k, p := range params {
		if len(a.m) == k {
			a.m, a.v = append(a.m, make([]float64, len(p))), append(a.v, make([]float64, len(p)))
		}
		for i, g := range grads[k] {
			a.m[k][i] = c.Beta1*a.m[k][i] + (1-c.Beta1)*g
			a.v[k][i] = c.Beta2*a.v[k][i] + (1-c.Beta2)*g*g
			m, v := a.m[k][i]/(1-math.Pow(c.Beta1, float64(t))), a.v[k][i]/(1-math.Pow(c.Beta2, float64(t)))
			p[i] -= c.LR * m / (math.Sqrt(v) + 1e-8)
		}
	}
}

var names = []string{"model.s", "model.w", "model.b", "model.c"}

// Steps of DSM against loops: the draws, the loss, its gradient by hand and Adam.
func TestDenoisingByHand(t *testing.T) {
	const batch, steps = 5, 4
	c := tinyMachine(func(*Config) {})
	x := samples(c, batch)
	reports, vars := train(t, c, steps, x)

	b := context64(1)
	c.density().declare(b)
	start := ddptest.NewVars()
	if err := nn.Initialise(start, b.Variables(), testSeed); err != nil {
		t.Fatal(err)
	}
	m := rbm{numbers(t, start, names[0]), numbers(t, start, names[1]), numbers(t, start, names[2]), numbers(t, start, names[3])}
	d := len(m.b)
	var opt adam
	for step := range steps {
		loss, sum := 0.0, rbm{make([]float64, d), make([]float64, len(m.w)), make([]float64, d), make([]float64, len(m.c))}
		for i := range batch {
			eps := make([]float64, d)
			philox.Name{Seed: testSeed, Purpose: philox.Perturb, Step: uint32(step), Sample: uint32(i)}.Normal(eps)
			l, g := m.denoise(x[i*d:(i+1)*d], eps, c.Sigma)
			loss += l / batch
			for k, part := range sum.parts() {
				for j := range part {
					part[j] += g.parts()[k][j] / batch
				}
			}
		}
		norm := 0.0
		for _, part := range sum.parts() {
			for _, g := range part {
				norm += g * g
			}
		}
		near(t, "report", reports[step], []float64{loss, 0, math.Sqrt(norm)}, 1e-6) // the report is F32
		opt.step(c, step+1, m.parts(), sum.parts())
	}
	for k, part := range m.parts() {
		near(t, names[k], numbers(t, vars, names[k]), part, 1e-11)
	}
}
