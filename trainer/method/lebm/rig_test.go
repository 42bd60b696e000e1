package lebm

import (
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

const testSeed = 7

// tiny is a config of the least networks for 32×32 grey pictures, whose steps differ
// by rounding where gradients do: with ε = 1e-8 a weight whose gradient is rounding
// alone takes a whole step.
func tiny(change func(*Config)) Config {
	c := published(SVHN)
	c.Net.Channels, c.Net.Latent, c.Net.NGF, c.Net.NEF = 1, 3, 1, 4
	c.PriorChain.Steps, c.PosteriorChain.Steps = 3, 2
	c.Generator.LR, c.Energy.LR, c.Generator.Eps, c.Energy.Eps = 0.01, 0.02, 1e-3, 1e-3
	change(&c)
	return c
}

func same(*Config) {}

// rig builds graphs of a config in float64 and runs them on the reference backend.
type rig struct {
	cfg  Config
	vars exec.Vars
}

// newRig has the variables of a step at their initial values.
func newRig(t *testing.T, cfg Config) rig {
	t.Helper()
	r := rig{cfg, ddptest.NewVars()}
	c := r.context()
	newStep(c, cfg, 1).build()
	if c.Err() != nil {
		t.Fatal(c.Err())
	}
	if err := nn.Initialise(r.vars, c.Variables(), testSeed); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r rig) context() *nn.Context {
	c := nn.NewContext(nn.Train, 1)
	c.DType = graph.F64
	return c
}

// run runs what build makes of a context, with the inputs of a step besides in.
func (r rig) run(t *testing.T, in ddptest.Values, build func(c *nn.Context)) ddptest.Values {
	t.Helper()
	c := r.context()
	build(c)
	g, err := c.Commit()
	if err != nil {
		t.Fatal(err)
	}
	all := ddptest.Values{algo.InputKey: {testSeed, 0, 0}, algo.InputStop: {0}}
	for _, a := range r.cfg.optimisers() {
		s := a.Schedule(0, 0)
		all[a.Input()] = []float64{float64(s[0]), float64(s[1])}
	}
	for name, x := range in {
		all[name] = x
	}
	out, err := ddptest.Run(g, r.vars, nil, all)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// pictures are n of them.
func (r rig) pictures(n int) []float64 {
	x := ddptest.Noise(1, r.cfg.shape(n).Len())
	for i := range x {
		x[i] = 0.9 * x[i] / (1 + max(x[i], -x[i]))
	}
	return x
}

// get are the numbers of a variable.
func (r rig) get(t *testing.T, name string) []float64 {
	t.Helper()
	x, err := r.vars.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	return ddptest.Numbers(x)
}

// set gives a variable other numbers.
func (r rig) set(t *testing.T, name string, x []float64) {
	t.Helper()
	typ, ok := r.vars.Type(name)
	if !ok {
		t.Fatalf("there is no variable %s", name)
	}
	if err := r.vars.Set(name, ddptest.Tensor(typ, x)); err != nil {
		t.Fatal(err)
	}
}

// flat makes E = 0: its last layer is 0.
func (r rig) flat(t *testing.T) {
	t.Helper()
	for _, name := range []string{"energy.linear3.weight", "energy.linear3.bias"} {
		r.set(t, name, make([]float64, len(r.get(t, name))))
	}
}
