package bism

import (
	"fmt"
	"math"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/latent"
	"ebtrain/trainer/model/nn"
)

const testSeed = 7

// rig builds graphs of a config in float64 and runs them on the reference
// backend.
type rig struct {
	cfg   Config
	model latent.Model
	batch int   // over all ranks
	step  int64 // of the run, which draws and rates are those of
	// images are the global batch; nil is some in (0, 1).
	images []float64
}

func newRig(cfg Config, batch int) rig {
	return rig{cfg: cfg, model: cfg.Net.Model(cfg.Temperature), batch: batch, step: 3}
}

// tinyUnits is a GRBM of 6 + 4 units with rates at which a step is felt.
func tinyUnits(change func(*Config)) Config {
	c := *frey()
	c.Net = latent.Net{Kind: latent.GRBM, C: 1, H: 2, W: 3, Hidden: 4, Width: 1, Depth: 1, PosteriorWidth: 1}
	c.LR, c.InnerLR, c.Temperature = 0.03, 0.05, 0.5
	change(&c)
	return c
}

// tinyNetworks is an EBLVM of width 2.
func tinyNetworks(change func(*Config)) Config {
	c := *mnist()
	c.Net = latent.Net{Kind: latent.EBLVM, C: 1, H: 8, W: 8, Hidden: 3, Width: 2, Depth: 1, PosteriorWidth: 2}
	c.LR, c.InnerLR, c.Sigma0 = 0.01, 0.02, 1
	change(&c)
	return c
}

// context starts a graph.
func context64(world int) *nn.Context {
	c := nn.NewContext(nn.Train, world)
	c.DType = graph.F64
	return c
}

// begin declares a step on one of world ranks.
func (r rig) begin(world int) *step { return newStep(context64(world), r.cfg, r.model, r.batch/world) }

// data is the global batch.
func (r rig) data() []float64 {
	if r.images != nil {
		return r.images
	}
	n := r.cfg.Net
	x := ddptest.Noise(1, r.batch*n.C*n.H*n.W)
	for i := range x {
		x[i] = 0.5 + 0.45*math.Sin(3*x[i])
	}
	return x
}

// vars are the variables of a step as some steps of training may leave them:
// moments are not 0, since the first step of Adam hardly depends on the gradient.
func (r rig) vars(specs []nn.Variable) (exec.Vars, error) {
	vars := ddptest.NewVars()
	for i, v := range specs {
		x := v.Value(testSeed)
		if v.Role == nn.Moment {
			for j, z := range ddptest.Noise(uint32(100+i), x.Type.Shape.Len()) {
				if v.Name[len(v.Name)-1] == 'v' {
					x.SetAt(j, 0.01*(1+z*z))
				} else {
					x.SetAt(j, 0.02*z)
				}
			}
		}
		if err := vars.Set(v.Name, x); err != nil {
			return nil, err
		}
	}
	return vars, nil
}

// inputs are those of a rank.
func (r rig) inputs(rank, world int) ddptest.Values {
	all := r.data()
	n := len(all) / world
	in := ddptest.Values{
		algo.InputImages: all[rank*n : (rank+1)*n],
		algo.InputKey:    {testSeed, float64(r.step), float64(rank * r.batch / world)},
		algo.InputStop:   {0},
	}
	for i := range r.cfg.LowerSteps + r.cfg.Unroll + 1 {
		rates := r.cfg.rates(i, r.step)
		in[inputRates] = append(in[inputRates], rates[:]...)
	}
	return in
}

// run runs a graph that build makes on each of world ranks, whose results are to
// be equal, and returns them. change changes the variables before.
func (r rig) run(world int, build func(s *step), change func(exec.Vars) error) (out ddptest.Values, vars exec.Vars, err error) {
	err = ddptest.Each(world, func(rank int, comm collective.Comm) error {
		s := r.begin(world)
		build(s)
		g, err := s.Commit()
		if err != nil {
			return err
		}
		mine, err := r.vars(s.Variables())
		if err != nil {
			return err
		}
		if change != nil {
			if err := change(mine); err != nil {
				return err
			}
		}
		o, err := ddptest.Run(g, mine, comm, r.inputs(rank, world))
		if rank == 0 {
			out, vars = o, mine
		}
		return err
	})
	return out, vars, err
}

// hyper is the hypergradient on world ranks, by variable.
func (r rig) hyper(t *testing.T, world int, sharing algo.Inner) ddptest.Values {
	t.Helper()
	out, _, err := r.run(world, func(s *step) { s.hypergradient(sharing) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// distance is the length of a − b over that of b, all outputs as one vector.
func distance(a, b ddptest.Values) float64 {
	var diff, all float64
	for name, y := range b {
		for i := range y {
			diff += (a[name][i] - y[i]) * (a[name][i] - y[i])
			all += y[i] * y[i]
		}
	}
	return math.Sqrt(diff / all)
}

// gradients are the outputs that are gradients.
func gradients(out ddptest.Values) ddptest.Values {
	g := ddptest.Values{}
	for name, x := range out {
		if name != algo.OutputUpper {
			g[name] = x
		}
	}
	return g
}

func numbers(t *testing.T, vars exec.Vars, name string) []float64 {
	t.Helper()
	x, err := vars.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	return ddptest.Numbers(x)
}

func near(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	if err := ddptest.Near(got, want, tol); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// label names a case.
func label(c Config) string {
	return fmt.Sprintf("%s %s %s K=%d N=%d", c.Net.Kind, c.Objective, c.Inner, c.LowerSteps, c.Unroll)
}
