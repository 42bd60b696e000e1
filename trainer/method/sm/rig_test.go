package sm

import (
	"math"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

const testSeed = 7

// tinyMachine is a GRBM of 6 + 4 units with a rate at which a step is felt.
func tinyMachine(change func(c *Config)) *Config {
	c := frey()
	c.Net.H, c.Net.W, c.Net.Hidden, c.LR = 2, 3, 4, 0.03
	change(c)
	return c
}

// tinyNetwork is an EBM of width 2.
func tinyNetwork(change func(c *Config)) *Config {
	c := mnist()
	c.Net.H, c.Net.W, c.Net.Width, c.Net.Depth, c.LR, c.Sigma0 = 8, 8, 2, 1, 0.01, 1
	change(c)
	return c
}

// cases are all losses.
func cases() map[string]*Config {
	return map[string]*Config{
		"ssm":         tinyMachine(func(c *Config) { c.Objective = SSM }),
		"sliced":      tinyMachine(func(c *Config) { c.Objective, c.Trace = SSM, Sliced }),
		"dsm":         tinyMachine(func(*Config) {}),
		"mdsm":        tinyMachine(func(c *Config) { c.Objective = MDSM }),
		"ebm, mdsm":   tinyNetwork(func(*Config) {}),
		"ebm, dsm":    tinyNetwork(func(c *Config) { c.Objective = DSM }),
		"ebm, sliced": tinyNetwork(func(c *Config) { c.Objective = SSM }),
	}
}

// context64 is a graph of F64 under construction.
func context64(world int) *nn.Context {
	c := nn.NewContext(nn.Train, world)
	c.DType = graph.F64
	return c
}

// samples are n of the config's sizes, in (0, 1).
func samples(c *Config, n int) []float64 {
	x := ddptest.Noise(1, n*c.Net.C*c.Net.H*c.Net.W)
	for i := range x {
		x[i] = 0.5 + 0.45*math.Sin(3*x[i])
	}
	return x
}

// inputs are those of a step.
func inputs(c *Config, step int, x []float64) ddptest.Values {
	rates := c.rates(0, int64(step))
	return ddptest.Values{
		algo.InputImages: x, algo.InputKey: {testSeed, float64(step), 0}, algo.InputStop: {0}, inputRates: rates[:],
	}
}

// train takes steps on one rank with the same samples at each, and returns the
// reports and the variables, in F64.
func train(t *testing.T, c *Config, steps int, x []float64) (reports [][]float64, vars exec.Vars) {
	t.Helper()
	b := context64(1)
	trainee{*c}.build(b, len(x)/(c.Net.C*c.Net.H*c.Net.W))
	g, err := b.Commit()
	if err != nil {
		t.Fatal(err)
	}
	vars = ddptest.NewVars()
	if err := nn.Initialise(vars, b.Variables(), testSeed); err != nil {
		t.Fatal(err)
	}
	for i := range steps {
		out, err := ddptest.Run(g, vars, nil, inputs(c, i, x))
		if err != nil {
			t.Fatal(err)
		}
		reports = append(reports, out[algo.OutputReport])
	}
	return reports, vars
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
