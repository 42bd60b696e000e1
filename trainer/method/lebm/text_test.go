package lebm

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/data/safetensors"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/algo/algotest"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// textPreset is a preset, fitted to prose.
func textPreset(t *testing.T, name string) *Config {
	t.Helper()
	p, err := Method().Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	c := p.Config.Clone().(*Config)
	if err := c.Fit(algotest.Prose()); err != nil {
		t.Fatal(err)
	}
	return c
}

// tinyText is a config of few units whose steps differ by rounding where gradients do.
func tinyText(t *testing.T, change func(*Config)) Config {
	t.Helper()
	c := textPreset(t, "lebm-snli")
	c.Text.Embed, c.Text.Hidden, c.Net.Latent, c.Net.NEF = 3, 4, 2, 4
	c.PriorChain.Steps, c.PosteriorChain.Steps = 3, 2
	c.Generator.LR, c.Energy.LR, c.Generator.Eps, c.Energy.Eps = 0.01, 0.02, 1e-3, 1e-3
	change(c)
	return *c
}

// The values of ALGORITHMS.md §4, Text.
func TestTextPresetsAreThePapers(t *testing.T) {
	for name, want := range map[string][2]int{"lebm-snli": {256, 256}, "lebm-ptb": {128, 512}, "lebm-yahoo": {512, 1024}} {
		c := textPreset(t, name)
		if c.Text.Embed != want[0] || c.Text.Hidden != want[1] || c.Text.Dropout != 0.5 || c.Text.Clip != 5 || c.Net.Latent != 32 || c.Net.NEF != 200 {
			t.Errorf("%s: %+v of %+v", name, c.Text, c.Net)
		}
		if c.PriorChain != (Chain{Steps: 60, Size: 0.4}) || c.PosteriorChain != (Chain{Steps: 20, Size: 0.1}) {
			t.Errorf("%s: %+v", name, c)
		}
		for _, a := range c.optimisers() { // that of E is the pictures'; its moments are not published
			if a.LR != map[string]float64{energyNet: 2e-5, generatorNet: 1e-3}[a.Name] || a.Beta1 != 0.9 || a.Beta2 != 0.999 || a.Decay != 1 {
				t.Errorf("%s: %+v", name, a)
			}
		}
	}
}

// The posterior's slope is that of −log p(x|z) + E(z) + ½‖z‖² by central differences,
// which leaves nothing out, whatever dropout the weights learn with.
func TestPosteriorSlopeOfSentences(t *testing.T) {
	const n, length = 2, 6
	in := ddptest.Values{algo.InputTokens: {1, 4, 5, 2, 0, 0, 1, 6, 3, 5, 4, 2}, algo.InputLengths: {4, 6}, algo.InputKey: {1, 0, 0}}
	for _, prior := range priors() {
		cfg := tinyText(t, func(c *Config) { c.Prior = prior })
		c := nn.NewContext(nn.Train, 1)
		c.DType = graph.F64
		s := newReading(c, cfg, length, n)
		z := c.Input("z", graph.T(graph.F64, n, cfg.Net.Latent))
		c.Output("slope", s.posteriorSlope(s.x, z))
		c.Output("nll", s.decoder.loss(c, s.x, z))
		if e := s.energies(z); len(e) > 0 {
			c.Output("energy", e[0])
		}
		g, err := c.Commit()
		if err != nil {
			t.Fatal(err)
		}
		vars := ddptest.NewVars()
		if err := nn.Initialise(vars, c.Variables(), testSeed); err != nil {
			t.Fatal(err)
		}
		delete(in, algo.InputKey)
		at := func(z []float64) ddptest.Values {
			t.Helper()
			in["z"] = z
			out, err := ddptest.Run(g, vars, nil, in)
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		total := func(z []float64) (u float64) {
			out := at(z)
			for _, name := range []string{"nll", "energy"} {
				for _, v := range out[name] {
					u += v
				}
			}
			for _, v := range z {
				u += v * v / 2
			}
			return u
		}
		here := ddptest.Noise(3, n*cfg.Net.Latent)
		slope := at(here)["slope"]
		for i := range here {
			const h = 1e-5
			up, down := slices.Clone(here), slices.Clone(here)
			up[i] += h
			down[i] -= h
			if want := (total(up) - total(down)) / (2 * h); math.Abs(slope[i]-want) > 1e-8*(1+math.Abs(want)) {
				t.Errorf("%s: slope %d is %v, by differences %v", prior, i, slope[i], want)
			}
		}
	}
}

func TestBadTextSettings(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"hidden", "0", "want --hidden of at least 1"},
		{"dropout", "1", "want --dropout of at least 0 and below 1"},
		{"clip", "0", "want --clip above 0"},
		{"posterior-steps", "0", "want --posterior-steps of at least 1"},
	} {
		if err := algotest.Given(textPreset(t, "lebm-snli"), map[string]string{tt.name: tt.text}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("--%s %s: %v, want %q", tt.name, tt.text, err, tt.want)
		}
	}
	if err := textPreset(t, "lebm-snli").Fit(data.Schema{C: 3, H: 32, W: 32, DType: safetensors.U8}); err == nil || !strings.Contains(err.Error(), "give --data of sentences") {
		t.Errorf("pictures: %v", err)
	}
	c := textPreset(t, "lebm-snli")
	if err := c.SetNet("svhn"); err != nil || c.Text != nil || c.TakesSentences() {
		t.Errorf("pictures' networks: %v, %+v", err, c)
	}
	if err := c.SetNet("lstm"); err != nil || c.Text == nil || !c.TakesSentences() {
		t.Errorf("sentences' networks: %v, %+v", err, c)
	}
}

// Samples without the prior begin where the prior's chain does, and write what a fixed
// prior's would; a fixed prior has no others.
func TestSamplesWithoutThePrior(t *testing.T) {
	const n = 6
	write := func(m algo.Model, plan chain.Plan, err error) []float64 {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		_, specs, err := m.Step(1, 1)
		if err != nil {
			t.Fatal(err)
		}
		vars, backend := ddptest.NewVars(), ref.New()
		if err := nn.Initialise(vars, specs, testSeed); err != nil {
			t.Fatal(err)
		}
		x, err := chain.Run(t.Context(), backend, vars, plan, 3)
		if err := errors.Join(err, backend.Close()); err != nil {
			t.Fatal(err)
		}
		return ddptest.Numbers(x)
	}
	cfg := tinyText(t, same)
	learnt := cfg.Model().(primed)
	cfg.Prior = Gaussian
	fixed := cfg.Model()
	if _, ok := fixed.(algo.Primed); ok {
		t.Error("a fixed prior has samples without it")
	}
	plan, err := learnt.SampleNormal(nn.Eval, n)
	without := write(learnt, plan, err)
	plan, err = fixed.(algo.Sampler).Sample(nn.Eval, n)
	if want := write(fixed, plan, err); !slices.Equal(without, want) {
		t.Errorf("%v, of a fixed prior %v", without, want)
	}
	plan, err = learnt.Sample(nn.Eval, n)
	if with := write(learnt, plan, err); slices.Equal(without, with) {
		t.Error("the prior changes nothing")
	}
}
