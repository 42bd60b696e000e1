package lebm

import (
	"math"
	"slices"
	"strings"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// loops are those of a rig's weights.
func (r rig) loops(t *testing.T) loops {
	t.Helper()
	l := loops{r.cfg, map[string][]float64{}}
	for _, name := range r.vars.Names() {
		l.w[name] = r.get(t, name)
	}
	return l
}

// trainedRig has the variables of a trained model, which are float32.
func trainedRig(t *testing.T, cfg Config) rig {
	t.Helper()
	_, specs, err := cfg.Model().Step(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	r := rig{cfg, ddptest.NewVars()}
	if err := nn.Initialise(r.vars, specs, testSeed); err != nil {
		t.Fatal(err)
	}
	return r
}

// Codes are where the chain of plain loops ends that infers a picture's latents, and its
// reconstruction is what the generator makes of them.
func TestUseAgainstLoops(t *testing.T) {
	const n = 2
	for _, prior := range priors() {
		r := trainedRig(t, tiny(func(c *Config) { c.Prior, c.PosteriorChain = prior, Chain{Steps: 3, Size: 0.2} }))
		l, x := r.loops(t), r.pictures(n)
		asked := func(output string, g *graph.Graph, err error) []float64 {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			out, err := ddptest.Run(g, r.vars, nil, ddptest.Values{algo.InputImages: x, algo.InputKey: {testSeed, 0, 0}})
			if err != nil {
				t.Fatal(err)
			}
			return out[output]
		}
		m := model{r.cfg}
		g, err := m.Encode(n)
		codes := asked(algo.OutputCode, g, err)
		g, err = m.Reconstruct(nn.Eval, n)
		recon := asked(algo.OutputRecon, g, err)
		var wantCodes, wantRecon []float64
		for i := range n {
			z := l.chain(r.cfg.PosteriorChain, posteriorPlace, i, l.posterior(x[i*len(x)/n:(i+1)*len(x)/n]))
			wantCodes, wantRecon = append(wantCodes, z...), append(wantRecon, l.picture(z)...)
		}
		if err := ddptest.Near(codes, wantCodes, 1e-4); err != nil {
			t.Errorf("%s: codes: %v", prior, err)
		}
		if err := ddptest.Near(recon, wantRecon, 1e-4); err != nil {
			t.Errorf("%s: reconstructions: %v", prior, err)
		}
	}
}

// Samples are what the generator makes of the latents after K₀ transitions of plain
// loops: each draw is named by how many programs were run before.
func TestSamplesAgainstLoops(t *testing.T) {
	const n, seed = 2, 9
	for _, prior := range priors() {
		r := trainedRig(t, tiny(func(c *Config) { c.Prior = prior }))
		plan, err := model{r.cfg}.Sample(nn.Eval, n)
		if err != nil {
			t.Fatal(err)
		}
		got, err := chain.Run(t.Context(), ref.New(), r.vars, plan, seed)
		if err != nil {
			t.Fatal(err)
		}
		l := r.loops(t)
		var want []float64
		for i := range n {
			name := philox.Name{Seed: seed, Purpose: philox.Chain, Sample: uint32(i)}
			z := l.langevin(r.cfg.prior(), l.prior, name, func(name *philox.Name, i int) { name.Step = uint32(i) })
			want = append(want, l.picture(z)...)
		}
		if err := ddptest.Near(ddptest.Numbers(got), want, 1e-4); err != nil {
			t.Errorf("%s: %v", prior, err)
		}
	}
}

// Weights of pictures' networks begin by Xavier, N(0, 2/(fan in + fan out)), where a
// kernel's fans are its channels times its area; all variables of sentences' energy are
// uniform between ±0.1, biases too.
func TestInitialWeights(t *testing.T) {
	c := nn.NewContext(nn.Train, 1)
	net := Net{Shape: SVHN, Channels: 3, Latent: 30, NGF: 4, NEF: 50}
	z := c.Input("z", graph.T(graph.F32, 1, net.Latent))
	pictures{net, 0.3}.decode(c, z)
	net.energy(c, z)
	moments := func(v nn.Variable) (square, largest float64, n int) {
		x := ddptest.Numbers(v.Value(testSeed))
		for _, w := range x {
			square += w * w / float64(len(x))
			largest = max(largest, math.Abs(w))
		}
		return square, largest, len(x)
	}
	weights := func(c *nn.Context) (all []nn.Variable) {
		return slices.DeleteFunc(slices.Clone(c.Variables()), func(v nn.Variable) bool { return !strings.HasSuffix(v.Name, ".weight") })
	}
	all := weights(c)
	if len(all) != 4+3 {
		t.Fatalf("%d weights: %v", len(all), all)
	}
	for _, v := range all {
		s := v.Type.Shape
		area := s.Len() / (s.At(0) * s.At(1))
		want := 2 / float64((s.At(0)+s.At(1))*area)
		square, _, n := moments(v)
		if !(math.Abs(square/want-1) <= 4*math.Sqrt(2/float64(n))) { // four standard errors
			t.Errorf("%s of %v begins with the variance %v, want %v", v.Name, s, square, want)
		}
	}
	c = nn.NewContext(nn.Train, 1)
	net.Shape = LSTM
	net.energy(c, c.Input("z", graph.T(graph.F32, 1, net.Latent)))
	for _, v := range c.Variables() {
		if square, largest, n := moments(v); largest > 0.1 || !(math.Abs(square/(0.01/3)-1) <= 4*math.Sqrt(0.8/float64(n))) {
			t.Errorf("sentences' %s begins up to ±%v with the variance %v", v.Name, largest, square)
		}
	}
}
