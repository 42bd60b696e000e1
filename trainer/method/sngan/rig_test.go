package sngan

import (
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nets"
	"ebtrain/trainer/model/nn"
)

const testSeed = 5

// Sizes of the tiny networks: 1×2×2 pictures.
const (
	side   = 2
	pixels = side * side
	hidden = 3
	latent = 2
)

// tiny has every kind of layer of the residual networks.
type tiny struct{}

func (tiny) Generator(c *nn.Context, h graph.ID) (v graph.ID) {
	c.Scope("generator", func() {
		x := nn.Linear{Name: "in", In: latent, Out: pixels}.Apply(c, h)
		x = nn.BatchNorm2d{Name: "bn", C: 1}.Apply(c, c.Reshape(x, graph.D(c.Batch(h), 1, side, side)))
		v = c.Tanh(nn.Conv2d{Name: "out", In: 1, Out: 1, Kernel: 1, Stride: 1}.Apply(c, x))
	})
	return v
}

// Discriminator has logits beyond ±1, the corners of the hinge.
func (tiny) Discriminator(c *nn.Context, v graph.ID) (logit graph.ID) {
	c.Scope("discriminator", func() {
		x := c.Reshape(v, graph.D(c.Batch(v), pixels))
		x = c.LeakyRelu(nn.Linear{Name: "l1", In: pixels, Out: hidden, Spectral: true}.Apply(c, x), 0.1)
		logit = c.Scale(nn.Linear{Name: "l2", In: hidden, Out: 1, Spectral: true}.Apply(c, x), 2)
	})
	return logit
}

func tinyConfig(updates int) Config {
	c := *mimicry(32, updates, "linear")
	c.Net = nets.ResNet{Size: side, Channels: 1, Width: 1, Latent: latent}
	c.Adam.LR, c.Adam.Eps, c.ScheduleSteps = 0.05, 0.3, 10
	return c
}

func context64() *nn.Context {
	c := nn.NewContext(nn.Train, 1)
	c.DType = graph.F64
	return c
}

// pictures are n images of a step, in (−1, 1).
func pictures(step, n int) []float64 {
	x := ddptest.Noise(uint32(100+step), n*pixels)
	for i := range x {
		x[i] /= 1 + max(x[i], -x[i])
	}
	return x
}

// inputs are those of a step of n pictures, with schedules by hand.
func inputs(cfg Config, step, n int) ddptest.Values {
	in := ddptest.Values{algo.InputImages: pictures(step, n), algo.InputKey: {testSeed, float64(step), 0}, algo.InputStop: {0}}
	rate := func(nth int) []float64 {
		a := cfg.Adam
		a.LR *= 1 - float64(step)/float64(cfg.ScheduleSteps)
		s := a.Schedule(int64(nth), 0)
		return []float64{float64(s[0]), float64(s[1])}
	}
	in["adam.generator"] = rate(step)
	for k := range cfg.Updates {
		in[cfg.discriminator().InputN(k)] = rate(step*cfg.Updates + k)
	}
	return in
}

// started are the variables of the tiny networks at the start of training.
func started(t *testing.T, cfg Config) exec.Vars {
	t.Helper()
	c := context64()
	newStep(c, cfg, tiny{}, 2*cfg.Updates).build()
	if _, err := c.Commit(); err != nil {
		t.Fatal(err)
	}
	vars := ddptest.NewVars()
	if err := nn.Initialise(vars, c.Variables(), testSeed); err != nil {
		t.Fatal(err)
	}
	return vars
}

func get(t *testing.T, vars exec.Vars, name string) []float64 {
	t.Helper()
	x, err := vars.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	return ddptest.Numbers(x)
}

func set(t *testing.T, vars exec.Vars, name string, x []float64) {
	t.Helper()
	ty, ok := vars.Type(name)
	if !ok {
		t.Fatalf("there is no variable %s", name)
	}
	if err := vars.Set(name, ddptest.Tensor(ty, x)); err != nil {
		t.Fatal(err)
	}
}
