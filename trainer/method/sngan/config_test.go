package sngan

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"ebtrain/data"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/trainer/algo/algotest"
	"ebtrain/trainer/model/optim"
)

// Mimicry's table: batch 64, Adam 2e-4, (0, 0.9), 100,000 steps.
func TestPresets(t *testing.T) {
	for name, want := range map[string]struct {
		size, updates int
		schedule      optim.Kind
	}{
		"sngan-cifar10": {32, 5, optim.Linear}, "sngan-celeba64": {64, 5, optim.Linear}, "sngan-celeba128": {128, 2, optim.Constant},
	} {
		p, err := Method().Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		c := p.Config.(*Config)
		a := c.Adam
		if c.Net.Size != want.size || c.Net.Width != 64 || c.Net.Latent != 128 || c.Updates != want.updates || p.Batch != 64*want.updates || p.Steps != 100_000 {
			t.Errorf("%s: %+v, batch %d", name, c, p.Batch)
		}
		if a.LR != 2e-4 || a.Beta1 != 0 || a.Beta2 != 0.9 || a.WeightDecay != 0 || c.Schedule != want.schedule || c.ScheduleSteps != 100_000 {
			t.Errorf("%s: %+v", name, c)
		}
		if c.Net.PlainShortcut || c.Net.Nearest || c.Net.NoOutputBias {
			t.Errorf("%s has Chainer's networks: %+v", name, c.Net)
		}
	}
}

// Each update has the clock of its optimiser, and the rate falls to 0 by steps.
func TestSchedules(t *testing.T) {
	c := *small(3)
	c.ScheduleSteps = 10
	g, specs, err := c.Step(1, 3)
	if err != nil {
		t.Fatal(err)
	}
	vars := ref.New().NewVars()
	for _, v := range specs {
		if err := vars.Set(v.Name, v.Value(testSeed)); err != nil {
			t.Fatal(err)
		}
	}
	p, err := ref.New().Compile(g, exec.Options{Name: "step", Vars: vars})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	feed := c.Feeder(p)
	for step, share := range map[int64]float64{0: 1, 4: 0.6, 9: 0.1, 10: 0, 500: 0} {
		feed(step, 3)
		for input, clock := range map[string]int64{"adam.generator": step, "adam.discriminator": 3 * step, "adam.discriminator.1": 3*step + 1, "adam.discriminator.2": 3*step + 2} {
			got := ddptest.Numbers(p.Input(input))
			if want := c.Adam.LR * share; !(math.Abs(got[0]-want) <= 1e-9) { // β₁ = 0
				t.Errorf("step %d: %s has a rate of %v, want %v", step, input, got[0], want)
			}
			if want := 1 / math.Sqrt(1-math.Pow(c.Adam.Beta2, float64(clock+1))); !(math.Abs(got[1]-want) <= 1e-6*want) {
				t.Errorf("step %d: %s corrects by %v, want %v", step, input, got[1], want)
			}
		}
	}
}

// σ̂ of every layer of D tends to the largest singular value of its weight while
// the weights move slowly.
func TestSpectralNormIsThatOfTheWeights(t *testing.T) {
	cfg := tinyConfig(5)
	cfg.Adam.LR = 1e-7
	vars := started(t, cfg)
	c := context64()
	newStep(c, cfg, tiny{}, 10).build()
	g, err := c.Commit()
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err := ddptest.Run(g, vars, nil, inputs(cfg, 0, 10)); err != nil {
			t.Fatal(err)
		}
	}
	for _, layer := range []string{"discriminator.l1", "discriminator.l2"} {
		w, u, v := get(t, vars, layer+".weight_orig"), get(t, vars, layer+".weight_u"), get(t, vars, layer+".weight_v")
		var svd mat.SVD
		m := mat.NewDense(len(u), len(v), w)
		if !svd.Factorize(m, mat.SVDNone) {
			t.Fatal("no singular values")
		}
		got, want := mat.Inner(mat.NewVecDense(len(u), u), m, mat.NewVecDense(len(v), v)), svd.Values(nil)[0]
		if !(math.Abs(got-want) <= 1e-4*want) {
			t.Errorf("%s: divided by %v, its largest singular value is %v", layer, got, want)
		}
	}
}

// What a user may get wrong is one sentence that names it.
func TestBadInputs(t *testing.T) {
	for _, tt := range []struct{ flag, value, want string }{
		{"n-dis", "0", "want --n-dis of at least 1, got 0"},
		{"n-dis", "101", "want --n-dis of at most 100, got 101"},
		{"schedule", "cosine", `unknown --schedule "cosine": want constant or linear`},
		{"schedule-steps", "0", "want --schedule-steps of at least 1, got 0"},
		{"width", "0", "want --width of at least 1, got 0"},
		{"beta2", "1", "want --beta2 of at least 0 and below 1"},
	} {
		err := algotest.Given(mimicry(32, 5, optim.Linear), map[string]string{tt.flag: tt.value})
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("--%s %s: %v, want %q", tt.flag, tt.value, err, tt.want)
		}
	}
	err := algotest.Given(mimicry(32, 5, optim.Linear), map[string]string{"schedule": "constant", "schedule-steps": "10"})
	if err == nil || err.Error() != "--schedule-steps 10 is of no use to --schedule constant: leave it out, or say --schedule linear" {
		t.Error(err)
	}
	c := mimicry(64, 5, optim.Linear)
	for _, s := range []data.Schema{{C: 3, H: 32, W: 32}, {C: 1, H: 1, W: 2}} {
		if err := c.Fit(s); err == nil || err.Error() != "--net resnet64 takes 64x64" {
			t.Errorf("%v: %v", s, err)
		}
	}
	if err := c.SetNet("conv32"); err == nil || !strings.Contains(err.Error(), "want one of resnet32, resnet64, resnet128") {
		t.Errorf("networks of another method: %v", err)
	}
	if _, _, err := c.Step(1, 12); err == nil || !strings.Contains(err.Error(), "12 pictures on a rank cannot be cut into 5 parts") {
		t.Errorf("a batch that has no equal parts: %v", err)
	}
	c.Updates, c.Schedule, c.Adam.LR = 0, "", 0
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "--n-dis") || !strings.Contains(err.Error(), "--schedule") {
		t.Errorf("mistakes: %v", err)
	}
}

// Networks are taken at the published sizes.
func TestSetNet(t *testing.T) {
	for _, name := range Method().Nets {
		c := small(1)
		if err := c.SetNet(name); err != nil || c.Net.Name() != name || c.Net.Width != 64 || c.Net.Latent != 128 || c.Net.Channels != 3 {
			t.Errorf("--net %s: %+v, %v", name, c.Net, err)
		}
	}
}

// A config.json that was edited is checked like flags.
func TestBadConfigs(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"--n-dis":                 func(c *Config) { c.Updates = 101 },
		`unknown --schedule`:      func(c *Config) { c.Schedule = optim.Cosine },
		"over at least one step":  func(c *Config) { c.ScheduleSteps = 0 },
		"sngan: want Adam's beta": func(c *Config) { c.Adam.Beta2 = 1 },
		"want a width":            func(c *Config) { c.Net.Width = 0 },
	} {
		c := mimicry(32, 5, optim.Linear)
		change(c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}
