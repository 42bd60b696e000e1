package bidvl

import (
	"math"
	"strings"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nets"
	"ebtrain/trainer/model/nn"
)

func smallConfig() Config {
	c := CIFAR10().Config
	c.Net = nets.Spec{Family: nets.ConvFamily, Size: 32, Channels: 1, Width: 4, Latent: 3}
	return c
}

func built(t *testing.T, c Config) nets.Networks {
	t.Helper()
	n, err := c.Net.Build()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// started are the variables of a config at the start of training.
func started(t *testing.T, c Config) exec.Vars {
	t.Helper()
	_, specs, err := c.Step(1, 2)
	if err != nil {
		t.Fatal(err)
	}
	vars := ddptest.NewVars()
	if err := nn.Initialise(vars, specs, testSeed); err != nil {
		t.Fatal(err)
	}
	return vars
}

// Samples are G of the named draws, in either mode, and nothing of the model is
// changed.
func TestSample(t *testing.T) {
	c := smallConfig()
	vars := started(t, c)
	for _, mode := range []nn.Mode{nn.BatchStats, nn.Eval} {
		plan, err := c.Sample(mode, 3)
		if err != nil {
			t.Fatal(err)
		}
		g := plan.Stages[0].Graph
		if n := len(g.Assigns()); n != 1 {
			t.Errorf("mode %d: %d variables are assigned, want the samples alone", mode, n)
		}
		if err := nn.Initialise(vars, plan.Vars, testSeed); err != nil {
			t.Fatal(err)
		}
		if _, err := ddptest.Run(g, vars, nil, ddptest.Values{algo.InputKey: {testSeed, 4, 10}}); err != nil {
			t.Fatal(err)
		}
		h := make([]float64, 3*3)
		for i := range 3 {
			philox.Name{Seed: testSeed, Purpose: philox.Sampling, Step: 4, Sample: uint32(10 + i)}.Normal(h[3*i : 3*i+3])
		}
		want := apply(t, mode, vars, ddptest.Values{"x": h}, func(ctx *nn.Context) graph.ID {
			return built(t, c).Generator(ctx, ctx.Input("x", graph.T(graph.F32, 3, 3)))
		})
		got := numbers(t, vars, plan.Out)
		if err := ddptest.Near(got, want, 1e-6); err != nil {
			t.Errorf("mode %d: %v", mode, err)
		}
		for _, x := range got {
			if !(math.Abs(x) <= 1) {
				t.Fatalf("mode %d: a pixel of %v", mode, x)
			}
		}
	}
}

func apply(t *testing.T, mode nn.Mode, vars exec.Vars, in ddptest.Values, f func(ctx *nn.Context) graph.ID) []float64 {
	t.Helper()
	ctx := nn.NewContext(mode, 1)
	ctx.Output("y", f(ctx))
	g, err := ctx.Commit()
	if err != nil {
		t.Fatal(err)
	}
	out, err := ddptest.Run(g, vars, nil, in)
	if err != nil {
		t.Fatal(err)
	}
	return out["y"]
}

// What is asked of images changes nothing: G(μ(v)), μ(v), the logit and its
// softplus.
func TestLookingAtImages(t *testing.T) {
	c := smallConfig()
	vars := started(t, c)
	images := rig{cfg: c, net: built(t, c), dtype: graph.F32}.pictures(3)
	run := func(g *graph.Graph, err error) map[string][]float64 {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if n := len(g.Assigns()); n != 0 {
			t.Errorf("%d variables are assigned", n)
		}
		out, err := ddptest.Run(g, vars, nil, ddptest.Values{algo.InputImages: images})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, mode := range []nn.Mode{nn.BatchStats, nn.Eval} {
		mean := apply(t, mode, vars, ddptest.Values{"x": images}, func(ctx *nn.Context) graph.ID {
			m, _ := built(t, c).Inference(ctx, ctx.Input("x", graph.T(graph.F32, 3, 1, 32, 32)))
			return m
		})
		want := apply(t, mode, vars, ddptest.Values{"x": mean}, func(ctx *nn.Context) graph.ID {
			return built(t, c).Generator(ctx, ctx.Input("x", graph.T(graph.F32, 3, 3)))
		})
		if err := ddptest.Near(run(c.Reconstruct(mode, 3))[algo.OutputRecon], want, 1e-5); err != nil {
			t.Errorf("mode %d, reconstruction: %v", mode, err)
		}
		if mode == nn.Eval {
			if err := ddptest.Near(run(c.Encode(3))[algo.OutputCode], mean, 1e-6); err != nil {
				t.Errorf("code: %v", err)
			}
		}
		out := run(c.Energies(mode, 3))
		for i, l := range out[algo.OutputLogit] {
			want := max(l, 0) + math.Log1p(math.Exp(-math.Abs(l)))
			if e := out[algo.OutputEnergy][i]; !(math.Abs(e-want) <= 1e-6*want) {
				t.Errorf("mode %d: energy %v of logit %v, want %v", mode, e, l, want)
			}
		}
	}
}

// The undecoupled model has an image's energy with its mean latent, E(v, μ(v)).
func TestEnergiesUndecoupled(t *testing.T) {
	c := smallConfig()
	c.Undecoupled = true
	vars := started(t, c)
	images := rig{cfg: c, net: built(t, c), dtype: graph.F32}.pictures(2)
	g, err := c.Energies(nn.Eval, 2)
	if err != nil {
		t.Fatal(err)
	}
	out, err := ddptest.Run(g, vars, nil, ddptest.Values{algo.InputImages: images})
	if err != nil {
		t.Fatal(err)
	}
	want := apply(t, nn.Eval, vars, ddptest.Values{"x": images}, func(ctx *nn.Context) graph.ID {
		x := ctx.Input("x", graph.T(graph.F32, 2, 1, 32, 32))
		mean, _ := built(t, c).Inference(ctx, x)
		logit, _ := built(t, c).(nets.Joint).JointEnergy(ctx, x, mean)
		return logit
	})
	if err := ddptest.Near(out[algo.OutputLogit], want, 1e-6); err != nil {
		t.Error(err)
	}
}

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(c *Config)
		want   string
	}{
		{"good", func(*Config) {}, ""},
		{"lower first", func(c *Config) { c.Order = LowerFirst }, ""},
		{"no order", func(c *Config) { c.Order = "" }, "order"},
		{"negative r'", func(c *Config) { c.VAEWeight = -1 }, "VAE weight"},
		{"r' not a number", func(c *Config) { c.VAEWeight = math.NaN() }, "VAE weight"},
		{"infinite r'", func(c *Config) { c.VAEWeight = math.Inf(1) }, "VAE weight"},
		{"r' beyond float32", func(c *Config) { c.VAEWeight = 1e39 }, "VAE weight"},
		{"negative latent weight", func(c *Config) { c.LatentWeight = -0.5 }, "latent weight above 0"},
		{"infinite latent weight", func(c *Config) { c.LatentWeight = math.Inf(1) }, "latent weight above 0"},
		{"latent weight beyond float32", func(c *Config) { c.LatentWeight = 1e39 }, "latent weight above 0"},
		{"latent weight 0", func(c *Config) { c.LatentWeight = 0 }, "leaves the latent term out"},
		{"latent weight 0 of no term", func(c *Config) { c.LatentWeight, c.LatentTerm = 0, NoLatent }, ""},
		{"latent term", func(c *Config) { c.LatentTerm = "" }, "latent term offset, not-offset or none, got"},
		{"upper loss", func(c *Config) { c.UpperLoss = "wasserstein" }, "upper loss difference or hinge, got \"wasserstein\""},
		{"lower level", func(c *Config) { c.LowerLevel = "" }, "lower level symmetric or canonical"},
		{"ratio", func(c *Config) { c.Ratio = "" }, "ratio constant, sigmoid or clamp"},
		{"no lower steps", func(c *Config) { c.LowerSteps = 0 }, "lower steps"},
		{"too many lower steps", func(c *Config) { c.LowerSteps = 101 }, "lower steps"},
		{"net", func(c *Config) { c.Net.Width = 6 }, "width"},
		{"net's family", func(c *Config) { c.Net.Family = "" }, "family"},
		{"upper optimiser", func(c *Config) { c.Upper.LR = 0 }, "upper: want a learning rate"},
		{"lower optimiser", func(c *Config) { c.Lower.Beta2 = 1 }, "lower: want Adam's betas"},
		{"third optimiser", func(c *Config) { *c = CIFAR10ResNet().Config; c.Generator.LR = -1 }, "generator: want a learning rate"},
		{"one name", func(c *Config) { c.Lower.Name = "upper" }, "a name for each optimiser, got \"upper\""},
		{"hinge with softplus", func(c *Config) { c.UpperLoss = Hinge }, "never below 0"},
		{"difference with residual nets", func(c *Config) { *c = CIFAR10ResNet().Config; c.UpperLoss = Difference }, ""},
		{"undecoupled", func(c *Config) { c.Undecoupled = true }, ""},
		{"undecoupled, canonical, no latent term", func(c *Config) { c.Undecoupled, c.LowerLevel, c.LatentTerm = true, Canonical, NoLatent }, ""},
		{"undecoupled with residual nets", func(c *Config) { *c = CelebA128().Config; c.Undecoupled = true }, "energy net of images and latents"},
		{"undecoupled, not offset", func(c *Config) { c.Undecoupled, c.LatentTerm = true, NotOffset }, "nothing to offset"},
		{"undecoupled with a ratio", func(c *Config) { c.Undecoupled, c.Ratio = true, SigmoidRatio }, "energy of an image alone"},
		{"canonical", func(c *Config) { c.LowerLevel = Canonical }, ""},
		{"canonical with a ratio", func(c *Config) { c.LowerLevel, c.Ratio = Canonical, ClampRatio }, "has none"},
		{"canonical, no latent term", func(c *Config) { c.LowerLevel, c.LatentTerm = Canonical, NoLatent }, "no use for the inference net"},
		{"r' of 0", func(c *Config) { c.VAEWeight = 0 }, ""},
		{"r' of 0 with a ratio", func(c *Config) { c.VAEWeight, c.Ratio = 0, SigmoidRatio }, "VAE weight r' of 0 has none"},
		{"r' of 0, no latent term", func(c *Config) { c.VAEWeight, c.LatentTerm = 0, NoLatent }, "no use for the inference net"},
		{"undecoupled, r' of 0, no latent term", func(c *Config) { c.Undecoupled, c.VAEWeight, c.LatentTerm = true, 0, NoLatent }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := CIFAR10().Config
			tt.change(&c)
			err := c.Validate()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	c := CIFAR10().Config
	c.Order, c.VAEWeight, c.Upper.LR = "", -1, -1
	if err := c.Validate(); strings.Count(err.Error(), "want") != 3 {
		t.Errorf("three mistakes, one message each; got %v", err)
	}
}
