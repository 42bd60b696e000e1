package bidvl

import (
	"math"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/nn"
)

// One test for each sentence of ALGORITHMS.md §1.3 that a variant of BiDVL
// rests on. TestStepAgainstLoops has every number.

// Which losses of the variants move which networks.
func TestWhoLearnsFromTheVariants(t *testing.T) {
	undecoupled := func(c *Config) { c.Undecoupled = true }
	notOffset := func(c *Config) { c.LatentTerm = NotOffset }
	sigmoid := func(c *Config) { c.Ratio = SigmoidRatio }
	for _, tt := range []struct {
		name, term string
		order      Order // of the level that has the term
		change     func(c *Config)
		e, q, g    bool
		statement  string
	}{
		{"not offset, latent", "latent", LowerFirst, notOffset, false, true, true, "the sample h̃ carries the gradient to Q and G"},
		{"not offset, prior", "prior_fake", UpperFirst, notOffset, false, true, false, "v̂ is detached where the upper level trains Q"},
		{"hinge", "upper", UpperFirst, func(c *Config) { c.UpperLoss = Hinge }, true, false, false, "the hinge loss is over E"},
		{"sigmoid ratio", "ratio", LowerFirst, sigmoid, false, false, false, "E has no gradient in the ratio"},
		{"sigmoid ratio, VAE", "vae", LowerFirst, sigmoid, false, true, true, "the weighed terms train Q and G alone"},
		{"undecoupled, data", "energy_data", UpperFirst, undecoupled, true, false, false, "h is detached in the upper level"},
		{"undecoupled, fake", "energy_fake", UpperFirst, undecoupled, true, false, false, "v̂ is detached in the upper level"},
		{"undecoupled, samples", "energy_gen", LowerFirst, undecoupled, true, false, true, "E(v̂, ĥ) reaches G"},
		{"undecoupled, posterior", "energy_post", LowerFirst, undecoupled, true, true, false, "E(v, h) reaches Q through h"},
		{"undecoupled, entropy", "entropy", LowerFirst, undecoupled, false, true, false, "½Σ log σ² is Q's alone"},
		{"undecoupled, latent", "latent", LowerFirst, undecoupled, false, true, true, "the latent term's gradient reaches Q too"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := tinyConfig()
			cfg.Order = tt.order
			tt.change(&cfg)
			checkLearners(t, cfg, tt.term, tt.statement, map[string]bool{"energy": tt.e, "inference": tt.q, "generator": tt.g})
		})
	}
}

// ⟨relu(1 + E(v))⟩ + ⟨relu(1 − E(v̂))⟩ and its derivatives: it pushes energies of
// data down to −1 and those of samples up to +1, and no further.
func TestHinge(t *testing.T) {
	for _, tt := range []struct{ data, fake, want, dData, dFake float64 }{
		{0, 0, 2, 1, -1},
		{3, -3, 8, 1, -1},
		{-2, 2, 0, 0, 0},
		{-0.5, 2, 0.5, 1, 0},
		{-2, 0.5, 0.5, 0, -1},
	} {
		got := scalar(t, func(c *nn.Context) graph.ID {
			data, fake := c.Input("data", graph.T(graph.F64, 1, 1)), c.Input("fake", graph.T(graph.F64, 1, 1))
			loss := separation(c, Hinge, c.Add(data, full(c, 1, 1, tt.data)), c.Add(fake, full(c, 1, 1, tt.fake)))
			d := c.Grad(loss, data, fake)
			return c.Concat(0, c.Reshape(loss, graph.D(1)), c.Reshape(d[0], graph.D(1)), c.Reshape(d[1], graph.D(1)))
		})
		for i, want := range []float64{tt.want, tt.dData, tt.dFake} {
			if got[i] != want {
				t.Errorf("energies %v and %v: got loss and derivatives %v, want %v", tt.data, tt.fake, got, []float64{tt.want, tt.dData, tt.dFake})
			}
		}
	}
}

// The mean energy in the ratio is that of the global batch, and its weights are
// those of the formulas: high energies weigh less.
func TestRatio(t *testing.T) {
	energies := []float64{0.3, 1.7, -0.4, 0.9, 0.35, 0.5, 0.6, 0.45}
	for _, tt := range []struct {
		kind Ratio
		f    func(gap float64) float64
	}{
		{SigmoidRatio, func(gap float64) float64 { return 1 / (1 + math.Exp(-gap)) }},
		{ClampRatio, func(gap float64) float64 { return math.Min(math.Max(math.Exp(gap), 0.8), 1.2) }},
	} {
		var want []float64
		for _, e := range energies {
			want = append(want, tt.f(mean(energies)-e))
		}
		for _, world := range []int{1, 2, 4} {
			n := len(energies) / world
			err := ddptest.Each(world, func(rank int, comm collective.Comm) error {
				c := nn.NewContext(nn.Train, world)
				c.DType = graph.F64
				c.Output("w", ratio(c, tt.kind, c.Input("e", graph.T(graph.F64, n, 1))))
				g, err := c.Commit()
				if err != nil {
					return err
				}
				out, err := ddptest.Run(g, nil, comm, ddptest.Values{"e": energies[rank*n : (rank+1)*n]})
				if err != nil {
					return err
				}
				return ddptest.Near(out["w"], want[rank*n:(rank+1)*n], 1e-14)
			})
			if err != nil {
				t.Errorf("%s, %d ranks: %v", tt.kind, world, err)
			}
		}
	}
}

// The entropy of N(μ, diag σ²) is ½Σ log σ² and a constant.
func TestEntropy(t *testing.T) {
	got := scalar(t, func(c *nn.Context) graph.ID { return entropy(c, full(c, 3, 2, math.Log(9))) })[0]
	if want := 2 * math.Log(3); !(math.Abs(got-want) <= 1e-12) { // two dimensions of σ = 3
		t.Errorf("got %v, want %v", got, want)
	}
}

// Where Q and G share an optimiser, Q's step in the upper level moves G by
// weight decay alone; with three optimisers, or with the formal version, the
// upper level leaves Q and G as they are.
func TestUpperStepOfQ(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(c *Config)
		q, g   bool // moved
	}{
		{"not offset", func(c *Config) { c.LatentTerm = NotOffset }, true, true},
		{"not offset, no decay", func(c *Config) { c.LatentTerm, c.Lower.WeightDecay = NotOffset, 0 }, true, false},
		{"not offset, three optimisers", func(c *Config) {
			g := c.Lower
			g.Name = "generator"
			c.LatentTerm, c.Generator = NotOffset, &g
		}, true, false},
		{"offset", func(c *Config) {}, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := tinyConfig()
			cfg.Order = LowerFirst
			tt.change(&cfg)
			r := tinyRig(cfg)
			c := nn.NewContext(nn.Train, 1)
			c.DType = graph.F64
			s := newStep(c, cfg, r.net, 6)
			s.upper() // alone
			extra := map[string]graph.ID{}
			for _, net := range []string{"inference", "generator"} {
				sum := s.Zeros(graph.T(graph.F64))
				for _, p := range s.Params(net) {
					sum = s.Add(sum, s.Sum(s.Abs(s.Sub(p.ID, s.Builder.Var(p.Name, s.Type(p.ID))))))
				}
				extra[net] = sum
			}
			out := outputs(t, r, s, r.pictures(6), extra)
			for net, want := range map[string]bool{"inference": tt.q, "generator": tt.g} {
				if got := out[net][0]; (got != 0) != want {
					t.Errorf("the %s moved by %v", net, got)
				}
			}
		})
	}
}

// Descending the hinge loss turns energies round that start on the wrong sides.
func TestHingeSeparates(t *testing.T) {
	cfg := tinyConfig()
	cfg.UpperLoss, cfg.Lower.LR = Hinge, 0
	r := tinyRig(cfg)
	r.sameDraws = true
	images := r.pictures(12)
	for i := range images {
		images[i] = -0.5 + 0.4*images[i] // which start with the higher energies
	}
	reports, _, err := r.train(1, 60, images)
	if err != nil {
		t.Fatal(err)
	}
	first, last := reports[0], reports[59]
	if !(named(last, "upper") < named(first, "upper")/2) {
		t.Errorf("the loss went from %v to %v, want it less than half", named(first, "upper"), named(last, "upper"))
	}
	if was := named(first, "energy_data") - named(first, "energy_fake"); was < 0 {
		t.Errorf("data started %v above samples, want them on the wrong sides", was)
	}
	if data, fake := named(last, "energy_data"), named(last, "energy_fake"); !(data < 0 && fake > 0) {
		t.Errorf("energies of data %v and of samples %v, want them below and above 0", data, fake)
	}
}

// Not offset, the upper level's step of Q brings the samples' posterior nearer
// to the prior.
func TestUpperStepNearsThePrior(t *testing.T) {
	cfg := tinyConfig()
	cfg.LatentTerm, cfg.LatentWeight, cfg.Lower.WeightDecay = NotOffset, 1, 0
	r := tinyRig(cfg)
	c := nn.NewContext(nn.Train, 1)
	c.DType = graph.F64
	s := newStep(c, cfg, r.net, 6)
	s.upper()
	before := s.means["prior_fake"]
	s.upper() // from the same latents with the same G
	out := outputs(t, r, s, r.pictures(6), map[string]graph.ID{"before": before, "after": s.means["prior_fake"]})
	if before, after := out["before"][0], out["after"][0]; !(after < before) {
		t.Errorf("KL(q(h|v̂) ‖ p(h)) went from %v to %v, want it lower", before, after)
	}
}

// Descending each variant's term lowers it where it is the whole loss.
func TestVariantsDescend(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(c *Config)
		of     func(r report) float64 // goes down
	}{
		{"undecoupled: KL(q ‖ p(h|v))", func(c *Config) {
			c.Undecoupled, c.LowerLevel, c.LatentTerm, c.Upper.LR = true, Canonical, NoLatent, 0
		}, func(r report) float64 { return named(r, "energy_post") - named(r, "entropy") }},
		{"undecoupled: the variance grows", func(c *Config) {
			c.Undecoupled, c.LowerLevel, c.LatentTerm, c.Upper.LR = true, Canonical, NoLatent, 0
		}, func(r report) float64 { return -named(r, "entropy") }},
		{"sigmoid ratio: reconstruction and prior", func(c *Config) {
			c.Ratio, c.VAEWeight, c.Upper.LR, c.LatentTerm = SigmoidRatio, 1e3, 0, NoLatent
		}, func(r report) float64 { return named(r, "vae") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := tinyConfig()
			cfg.Lower.WeightDecay = 0
			tt.change(&cfg)
			r := tinyRig(cfg)
			r.sameDraws = true
			images := r.pictures(12)
			for i := range images {
				images[i] = 0.5 + 0.4*images[i] // unlike what G makes
			}
			reports, _, err := r.train(1, 40, images)
			if err != nil {
				t.Fatal(err)
			}
			first, last := tt.of(reports[5]), tt.of(reports[39]) // the spectral vectors have settled
			if !(last < first-1e-3) {
				t.Errorf("went from %v to %v, want it lower", first, last)
			}
		})
	}
}

// N lower steps are N updates of ω for one of E, each with noise of its own.
func TestLowerStepsHaveNoiseOfTheirOwn(t *testing.T) {
	cfg := tinyConfig()
	cfg.LowerSteps, cfg.LatentTerm = 3, NotOffset
	r := tinyRig(cfg)
	s := r.step(1, 3)
	if s.stepped["upper"] != 1 || s.stepped["lower"] != 4 { // one of Q in the upper level
		t.Errorf("optimisers have stepped %v", s.stepped)
	}
	g, err := s.Commit()
	if err != nil {
		t.Fatal(err)
	}
	live := g.Live()
	seen := map[graph.Draw]bool{}
	for i, n := range g.Nodes() {
		if d, ok := n.Op.(graph.Draw); ok && live[i] {
			seen[d] = true
		}
	}
	got := map[philox.Purpose]int{}
	for d := range seen {
		got[d.Purpose]++
	}
	// ĥ of both levels and of two more steps; ε and that of h̃ in each step.
	if got[philox.Latent] != 3 || got[philox.Posterior] != 6 {
		t.Errorf("draws by purpose: %v, want 3 of ĥ and 6 of the posteriors", got)
	}
}

// Feeder gives each of an optimiser's steps in a step the schedule of its own
// number since the beginning of the run.
func TestFeeder(t *testing.T) {
	cfg := smallConfig()
	cfg.LowerSteps, cfg.LatentTerm = 2, NotOffset
	gen := cfg.Lower
	gen.Name, gen.LR = "generator", 5e-4
	cfg.Generator = &gen
	g, _, err := cfg.Step(1, 2)
	if err != nil {
		t.Fatal(err)
	}
	p, err := ref.New().Compile(g, exec.Options{Name: "test", Vars: started(t, cfg)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	const step, epoch = 7, 3
	cfg.Feeder(p)(step, epoch)
	for name, want := range map[string]struct {
		lr     float64
		number float64
	}{
		"adam.upper":     {1e-4, step},
		"adam.lower":     {3e-4, 3 * step},
		"adam.lower.1":   {3e-4, 3*step + 1},
		"adam.lower.2":   {3e-4, 3*step + 2},
		"adam.generator": {5e-4, 2 * step}, "adam.generator.1": {5e-4, 2*step + 1},
	} {
		in := p.Input(name)
		if in == nil {
			t.Errorf("the step has no input %s", name)
			continue
		}
		rate, correct := want.lr*math.Pow(0.998, epoch), 1/math.Sqrt(1-math.Pow(0.9, want.number+1))
		if got := in.F32(); !(math.Abs(float64(got[0])/rate-1) <= 1e-6) || !(math.Abs(float64(got[1])/correct-1) <= 1e-6) {
			t.Errorf("%s is %v, want %v and %v", name, got, rate, correct)
		}
	}
}
