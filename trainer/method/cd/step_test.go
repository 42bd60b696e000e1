package cd

import (
	"math"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/grbm"
	"ebtrain/trainer/model/grbm/grbmtest"
	"ebtrain/trainer/model/nn"
)

// small is a machine of pictures of 1×2×2 with 3 hidden units.
func small(persistent bool, sweeps int) Config {
	return Config{Machine: grbm.Spec{C: 1, H: 2, W: 2, Hidden: 3}, Persistent: persistent, Sweeps: sweeps, Adam: adam(1e-2)}
}

const batch = 8

func rig(cfg Config) grbmtest.Rig {
	m := Model{cfg.Machine.Machine(), cfg}
	return grbmtest.Rig{Backend: ref.New(), DType: graph.F64, Batch: batch, Build: m.build, Feeder: m.Feeder,
		Data: func(step int) []float64 { return ddptest.Noise(uint32(step+1), batch*m.Visible) }}
}

// kinds are those of contrastive divergence.
var kinds = map[string]Config{"CD-1": small(false, 1), "CD-3": small(false, 3), "PCD-1": small(true, 1), "PCD-2": small(true, 2)}

// Some thousand steps learn more of the checkerboard than its variances.
func TestLearnsTheBoard(t *testing.T) {
	for name, persistent := range map[string]bool{"CD-1": false, "PCD-1": true} {
		t.Run(name, func(t *testing.T) {
			cfg := *board(persistent)
			cfg.Machine.W = 2
			r := rig(cfg)
			r.Batch = 100
			r.LearnsTheBoard(t, Model{cfg.Machine.Machine(), cfg}, 4000)
		})
	}
}

// loops is a machine's parameters and chains in plain Go.
type loops struct {
	visible, hidden int
	s, w, b, c      []float64
	chains          [][]float64
}

func newLoops(v ddptest.Values, visible, hidden int) loops {
	return loops{visible: visible, hidden: hidden, s: v["model.s"], w: v["model.w"], b: v["model.b"], c: v["model.c"]}
}

// on is p(h = 1|v).
func (l loops) on(v []float64) []float64 {
	p := make([]float64, l.hidden)
	for j := range p {
		x := l.c[j]
		for i := range v {
			x += v[i] * l.w[i*l.hidden+j]
		}
		p[j] = 1 / (1 + math.Exp(-x))
	}
	return p
}

// draws are those of a half-step of a chain.
func draws(step, slot, half, n int, fill func(philox.Name, []float64)) []float64 {
	x := make([]float64, n)
	fill(philox.Name{Seed: grbmtest.Seed, Purpose: philox.Negative, Sub: uint16(half), Step: uint32(step), Sample: uint32(slot)}, x)
	return x
}

// up is h ~ p(h|v), down is v ~ p(v|h).
func (l loops) up(v []float64, step, slot, half int) []float64 {
	u := draws(step, slot, half, l.hidden, philox.Name.Uniform)
	h := make([]float64, l.hidden)
	for j, p := range l.on(v) {
		if u[j] < p {
			h[j] = 1
		}
	}
	return h
}

func (l loops) down(h []float64, step, slot, half int) []float64 {
	v := draws(step, slot, half, l.visible, philox.Name.Normal)
	for i := range v {
		sigma := math.Exp(l.s[i])
		mean := l.b[i]
		for j := range h {
			mean += sigma * sigma * l.w[i*l.hidden+j] * h[j]
		}
		v[i] = mean + sigma*v[i]
	}
	return v
}

// negative is v⁻ of the chain in a slot, which moves.
func (l loops) negative(cfg Config, v []float64, step, slot int) []float64 {
	k := cfg.Sweeps
	if !cfg.Persistent {
		for i := range k {
			v = l.down(l.up(v, step, slot, 2*i), step, slot, 2*i+1)
		}
		return v
	}
	h := l.chains[slot]
	if step == 0 {
		h = l.up(v, step, slot, 2*k)
	}
	for i := range k {
		v = l.down(h, step, slot, 2*i)
		h = l.up(v, step, slot, 2*i+1)
	}
	l.chains[slot] = h
	return v
}

// statistics adds ∂F/∂θ at v to sums, times by.
func (l loops) statistics(sums ddptest.Values, v []float64, by float64) {
	for i := range v {
		d := (v[i] - l.b[i]) / math.Exp(2*l.s[i])
		sums["s"][i] -= by * d * (v[i] - l.b[i])
		sums["b"][i] -= by * d
	}
	for j, p := range l.on(v) {
		sums["c"][j] -= by * p
		for i := range v {
			sums["w"][i*l.hidden+j] -= by * p * v[i]
		}
	}
}

// The gradient of each of three steps is the difference of the statistics of the
// data and of the chains, which are loops in plain Go with the same draws. The
// gradient is read from Adam's first moment, m ← β₁m + (1−β₁)g.
func TestGradientIsTheDifferenceOfStatistics(t *testing.T) {
	for name, cfg := range kinds {
		t.Run(name, func(t *testing.T) {
			r := rig(cfg)
			sets, err := r.Start(1)
			if err != nil {
				t.Fatal(err)
			}
			chains := make([][]float64, batch)
			for step := range 3 {
				before := grbmtest.Variables(t, sets[0])
				reports, err := r.Run(t.Context(), sets, step, step+1)
				if err != nil {
					t.Fatal(err)
				}
				after := grbmtest.Variables(t, sets[0])
				l := newLoops(before, 4, 3)
				l.chains = chains
				want := ddptest.Values{"s": make([]float64, 4), "w": make([]float64, 12), "b": make([]float64, 4), "c": make([]float64, 3)}
				data := r.Data(step)
				for slot := range batch {
					v := data[4*slot : 4*slot+4]
					l.statistics(want, v, 1.0/batch)
					l.statistics(want, l.negative(cfg, v, step, slot), -1.0/batch)
				}
				var norm float64
				for name, w := range want {
					moment := "adam.model.model." + name + ".m"
					got := make([]float64, len(w))
					for i := range got {
						got[i] = (after[moment][i] - 0.9*before[moment][i]) / 0.1
						norm += w[i] * w[i]
					}
					if err := ddptest.Near(got, w, 1e-12); err != nil {
						t.Errorf("step %d, %s: %v", step, name, err)
					}
				}
				if got := reports[0][4]; !(math.Abs(got-math.Sqrt(norm)) <= 1e-12) {
					t.Errorf("step %d: the gradient's norm is %v, want %v", step, got, math.Sqrt(norm))
				}
				if cfg.Persistent {
					for slot, h := range chains {
						if err := ddptest.Near(after["persistent.h"][3*slot:3*slot+3], h, 0); err != nil {
							t.Errorf("step %d, chain %d: %v", step, slot, err)
						}
					}
				}
			}
		})
	}
}

// The loss is the difference of its terms, and the rest of the report what it is
// called.
func TestReport(t *testing.T) {
	cfg := small(false, 1)
	m := Model{cfg.Machine.Machine(), cfg}
	reports, _ := rig(cfg).First(t, 2, 2)
	for _, report := range reports {
		if !(math.Abs(report[0]-(report[1]-report[2])) <= 1e-14) {
			t.Errorf("the loss is %v, its terms %v and %v", report[0], report[1], report[2])
		}
	}
	g, vars, err := m.Step(2, 4)
	if err != nil || len(g.Assigns()) != len(vars) || len(vars) != 3*4 {
		t.Errorf("%d variables, %d assigned: %v; want 12", len(vars), len(g.Assigns()), err)
	}
	for _, v := range vars {
		if v.Type.DType != graph.F32 || v.Role == nn.Scratch {
			t.Errorf("%s is %v, role %v", v.Name, v.Type, v.Role)
		}
	}
}
