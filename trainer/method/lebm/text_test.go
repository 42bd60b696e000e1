package lebm

import (
	"errors"
	"math"
	"reflect"
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
		if p, err := Method().Preset(name); err != nil || p.Batch != 32 || p.Steps != 40_000 {
			t.Errorf("%s: a batch of %d, %d steps, %v", name, p.Batch, p.Steps, err)
		}
		if c.Text.Embed != want[0] || c.Text.Hidden != want[1] || c.Text.Dropout != 0.5 || c.Text.Clip != 5 || c.Net.Latent != 32 || c.Net.NEF != 200 {
			t.Errorf("%s: %+v of %+v", name, c.Text, c.Net)
		}
		if c.PriorChain != (Chain{Steps: 60, Size: 0.4}) || c.PosteriorChain != (Chain{Steps: 20, Size: 0.1}) {
			t.Errorf("%s: %+v", name, c)
		}
		for _, a := range c.optimisers() { // that of E is the pictures'; its moments are not published
			if a.LR != map[string]float64{energyNet: 2e-5, generatorNet: 1e-3}[a.Name] || a.Beta1 != 0.9 || a.Beta2 != 0.999 || a.Eps != 1e-8 || a.Decay != 1 {
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
			if want := (total(up) - total(down)) / (2 * h); !(math.Abs(slope[i]-want) <= 1e-8*(1+math.Abs(want))) {
				t.Errorf("%s: slope %d is %v, by differences %v", prior, i, slope[i], want)
			}
		}
	}
}

// A step's networks write the words of the vocabulary, and it is of the longest sentences.
func TestSizesOfSentences(t *testing.T) {
	cfg := tinyText(t, same)
	g, specs, err := cfg.Model().Step(1, 2)
	if err != nil {
		t.Fatal(err)
	}
	words := len(algotest.Prose().Text.Words)
	for _, v := range specs {
		if name := v.Name; name == "generator.embedding.weight" || name == "generator.out.weight" {
			if got := v.Type.Shape.At(0); got != words {
				t.Errorf("%s is of %d words, want %d", name, got, words)
			}
		}
	}
	for i, n := range g.Nodes() {
		if in, ok := n.Op.(graph.Leaf); ok && in.Name == algo.InputTokens {
			if got, want := in.Type.Shape.At(1), 6; got != want {
				t.Errorf("node %d: sentences of %d tokens, want %d", i, got, want)
			}
			return
		}
	}
	t.Error("a step reads no tokens")
}

// The generator's gradient is cut to --clip, the energy's is not, and the report has the
// lengths of both as they were.
func TestClip(t *testing.T) {
	const clip = 0.01
	stepped := func(clip float64) (moments map[string]float64, report map[string]float64) {
		cfg := tinyText(t, func(c *Config) { c.Text.Clip = clip })
		c := nn.NewContext(nn.Train, 1)
		c.DType = graph.F64
		newReading(c, cfg, 6, 2).build()
		g, err := c.Commit()
		if err != nil {
			t.Fatal(err)
		}
		vars := ddptest.NewVars()
		if err := nn.Initialise(vars, c.Variables(), testSeed); err != nil {
			t.Fatal(err)
		}
		in := ddptest.Values{algo.InputTokens: {1, 4, 5, 2, 0, 0, 1, 6, 3, 5, 4, 2}, algo.InputLengths: {4, 6}, algo.InputKey: {testSeed, 0, 0}, algo.InputStop: {0}}
		for _, a := range cfg.optimisers() {
			in[a.Input()] = []float64{0, 1}
		}
		out, err := ddptest.Run(g, vars, nil, in)
		if err != nil {
			t.Fatal(err)
		}
		moments, report = map[string]float64{}, map[string]float64{}
		for _, net := range []string{generatorNet, energyNet} {
			squares := 0.0
			for _, name := range vars.Names() {
				if strings.HasPrefix(name, "adam."+net+".") && strings.HasSuffix(name, ".m") {
					x, err := vars.Get(name)
					if err != nil {
						t.Fatal(err)
					}
					for _, m := range ddptest.Numbers(x) {
						squares += m * m
					}
				}
			}
			moments[net] = math.Sqrt(squares) / (1 - cfg.Generator.Beta1) // of the first step
		}
		for i, c := range cfg.Model().Report() {
			report[c.Name] = out[algo.OutputReport][i]
		}
		return moments, report
	}
	whole, _ := stepped(1e6)
	cut, report := stepped(clip)
	if whole[generatorNet] < 2*clip || whole[energyNet] < 2*clip {
		t.Fatalf("gradients of lengths %v: there is nothing to cut", whole)
	}
	for net, want := range map[string]float64{generatorNet: clip, energyNet: whole[energyNet]} {
		if !(math.Abs(cut[net]/want-1) <= 1e-6) {
			t.Errorf("%s steps along a gradient of length %v, want %v", net, cut[net], want)
		}
		if got := report[gradientOf(net)]; !(math.Abs(got/whole[net]-1) <= 1e-6) {
			t.Errorf("%s reports a gradient of length %v, want %v", net, got, whole[net])
		}
	}
}

// A gradient whose squares are beyond float32 is cut as any, and its length is a number.
func TestClipOfALongGradient(t *testing.T) {
	cfg := tinyText(t, same)
	c := nn.NewContext(nn.Train, 1)
	s := newReading(c, cfg, 6, 2)
	z := c.Input("z", graph.T(c.DType, 2, cfg.Net.Latent))
	loss := c.Mean(s.learnt.loss(c, s.x, z))
	s.descend(generatorNet, cfg.Generator, c.Mul(loss, c.Full(graph.T(c.DType), 1e25)))
	c.Output("length", s.report[gradientOf(generatorNet)])
	g, err := c.Commit()
	if err != nil {
		t.Fatal(err)
	}
	vars := ddptest.NewVars()
	if err := nn.Initialise(vars, c.Variables(), testSeed); err != nil {
		t.Fatal(err)
	}
	in := ddptest.Values{"z": {1, 0, -1, 2}, algo.InputTokens: {1, 4, 5, 2, 0, 0, 1, 6, 3, 5, 4, 2}, algo.InputLengths: {4, 6}, algo.InputKey: {testSeed, 0, 0}, cfg.Generator.Input(): {0, 1}}
	out, err := ddptest.Run(g, vars, nil, in)
	if err != nil {
		t.Fatal(err)
	}
	if got := out["length"][0]; !(got > 1e20 && got < 1e30) {
		t.Errorf("the gradient's length is %v", got)
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
	if err := c.SetNet("lstm"); err != nil || !reflect.DeepEqual(c.Text, usualText()) || !c.TakesSentences() {
		t.Errorf("sentences' networks: %v, %+v", err, c)
	}
}

// A config of sentences takes those of its data, whose lengths are its own.
func TestFitOfSentences(t *testing.T) {
	prose := algotest.Prose()
	c := published(LSTM)
	c.Text = usualText()
	if err := c.Fit(prose); err != nil {
		t.Fatal(err)
	}
	want := algo.Inputs{Shape: graph.D(1, 1, 6), Words: prose.Text.Words}
	if got := c.Model().Takes(); !reflect.DeepEqual(got, want) {
		t.Errorf("it takes %+v, want %+v", got, want)
	}
	if c.Text.Lengths[0]++; prose.Text.Edges[0] != 4 {
		t.Error("its lengths are the data's")
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
