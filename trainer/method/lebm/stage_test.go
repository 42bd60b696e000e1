package lebm

import (
	"fmt"
	"strings"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/algo/algotest"
	"ebtrain/trainer/model/nn"
)

// reported takes three steps in float64 on some ranks, with the posterior's chain before
// each or within it, and gives the reports and the weights that are left.
func reported(t *testing.T, cfg Config, world int) (all [][]float64, weights map[string][]float64) {
	t.Helper()
	const batch, length = 4, 6
	tokens := []float64{1, 4, 5, 2, 0, 0, 1, 6, 3, 5, 4, 2, 1, 6, 2, 0, 0, 0, 1, 5, 5, 4, 2, 0}
	lengths := []float64{4, 6, 3, 5}
	context := func() *nn.Context {
		c := nn.NewContext(nn.Train, world)
		c.DType = graph.F64
		return c
	}
	n := batch / world
	c := context()
	s := newReading(c, cfg, length, n)
	s.staged = cfg.Text.Staged
	s.build()
	g, err := c.Commit()
	if err != nil {
		t.Fatal(err)
	}
	var before []*graph.Graph
	if cfg.Text.Staged {
		stages, _, err := reader{cfg}.chain(context, length, n)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range stages {
			for range one.Times {
				before = append(before, one.Graph)
			}
		}
	}
	if len(before) != 0 && len(before) != 1+cfg.PosteriorChain.Steps {
		t.Fatalf("%d programs run before a step", len(before))
	}
	sets, reports := make([]map[string][]float64, world), make([][][]float64, world)
	err = ddptest.Each(world, func(rank int, comm collective.Comm) error {
		if world == 1 {
			comm = nil
		}
		vars := ddptest.NewVars()
		if err := nn.Initialise(vars, c.Variables(), testSeed); err != nil {
			return err
		}
		for step := range 3 {
			in := ddptest.Values{
				algo.InputTokens: tokens[rank*n*length : (rank+1)*n*length], algo.InputLengths: lengths[rank*n : (rank+1)*n],
				algo.InputKey: {testSeed, float64(step), float64(rank * n)}, algo.InputStop: {0},
			}
			for _, a := range cfg.optimisers() {
				s := a.Schedule(int64(step), 0)
				in[a.Input()] = []float64{float64(s[0]), float64(s[1])}
			}
			for _, g := range before {
				if _, err := ddptest.Run(g, vars, comm, in); err != nil {
					return err
				}
			}
			out, err := ddptest.Run(g, vars, comm, in)
			if err != nil {
				return err
			}
			reports[rank] = append(reports[rank], out[algo.OutputReport])
		}
		sets[rank] = map[string][]float64{}
		for _, v := range nn.Replicated(c.Variables()) {
			x, err := vars.Get(v.Name)
			if err != nil {
				return err
			}
			sets[rank][v.Name] = ddptest.Numbers(x)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return reports[0], sets[0]
}

// The chain in a program of its own and within the step give equal reports and weights,
// on one rank and on two, with either prior and either kind of chain, and with dropout.
func TestStagedIsUnrolled(t *testing.T) {
	for prior, chain := range map[Prior]Chain{EBM: {Steps: 5, Size: 0.4}, Gaussian: {Steps: 5, Annealed: true, Temperature: 0.5}} {
		cfg := tinyText(t, func(c *Config) { c.Prior, c.PosteriorChain = prior, chain })
		want, weights := reported(t, cfg, 1)
		if fmt.Sprint(want[0]) == fmt.Sprint(want[1]) {
			t.Fatal("steps do not differ")
		}
		for world := 1; world <= 2; world++ {
			for _, staged := range []bool{false, true} {
				cfg.Text.Staged = staged
				got, left := reported(t, cfg, world)
				for i := range want {
					if err := ddptest.Near(got[i], want[i], 1e-11); err != nil {
						t.Errorf("%s, %d ranks, staged %v: report of step %d: %v", prior, world, staged, i, err)
					}
				}
				for name, w := range weights {
					if err := ddptest.Near(left[name], w, 1e-11); err != nil {
						t.Errorf("%s, %d ranks, staged %v: %s: %v", prior, world, staged, name, err)
					}
				}
			}
		}
	}
}

// What latents tell of a sentence is the same, inferred before the graph or within it.
func TestStagedRecollection(t *testing.T) {
	const n, length = 2, 6
	in := ddptest.Values{algo.InputTokens: {1, 4, 5, 2, 0, 0, 1, 6, 3, 5, 4, 2}, algo.InputLengths: {4, 6}, algo.InputKey: {testSeed, 0, 3}}
	cfg := tinyText(t, func(c *Config) { c.PosteriorChain = Chain{Steps: 5, Size: 0.4} })
	recollected := func(staged bool) ddptest.Values {
		cfg.Text.Staged = staged
		m := cfg.Model().(algo.Recollecting)
		vars := ddptest.NewVars()
		_, specs, err := cfg.Model().Step(1, 4)
		if err != nil {
			t.Fatal(err)
		}
		stages, own, err := m.Inferring(length, n)
		if err != nil || (len(own) == 3) != staged || (len(stages) == 2) != staged {
			t.Fatalf("%d stages with %d variables, %v", len(stages), len(own), err)
		}
		if err := nn.Initialise(vars, append(specs, own...), testSeed); err != nil {
			t.Fatal(err)
		}
		g, err := m.Recon(length, n)
		if err != nil {
			t.Fatal(err)
		}
		if posterior := strings.Contains(drawsOf(g), "18.1001"); posterior == staged {
			t.Errorf("staged %v: the graph has the posterior's chain in it: %v", staged, posterior)
		}
		for _, s := range stages {
			for range s.Times {
				if _, err := ddptest.Run(s.Graph, vars, nil, in); err != nil {
					t.Fatal(err)
				}
			}
		}
		out, err := ddptest.Run(g, vars, nil, in)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	got, want := recollected(true), recollected(false)
	for _, name := range []string{algo.OutputLoss, algo.OutputBlind} {
		if err := ddptest.Near(got[name], want[name], 1e-5); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if fmt.Sprint(want[algo.OutputLoss]) == fmt.Sprint(want[algo.OutputBlind]) {
		t.Error("latents change nothing")
	}
}

// A staged step of 200 tokens is as large whatever K₁: what is compiled fits.
func TestSizeOfLongSentences(t *testing.T) {
	const tokens = 202
	nodes := func(steps int) (n int) {
		c := textPreset(t, "lebm-yahoo")
		c.Text.Embed, c.Text.Hidden, c.Text.Lengths, c.PosteriorChain.Steps = 4, 4, []int{tokens}, steps
		m := c.Model()
		g, _, err := algo.StepOf(m, tokens, 1, 2)
		if err != nil {
			t.Fatal(err)
		}
		stages, err := algo.StagesOf(m, tokens, 1, 2)
		if err != nil || len(stages) != 2 || stages[0].Times != 1 || stages[1].Times != steps {
			t.Fatalf("%+v, %v", stages, err)
		}
		return len(g.Nodes()) + len(stages[1].Graph.Nodes())
	}
	few, many := nodes(1), nodes(20)
	t.Logf("%d nodes", many)
	if few != many || many > 60_000 {
		t.Errorf("%d nodes with one transition, %d with twenty", few, many)
	}
	if err := algotest.Given(textPreset(t, "lebm-yahoo"), map[string]string{"staged": "false"}); err != nil {
		t.Error(err)
	}
}
