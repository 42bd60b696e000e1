package sm

import (
	"reflect"
	"testing"

	"ebtrain/data/loader"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// trained are the variables of a model, in F32.
func trained(t *testing.T, m algo.Model) exec.Vars {
	t.Helper()
	_, specs, err := m.Step(1, 2)
	if err != nil {
		t.Fatal(err)
	}
	vars := ref.New().NewVars()
	if err := nn.Initialise(vars, specs, testSeed); err != nil {
		t.Fatal(err)
	}
	return vars
}

// Both models read pixels in [0, 1].
func TestTakes(t *testing.T) {
	for _, c := range []*Config{tinyMachine(func(*Config) {}), tinyNetwork(func(*Config) {})} {
		want := algo.Inputs{Shape: graph.D(c.Net.C, c.Net.H, c.Net.W), Range: loader.Unit}
		if got := c.Model().Takes(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s takes %+v, want %+v", c.Net.Kind, got, want)
		}
	}
}

// An EBM's score is minus the slope of its energies, and a picture's energy does
// not depend on the others.
func TestEnergiesAndScore(t *testing.T) {
	const n, h = 2, 1e-2
	c := tinyNetwork(func(*Config) {})
	m := c.Model()
	vars := trained(t, m)
	energies, err := m.(algo.Energetic).Energies(nn.Eval, n)
	if err != nil {
		t.Fatal(err)
	}
	scores, err := m.(algo.Scored).Score(n)
	if err != nil {
		t.Fatal(err)
	}
	x, direction := samples(c, n), ddptest.Noise(3, n*64)
	at := func(step float64) ddptest.Values {
		moved := append([]float64(nil), x...)
		for i := range moved {
			moved[i] += step * direction[i]
		}
		out, err := ddptest.Run(energies, vars, nil, ddptest.Values{algo.InputImages: moved})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	out, err := ddptest.Run(scores, vars, nil, ddptest.Values{algo.InputImages: x})
	if err != nil {
		t.Fatal(err)
	}
	up, down := at(h), at(-h)
	for i := range n {
		got := 0.0
		for j := range 64 {
			got -= out[algo.OutputScore][i*64+j] * direction[i*64+j]
		}
		want := (up[algo.OutputEnergy][i] - down[algo.OutputEnergy][i]) / (2 * h)
		near(t, "slope", []float64{got}, []float64{want}, 1e-2) // differences of F32
	}
	near(t, "logit", up[algo.OutputLogit], up[algo.OutputEnergy], 0)
}

// An EBM is sampled with the share of steps that its config says.
func TestSample(t *testing.T) {
	const n = 2
	c := tinyNetwork(func(c *Config) { c.SampleShare = 0.004 })
	m := c.Model()
	plan, err := m.(algo.Sampler).Sample(nn.Eval, n)
	if err != nil {
		t.Fatal(err)
	}
	if got := plan.Stages[1].Times; got != 2+8+1 {
		t.Errorf("%d steps, want 0.004 of 500, 2,000 and 200, rounded up", got)
	}
	out, err := chain.Run(t.Context(), ref.New(), trained(t, m), plan, testSeed)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range ddptest.Numbers(out) {
		if !(x >= 0 && x <= 1) {
			t.Fatalf("pixel %d is %v", i, x)
		}
	}
}

// The sampler's last step takes away the noise of what the score is matched to:
// x + σ²·score, which is E[v|x] where x = v + σε and the score is that of x.
func TestSamplesAreDenoised(t *testing.T) {
	const n = 2
	for objective, sigma := range map[Objective]float64{SSM: 0, DSM: 0.6, MDSM: 0.9} {
		c := tinyNetwork(func(c *Config) { c.Objective, c.Sigma, c.Sigma0 = objective, 0.6, 0.9 })
		m := c.Model()
		vars, x := trained(t, m), samples(c, n)
		g, err := m.(algo.Scored).Score(n)
		if err != nil {
			t.Fatal(err)
		}
		out, err := ddptest.Run(g, vars, nil, ddptest.Values{algo.InputImages: x})
		if err != nil {
			t.Fatal(err)
		}
		want := append([]float64(nil), x...)
		for i, s := range out[algo.OutputScore] {
			want[i] = min(1, max(0, x[i]+sigma*sigma*s))
		}
		plan, err := m.(algo.Sampler).Sample(nn.Eval, n)
		if err != nil {
			t.Fatal(err)
		}
		pictures := exec.NewTensor(plan.Vars[0].Type)
		for i, v := range x {
			pictures.SetAt(i, v)
		}
		if err := vars.Set(plan.Out, pictures); err != nil {
			t.Fatal(err)
		}
		if _, err := ddptest.Run(plan.Stages[2].Graph, vars, nil, nil); err != nil {
			t.Fatal(err)
		}
		near(t, string(objective), numbers(t, vars, plan.Out), want, 1e-5)
	}
}

// A GRBM of this method is a machine: its Fisher loss is the loss of exact score
// matching, and its log Z the enumerated one.
func TestMachine(t *testing.T) {
	const n = 4
	c := tinyMachine(func(c *Config) { c.Objective = SSM })
	m := c.Model()
	if got, want := m.Takes().Shape, graph.D(1, 2, 3); got != want {
		t.Fatalf("takes %v, want %v", got, want)
	}
	vars := trained(t, m)
	x := samples(c, n)
	g, err := m.(algo.FisherScored).FisherLoss(n)
	if err != nil {
		t.Fatal(err)
	}
	out, err := ddptest.Run(g, vars, nil, ddptest.Values{algo.InputImages: x})
	if err != nil {
		t.Fatal(err)
	}
	mean := 0.0
	for _, f := range out[algo.OutputFisher] {
		mean += f / n
	}
	step, _, err := m.Step(1, n)
	if err != nil {
		t.Fatal(err)
	}
	machine := rbm{numbers(t, vars, names[0]), numbers(t, vars, names[1]), numbers(t, vars, names[2]), numbers(t, vars, names[3])}
	log := machine.logLikelihood(x)
	report, err := ddptest.Run(step, vars, nil, inputs(c, 0, x))
	if err != nil {
		t.Fatal(err)
	}
	near(t, "Fisher loss", []float64{mean}, report[algo.OutputReport][:1], 1e-5)

	energies, err := m.(algo.Energetic).Energies(nn.Eval, n)
	if err != nil {
		t.Fatal(err)
	}
	vars = trained(t, m)
	if out, err = ddptest.Run(energies, vars, nil, ddptest.Values{algo.InputImages: x}); err != nil {
		t.Fatal(err)
	}
	z, err := m.(algo.Normalised).LogZ(algo.LogZOptions{Exact: true})
	if err != nil {
		t.Fatal(err)
	}
	logZ, err := chain.Run(t.Context(), ref.New(), vars, z.Plan, testSeed)
	if err != nil {
		t.Fatal(err)
	}
	got := -logZ.At(0)
	for _, e := range out[algo.OutputEnergy] {
		got -= e / n
	}
	near(t, "log-likelihood", []float64{got}, []float64{log}, 1e-5)
}
