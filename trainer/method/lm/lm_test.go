package lm

import (
	"math"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/data/safetensors"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/algo/algotest"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/model/optim"
)

func preset(t *testing.T, name string) *Config {
	t.Helper()
	p, err := Method().Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	return p.Config.Clone().(*Config)
}

// tiny is a config of few units whose steps differ by rounding where gradients do.
func tiny(t *testing.T) *Config {
	t.Helper()
	c := preset(t, "lm-snli")
	c.Embed, c.Hidden, c.Adam.LR, c.Adam.Eps = 3, 4, 0.02, 1e-3
	if err := c.Fit(algotest.Prose()); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestConforms(t *testing.T) {
	published := map[string]data.Schema{}
	for _, p := range presets() {
		published[p.Name] = algotest.Prose()
	}
	clipped := tiny(t)
	clipped.Clip = 0.01
	algotest.Run(t, Method(), published, algotest.Case{Name: "lm", Config: tiny(t)}, algotest.Case{Name: "clipped", Config: clipped})
}

func TestBadSettings(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"hidden", "0", "want --hidden of at least 1"},
		{"dropout", "1", "want --dropout of at least 0 and below 1"},
		{"clip", "0", "want --clip above 0"},
		{"lr", "-1", "want --lr above 0"},
	} {
		if err := algotest.Given(preset(t, "lm-snli"), map[string]string{tt.name: tt.text}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("--%s %s: %v, want %q", tt.name, tt.text, err, tt.want)
		}
	}
	if err := preset(t, "lm-snli").Fit(data.Schema{C: 3, H: 32, W: 32, DType: safetensors.U8}); err == nil || !strings.Contains(err.Error(), "give --data of sentences") {
		t.Errorf("pictures: %v", err)
	}
	for _, lengths := range [][]int{{}, {8, 4}, {data.MinTokens - 1, 8}} {
		c := tiny(t)
		c.Lengths = lengths
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "lengths of batches that rise") {
			t.Errorf("batches of %d tokens: %v", lengths, err)
		}
	}
	c := tiny(t)
	c.Lengths = []int{data.MinTokens}
	if err := c.Validate(); err != nil {
		t.Errorf("batches of the shortest sentences: %v", err)
	}
	c.Words = "a b c"
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "vocabulary") {
		t.Errorf("words without the reserved ones: %v", err)
	}
}

// A network whose logits are all alike gives each word 1/V: the NLL of a sentence is
// log V for each of its words and its end, and the perplexity V.
func TestUniformModel(t *testing.T) {
	c := tiny(t)
	m := c.Model().(model)
	for _, length := range c.Lengths {
		g, specs, err := m.StepOf(length, 1, 2)
		if err != nil {
			t.Fatal(err)
		}
		vars := ddptest.NewVars()
		for i := range specs {
			specs[i].Init = nil
		}
		if err := nn.Initialise(vars, specs, 1); err != nil {
			t.Fatal(err)
		}
		tokens := make([]float64, 2*length)
		copy(tokens, []float64{1, 4, 2})
		copy(tokens[length:], []float64{1, 4, 5, 2})
		s := c.Adam.Schedule(0, 0)
		out, err := ddptest.Run(g, vars, nil, ddptest.Values{algo.InputTokens: tokens, algo.InputLengths: {3, 4}, algo.InputKey: {1, 0, 0},
			algo.InputStop: {0}, c.Adam.Input(): {float64(s[0]), float64(s[1])}})
		if err != nil {
			t.Fatal(err)
		}
		const v = 7
		want := []float64{2.5 * math.Log(v), 2.5, 0, v}
		if err := ddptest.Near(out[algo.OutputReport][:4], want, 1e-5); err != nil {
			t.Errorf("%d tokens: %v: %v", length, m.Report(), err)
		}
	}
}

// Samples have the probabilities of the model: with the logits of the first word set
// by hand, words come as often as their softmax says; every sentence is whole.
func TestSamplesFollowTheModel(t *testing.T) {
	c := tiny(t)
	m := c.Model().(model)
	const n = 4000
	plan, err := m.Sample(nn.Eval, n)
	if err != nil {
		t.Fatal(err)
	}
	_, specs, err := m.Step(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	vars := ddptest.NewVars()
	for i := range specs {
		specs[i].Init = nil
	}
	if err := nn.Initialise(vars, append(specs, plan.Vars...), 1); err != nil {
		t.Fatal(err)
	}
	p := []float64{0, 0, 0.1, 0.2, 0.3, 0.25, 0.15} // padding and begin are never drawn
	logits := make([]float64, len(p))
	for i, x := range p {
		logits[i] = math.Log(max(x, 0.5))
		if x > 0 {
			logits[i] = math.Log(x)
		}
	}
	if err := vars.Set("lm.out.bias", ddptest.Tensor(graph.T(graph.F32, len(p)), logits)); err != nil {
		t.Fatal(err)
	}
	for i := range plan.Stages[0].Times {
		if _, err := ddptest.Run(plan.Stages[0].Graph, vars, nil, ddptest.Values{"key": {3, float64(i), 0}}); err != nil {
			t.Fatal(err)
		}
	}
	x, err := vars.Get(plan.Out)
	if err != nil {
		t.Fatal(err)
	}
	text := ddptest.Numbers(x)
	counts := make([]float64, len(p))
	w := c.longest()
	for i := range n {
		row := text[i*w : (i+1)*w]
		counts[int(row[1])]++
		end := 0
		for j, v := range row {
			switch {
			case j == 0 && v != data.Begin, j > 0 && v == data.Begin, end > 0 && v != data.Padding, end == 0 && j > 0 && v == data.Padding:
				t.Fatalf("sentence %d is %v", i, row)
			case v == data.End:
				end = j
			}
		}
		if end == 0 {
			t.Fatalf("sentence %d has no end: %v", i, row)
		}
	}
	for v, want := range p {
		if got := counts[v] / n; !(math.Abs(got-want) <= 0.03) {
			t.Errorf("word %d is first in %v of the sentences, want %v", v, got, want)
		}
	}
}

// The values of ALGORITHMS.md §4, Text, which the networks of sentences share.
func TestPresets(t *testing.T) {
	sizes := map[string][2]int{"lm-snli": {256, 256}, "lm-ptb": {128, 512}, "lm-yahoo": {512, 1024}}
	adam := optim.Adam{Name: "lm", LR: 1e-3, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Decay: 1}
	for _, p := range Method().Presets {
		c := p.Config.(*Config)
		if [2]int{c.Embed, c.Hidden} != sizes[p.Name] || c.Dropout != 0.5 || c.Clip != 5 || c.Adam != adam || p.Batch != 32 || p.Steps != 40_000 {
			t.Errorf("%s: %+v, batch %d, %d steps", p.Name, c, p.Batch, p.Steps)
		}
	}
	if len(Method().Presets) != len(sizes) {
		t.Errorf("%d presets", len(Method().Presets))
	}
}
