package bism

import (
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/latent"
)

// plain is log p̃(v,h) − log q(h|v) as a function of numbers, (B).
type plain struct {
	t    *testing.T
	g    *graph.Graph
	vars exec.Vars
}

func newPlain(t *testing.T, r rig) plain {
	s := r.begin(1)
	v := s.Input("v", s.Type(s.data))
	h := s.Input("h", graph.T(graph.F64, r.batch, r.cfg.Net.Hidden))
	q := s.model.Infer(s.Context, s.phi.P, v)
	s.Output("ratio", latent.LogRatio(s.Context, s.model, s.theta.P, q, v, h))
	g, err := s.Commit()
	if err != nil {
		t.Fatal(err)
	}
	vars, err := r.vars(s.Variables())
	if err != nil {
		t.Fatal(err)
	}
	return plain{t, g, vars}
}

func (p plain) at(v, h []float64) []float64 {
	p.t.Helper()
	out, err := ddptest.Run(p.g, p.vars, nil, ddptest.Values{"v": v, "h": h})
	if err != nil {
		p.t.Fatal(err)
	}
	return out["ratio"]
}

// slope is the gradient of each sample in x, by central differences of f; samples
// do not meet, so coordinate j of all of them is moved at once.
func slope(f func(x []float64) []float64, x []float64, batch int) []float64 {
	const step = 1e-5
	n := len(x) / batch
	out := make([]float64, len(x))
	for j := range n {
		at := func(by float64) []float64 {
			moved := append([]float64(nil), x...)
			for i := range batch {
				moved[i*n+j] += by
			}
			return f(moved)
		}
		up, down, up2, down2 := at(step), at(-step), at(2*step), at(-2*step)
		for i := range batch {
			out[i*n+j] = (8*(up[i]-down[i]) - (up2[i] - down2[i])) / (12 * step)
		}
	}
	return out
}

// Both losses of every objective and divergence against their formulas, with
// derivatives by finite differences of log p̃(v,h) − log q(h|v).
func TestLossesAgainstFormulas(t *testing.T) {
	rigs := []rig{
		newRig(tinyUnits(func(c *Config) { c.Objective = DSM }), 4),
		newRig(tinyUnits(func(c *Config) { c.Objective = SSM }), 4),
		newRig(tinyUnits(func(c *Config) { c.Objective = MDSM }), 4),
		newRig(tinyNetworks(func(c *Config) { c.Objective = DSM }), 3),
		newRig(tinyNetworks(func(c *Config) { c.Objective = MDSM }), 3),
		newRig(tinyNetworks(func(c *Config) { c.Objective, c.Lower = MDSM, latent.KL }), 3),
	}
	for _, r := range rigs {
		t.Run(label(r.cfg)+" "+string(r.cfg.Lower), func(t *testing.T) {
			out, _, err := r.run(1, func(s *step) {
				s.Output("upper", s.upper(s.phi.P))
				s.Output("lower", s.lower(s.phi.P, innerPlace))
				for name, place := range map[string]int{"up.": upperPlace, "low.": innerPlace} {
					o := s.see(place)
					s.Output(name+"v", o.v)
					s.Output(name+"h", s.hidden(s.model.Infer(s.Context, s.phi.P, o.v), place))
					if o.eps != 0 {
						s.Output(name+"eps", o.eps)
					}
					if o.sigma != 0 {
						s.Output(name+"sigma", o.sigma)
					}
				}
				s.Output("u", s.draw(philox.Projection, upperPlace, graph.Rademacher, s.Type(s.data)))
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			p := newPlain(t, r)
			near(t, "the upper loss", out["upper"], []float64{p.upper(r, out)}, 2e-6)
			near(t, "the lower loss", out["lower"], []float64{p.lower(r, out)}, 2e-6)
		})
	}
}

func (p plain) upper(r rig, out ddptest.Values) (loss float64) {
	v, h, eps := out["up.v"], out["up.h"], out["up.eps"]
	score := slope(func(x []float64) []float64 { return p.at(x, h) }, v, r.batch)
	n := len(v) / r.batch
	for i, s := range score {
		switch r.cfg.Objective {
		case DSM:
			s += eps[i] / r.cfg.Sigma
		case MDSM:
			s = s/out["up.sigma"][i/n] + eps[i]/(r.cfg.Sigma0*r.cfg.Sigma0)
		}
		loss += s * s / 2
	}
	if r.cfg.Objective == SSM { // the second derivative of log p̃ − log q along u
		const step = 1e-3
		at := func(by float64) []float64 { return p.at(axpy(by, out["u"], v), h) }
		up, mid, down := at(step), at(0), at(-step)
		up2, down2 := at(2*step), at(-2*step)
		for i := range mid {
			loss += (16*(up[i]+down[i]) - (up2[i] + down2[i]) - 30*mid[i]) / (12 * step * step)
		}
	}
	return loss / float64(r.batch)
}

func (p plain) lower(r rig, out ddptest.Values) (loss float64) {
	v, h := out["low.v"], out["low.h"]
	if r.cfg.Lower == latent.KL {
		for _, x := range p.at(v, h) {
			loss -= x
		}
		return loss / float64(r.batch)
	}
	pull := slope(func(x []float64) []float64 { return p.at(v, x) }, h, r.batch)
	for i, x := range pull {
		weight := 1.0
		if r.cfg.Objective == MDSM {
			weight = 1 / out["low.sigma"][i/r.cfg.Net.Hidden]
		}
		loss += weight * x * x / 2
	}
	return loss / float64(r.batch)
}
