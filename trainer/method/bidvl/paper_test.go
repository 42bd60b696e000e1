package bidvl

import (
	"math"
	"strings"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/nn"
)

// One test for each sentence of ALGORITHMS.md §1.3 and §1.4 that the offset
// version of BiDVL rests on.

// outputs runs s's graph with extra outputs, one step of the tiny network.
func outputs(t *testing.T, r rig, s *step, images []float64, extra map[string]graph.ID) ddptest.Values {
	t.Helper()
	for name, id := range extra {
		s.Output(name, id)
	}
	g, err := s.Commit()
	if err != nil {
		t.Fatal(err)
	}
	vars := ddptest.NewVars()
	if err := nn.Initialise(vars, s.Variables(), testSeed); err != nil {
		t.Fatal(err)
	}
	out, err := ddptest.Run(g, vars, nil, r.inputs(0, 0, images))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// leaves are the learned variables of a network as they are at the start of a
// step.
func leaves(s *step, net string) []graph.ID {
	var ids []graph.ID
	for _, v := range s.Variables() {
		if v.Role == nn.Weight && strings.HasPrefix(v.Name, net+".") {
			ids = append(ids, s.Builder.Var(v.Name, v.Type))
		}
	}
	return ids
}

// Which losses move which networks: the gradient of a term of the loss that is
// formed first in a step, with respect to the step's initial weights.
func TestWhoLearnsFromWhat(t *testing.T) {
	for _, tt := range []struct {
		term      string
		order     Order // of the level that has the term
		e, q, g   bool  // the gradient is not zero
		statement string
	}{
		{"energy_fake", UpperFirst, true, false, false, "v̂ is detached in the upper level"},
		{"energy_data", UpperFirst, true, false, false, "E(v) is E's alone"},
		{"upper", UpperFirst, true, false, false, "the upper level is over E"},
		{"energy_gen", LowerFirst, true, false, true, "E(v̂) reaches G through v̂; E's own gradient is never asked for"},
		{"latent", LowerFirst, false, false, true, "the latent term's gradient reaches G only"},
		{"recon", LowerFirst, false, true, true, "reconstruction trains Q and G"},
		{"kl", LowerFirst, false, true, false, "the prior term trains Q"},
	} {
		t.Run(tt.term, func(t *testing.T) {
			cfg := tinyConfig()
			cfg.Order = tt.order
			checkLearners(t, cfg, tt.term, tt.statement, map[string]bool{"energy": tt.e, "inference": tt.q, "generator": tt.g})
		})
	}
}

// checkLearners checks which networks a term of the report has a gradient for.
func checkLearners(t *testing.T, cfg Config, term, statement string, want map[string]bool) {
	t.Helper()
	r := tinyRig(cfg)
	s := r.step(1, 6)
	extra := map[string]graph.ID{}
	for net := range want {
		var sum graph.ID
		for _, d := range s.Grad(s.means[term], leaves(s, net)...) {
			if sum == 0 {
				sum = s.Sum(s.Abs(d))
			} else {
				sum = s.Add(sum, s.Sum(s.Abs(d)))
			}
		}
		extra[net] = sum
	}
	out := outputs(t, r, s, r.pictures(6), extra)
	for net, want := range want {
		if got := out[net][0]; (got != 0) != want || math.IsNaN(got) {
			t.Errorf("%s: the %s's gradient has size %v", statement, net, got)
		}
	}
}

// Descending the upper loss lowers the energy of data against that of samples.
func TestUpperLevelSeparates(t *testing.T) {
	cfg := tinyConfig()
	cfg.Lower.LR = 0 // the same G throughout
	r := tinyRig(cfg)
	r.sameDraws = true
	images := r.pictures(8)
	for i := range images {
		images[i] = 0.8 + 0.1*images[i] // unlike what G makes
	}
	reports, _, err := r.train(1, 40, images)
	if err != nil {
		t.Fatal(err)
	}
	first, last := reports[5], reports[39] // the spectral vectors have settled
	gap := func(r report) float64 { return named(r, "energy_fake") - named(r, "energy_data") }
	if !(gap(last) > gap(first)+0.01) {
		t.Errorf("⟨E(v̂)⟩ − ⟨E(v)⟩ went from %v to %v, want it higher", gap(first), gap(last))
	}
}

// Descending the lower loss lowers the energy of samples, the latent error,
// and the sum of reconstruction and prior, each where it is the whole loss.
func TestLowerLevelDescends(t *testing.T) {
	for _, tt := range []struct {
		name          string
		vae, latentWt float64
		of            []string
	}{
		{"energy of samples", 0, 1e-9, []string{"energy_gen"}},
		{"latent", 0, 1e3, []string{"latent"}},
		{"reconstruction and prior", 1e3, 1e-9, []string{"recon", "kl"}},
	} {
		cfg := tinyConfig()
		cfg.Upper.LR, cfg.Lower.WeightDecay = 0, 0
		cfg.VAEWeight, cfg.LatentWeight = tt.vae, tt.latentWt
		r := tinyRig(cfg)
		r.sameDraws = true
		reports, _, err := r.train(1, 60, r.pictures(16))
		if err != nil {
			t.Fatal(err)
		}
		value := func(r report) (sum float64) {
			for _, name := range tt.of {
				sum += named(r, name)
			}
			return sum
		}
		first, last := value(reports[5]), value(reports[59]) // the spectral vectors have settled
		if !(last < first) {
			t.Errorf("%s went from %v to %v, want it lower", tt.name, first, last)
		}
	}
}

// In the lower level E is frozen, but in training mode: its weights stay, its
// spectral vectors advance at each of its three passes.
func TestEnergyIsFrozenBelow(t *testing.T) {
	cfg := tinyConfig()
	cfg.Upper.LR = 0
	r := tinyRig(cfg)
	images := r.pictures(6)
	_, before, err := r.train(1, 0, images)
	if err != nil {
		t.Fatal(err)
	}
	_, after, err := r.train(1, 1, images)
	if err != nil {
		t.Fatal(err)
	}
	want := stateOf(t, before[0])
	for range 3 {
		want.iterate()
	}
	for name, w := range want {
		if strings.HasPrefix(name, "energy.") {
			if err := ddptest.Near(numbers(t, after[0], name), w, 1e-13); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// L2 decay pulls Q and G, not E: with all gradients tiny beside it.
func TestWeightDecay(t *testing.T) {
	cfg := tinyConfig()
	cfg.Lower.WeightDecay = 1e6 // so the step is LR·sign(p), to 1e-5
	r := tinyRig(cfg)
	images := r.pictures(6)
	_, before, err := r.train(1, 0, images)
	if err != nil {
		t.Fatal(err)
	}
	_, after, err := r.train(1, 1, images)
	if err != nil {
		t.Fatal(err)
	}
	bare := tinyConfig()
	bare.Lower.WeightDecay = 0
	_, without, err := tinyRig(bare).train(1, 1, images)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.step(1, 6).Variables() {
		if v.Role != nn.Weight {
			continue
		}
		was, now := numbers(t, before[0], v.Name), numbers(t, after[0], v.Name)
		if strings.HasPrefix(v.Name, "energy.") {
			if err := ddptest.Near(now, numbers(t, without[0], v.Name), 0); err != nil {
				t.Errorf("%s feels the decay: %v", v.Name, err)
			}
			continue
		}
		for i := range was {
			if math.Abs(was[i]) < 1e-3 {
				continue // zeros do not decay
			}
			if want := was[i] - cfg.Lower.LR*math.Copysign(1, was[i]); !(math.Abs(now[i]-want) <= 1e-4) {
				t.Errorf("%s[%d] went from %v to %v, want %v", v.Name, i, was[i], now[i], want)
			}
		}
	}
}

// scalar runs a formula on constants.
func scalar(t *testing.T, f func(c *nn.Context) graph.ID) []float64 {
	t.Helper()
	c := nn.NewContext(nn.Train, 1)
	c.DType = graph.F64
	c.Output("y", f(c))
	g, err := c.Commit()
	if err != nil {
		t.Fatal(err)
	}
	out, err := ddptest.Run(g, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out["y"]
}

// full is an (n, d) tensor of one number.
func full(c *nn.Context, n, d int, v float64) graph.ID { return c.Full(graph.T(graph.F64, n, d), v) }

// KL(N(μ, σ²) ‖ N(0, 1)) = ½(μ² + σ² − 1 − log σ²), by its definition
// ∫ q log(q/p); added over dimensions, averaged over the batch.
func TestPriorTermIsTheDivergence(t *testing.T) {
	for _, tt := range []struct{ mean, logVar float64 }{{0, 0}, {1.3, 0}, {-0.4, 1.1}, {2, -3}, {0, 2.5}} {
		got := scalar(t, func(c *nn.Context) graph.ID { return klPrior(c, full(c, 3, 2, tt.mean), full(c, 3, 2, tt.logVar)) })[0]
		sd, integral := math.Exp(tt.logVar/2), 0.0
		const dx = 1e-3
		for x := tt.mean - 12*sd; x < tt.mean+12*sd; x += dx * sd {
			logQ := -0.5*math.Pow((x-tt.mean)/sd, 2) - tt.logVar/2 - 0.5*math.Log(2*math.Pi)
			logP := -0.5*x*x - 0.5*math.Log(2*math.Pi)
			integral += math.Exp(logQ) * (logQ - logP) * dx * sd
		}
		if !(math.Abs(got-2*integral) <= 1e-6) { // two dimensions
			t.Errorf("μ %v, log σ² %v: got %v, want %v", tt.mean, tt.logVar, got, 2*integral)
		}
	}
}

// h = μ + σ⊙ε with the standard deviation σ = √(σ²).
func TestPosteriorSample(t *testing.T) {
	got := scalar(t, func(c *nn.Context) graph.ID {
		return reparameterise(c, full(c, 1, 1, 0.5), full(c, 1, 1, math.Log(9)), full(c, 1, 1, -2))
	})
	if want := 0.5 - 3*2.0; !(math.Abs(got[0]-want) <= 1e-12) {
		t.Errorf("got %v, want %v", got[0], want)
	}
}

// The reconstruction term is −log N(v; G(h), ½I) less its constant: the plain
// squared error, summed over pixels, averaged over the batch.
func TestReconstructionHasVarianceOneHalf(t *testing.T) {
	const n, d, v, g = 3, 5, 0.7, -0.2
	got := scalar(t, func(c *nn.Context) graph.ID { return meanSquare(c, full(c, n, d, v), full(c, n, d, g)) })[0]
	const s2 = 0.5
	logDensity := func(x float64) float64 { return -x*x/(2*s2) - 0.5*math.Log(2*math.Pi*s2) }
	if want := -d * (logDensity(v-g) - logDensity(0)); !(math.Abs(got-want) <= 1e-12) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The reports are sums of their terms: λ_h weighs the latent term, r′ both
// reconstruction and prior.
func TestWeightsOfTheTerms(t *testing.T) {
	for _, tt := range []struct {
		name               string
		latentWeight, want float64
	}{{"default is 1/d_h", DefaultLatentWeight, 1.0 / latent}, {"as for ResNets", 1e-4, 1e-4}} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := tinyConfig()
			cfg.LatentWeight = tt.latentWeight
			reports, _, err := tinyRig(cfg).train(1, 1, tinyRig(cfg).pictures(6))
			if err != nil {
				t.Fatal(err)
			}
			of := func(name string) float64 { return named(reports[0], name) }
			if want := of("energy_data") - of("energy_fake"); !(math.Abs(of("upper")-want) <= 1e-12) {
				t.Errorf("upper is %v, want %v", of("upper"), want)
			}
			want := of("energy_gen") + tt.want*of("latent") + cfg.VAEWeight*(of("recon")+of("kl"))
			if !(math.Abs(of("lower")-want) <= 1e-12) {
				t.Errorf("lower is %v, want %v", of("lower"), want)
			}
		})
	}
}

// With the upper level first the lower sees the stepped E; with the lower
// first the upper sees the stepped G. (TestStepAgainstLoops has every number.)
func TestSecondLevelSeesTheFirst(t *testing.T) {
	for _, tt := range []struct {
		order      Order
		level      func(c *Config) *float64 // the rate of the level that comes first
		moves, not []string                 // entries of the report, second and first level
	}{
		{UpperFirst, func(c *Config) *float64 { return &c.Upper.LR }, []string{"energy_gen"}, []string{"energy_data", "energy_fake"}},
		{LowerFirst, func(c *Config) *float64 { return &c.Lower.LR }, []string{"energy_fake"}, []string{"energy_gen", "latent", "recon"}},
	} {
		cfg := tinyConfig()
		cfg.Order = tt.order
		var reports [2]report
		for i, lr := range []float64{0, 0.5} {
			*tt.level(&cfg) = lr
			all, _, err := tinyRig(cfg).train(1, 1, tinyRig(cfg).pictures(6))
			if err != nil {
				t.Fatal(err)
			}
			reports[i] = all[0]
		}
		for _, name := range tt.moves {
			if named(reports[0], name) == named(reports[1], name) {
				t.Errorf("%s: %s does not see the first level's step", tt.order, name)
			}
		}
		for _, name := range tt.not {
			if named(reports[0], name) != named(reports[1], name) {
				t.Errorf("%s: %s sees a step that is not yet made", tt.order, name)
			}
		}
	}
}

// The settings of the released code [ALGORITHMS.md §1.4, column conv 32].
func TestDefaultsAreTheReleasedCode(t *testing.T) {
	c := CIFAR10().Config
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	for _, tt := range []struct {
		name      string
		got, want any
	}{
		{"learning rate of E", c.Upper.LR, 1e-4},
		{"learning rate of Q and G", c.Lower.LR, 3e-4},
		{"β₁", [2]float64{c.Upper.Beta1, c.Lower.Beta1}, [2]float64{0, 0}},
		{"β₂", [2]float64{c.Upper.Beta2, c.Lower.Beta2}, [2]float64{0.9, 0.9}},
		{"ε", [2]float64{c.Upper.Eps, c.Lower.Eps}, [2]float64{1e-8, 1e-8}},
		{"weight decay", [2]float64{c.Upper.WeightDecay, c.Lower.WeightDecay}, [2]float64{0, 1e-4}},
		{"learning-rate decay", [2]float64{c.Upper.Decay, c.Lower.Decay}, [2]float64{0.998, 0.998}},
		{"r′", c.VAEWeight, 0.05},
		{"λ_h", c.latentWeight(), 0.01},
		{"order", c.Order, UpperFirst},
		{"the lower level's ĥ is fresh", c.FreshLatent, false},
		{"sizes", [4]int{c.Net.Size, c.Net.Channels, c.Net.Width, c.Net.Latent}, [4]int{32, 3, 64, 100}},
	} {
		if tt.got != tt.want {
			t.Errorf("%s is %v, want %v", tt.name, tt.got, tt.want)
		}
	}
}

// Every draw has a name of its own: purposes and numbers of the latents.
func TestDrawsAreNamed(t *testing.T) {
	cfg := tinyConfig()
	cfg.FreshLatent = true
	r := tinyRig(cfg)
	s := r.step(1, 3)
	out := outputs(t, r, s, r.pictures(3), map[string]graph.ID{
		"upper latent": s.latent, "lower latent": s.draw(philox.Latent, 1), "noise": s.draw(philox.Posterior, 0),
	})
	for name, want := range map[string][]float64{
		"upper latent": draws(philox.Latent, 0, 0, 3), "lower latent": draws(philox.Latent, 1, 0, 3), "noise": draws(philox.Posterior, 0, 0, 3),
	} {
		if err := ddptest.Near(out[name], want, 1e-15); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
