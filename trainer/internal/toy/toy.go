// Package toy is a training method as small as one can be: one Gaussian for each
// value of a sample, fitted by score matching. No program has it. Its tests put
// its one line into the list of methods and show that nothing else is needed to
// train, resume, sample and evaluate it.
package toy

import (
	"fmt"

	"ebtrain/data"
	"ebtrain/data/loader"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/model/optim"
	"ebtrain/trainer/setting"
)

// Config is a configuration.
type Config struct {
	C, H, W int // of a sample
	LR      float64
	Clean   bool // without the report's gradient norm
}

// Method is the method for the programs.
func Method() algo.Method {
	return algo.Method{
		Name: "toy", About: "a Gaussian for each value",
		Presets: []algo.Preset{{Name: "toy-any", About: "any data", Config: &Config{LR: 0.05}, Batch: 16, Steps: 20}},
		Decode:  algo.Decoder[Config]("toy"),
	}
}

func (c *Config) Clone() algo.Config { d := *c; return &d }
func (c *Config) Model() algo.Model  { return *c }

// Settings adds what a user may change.
func (c *Config) Settings(s *setting.Set) {
	s.Place(setting.Optimisers)
	s.Float("toy-lr", &c.LR, setting.Positive, "learning rate of descent")
	s.Place("Toys")
	s.Bool("toy-clean", &c.Clean, "report less")
}

// Fit takes any sizes.
func (c *Config) Fit(s data.Schema) error {
	c.C, c.H, c.W = s.C, s.H, s.W
	return nil
}

// Validate says what is wrong.
func (c *Config) Validate() error {
	if c.LR > 1 {
		return fmt.Errorf("a toy breaks at a --toy-lr of %v: want at most 1", c.LR)
	}
	return nil
}

// Takes says what a batch must hold.
func (c Config) Takes() algo.Inputs {
	return algo.Inputs{Shape: graph.D(c.C, c.H, c.W), Range: loader.Unit}
}

// Report is the loss, the norm of the gradient, and whether to stop.
func (c Config) Report() []algo.Column {
	names := []string{"loss", algo.ReportStop}
	if !c.Clean {
		names = append(names, "grad")
	}
	return algo.Columns(names, "loss")
}

// inputRate is the learning rate.
const inputRate = "toy.rate"

// Feeder fills the rate.
func (c Config) Feeder(p exec.Program) func(step int64, epoch int) {
	in := p.Input(inputRate)
	return func(int64, int) { optim.SetRow(in, 0, optim.DescentRates(c.LR)) }
}

// weights are the mean m and log σ of each value, (C·H·W).
func (c Config) weights(ctx *nn.Context) (m, s graph.ID) {
	ctx.Scope("gauss", func() {
		m = ctx.Weight("mean", graph.D(c.C*c.H*c.W), nn.Zeros)
		s = ctx.Weight("log_sd", graph.D(c.C*c.H*c.W), nn.Zeros)
	})
	return m, s
}

// flat are samples as rows, (n, C·H·W).
func (c Config) flat(ctx *nn.Context, n int) graph.ID {
	images := ctx.Input(algo.InputImages, graph.T(ctx.DType, n, c.C, c.H, c.W))
	return ctx.Reshape(images, graph.D(n, c.C*c.H*c.W))
}

// energy is Σ(v−m)²/(2σ²) of each row, (n, 1).
func energy(ctx *nn.Context, v, m, s graph.ID) graph.ID {
	z := ctx.Mul(ctx.Sub(v, m), ctx.Exp(ctx.Neg(s)))
	return ctx.Reshape(ctx.Scale(ctx.Sum(ctx.Square(z), 1), 0.5), graph.D(ctx.Batch(v), 1))
}

// Step descends ½‖∇E‖² − tr ∇²E, a mean over samples and values.
func (c Config) Step(world, batch int) (*graph.Graph, []nn.Variable, error) {
	return algo.TrainStep("toy", world, func(ctx *nn.Context) { c.build(ctx, batch) })
}

func (c Config) build(ctx *nn.Context, batch int) {
	v := c.flat(ctx, batch)
	m, s := c.weights(ctx)
	score := ctx.Grad(ctx.Sum(energy(ctx, v, m, s)), v)[0]
	loss := ctx.Sub(ctx.Scale(ctx.Mean(ctx.Square(score)), 0.5), ctx.Mean(ctx.Exp(ctx.Scale(s, -2))))

	ps := ctx.Params("gauss")
	grads, size := optim.Averaged(ctx, "gauss", loss, ps)
	for i, g := range grads { // the loss is a mean over the values, of which each has its own weights
		grads[i] = ctx.Scale(g, float64(c.C*c.H*c.W))
	}
	rate := optim.Rows(ctx, inputRate, 1)[0]
	optim.Descent{}.Step(ctx, optim.State{P: nn.IDs(ps)}, grads, rate).Keep(ctx, "toy", ps)

	var same []graph.ID
	if !c.Clean {
		same = append(same, size)
	}
	algo.WriteReport(ctx, []graph.ID{loss, ctx.Input(algo.InputStop, graph.T(ctx.DType))}, same)
}

// Sample draws m + σ·ε, in two transitions.
func (c Config) Sample(_ nn.Mode, n int) (chain.Plan, error) {
	out := nn.Variable{Name: chain.Prefix + "samples", Type: graph.T(graph.F32, n, c.C, c.H, c.W)}
	ctx := nn.NewContext(nn.Eval, 1)
	m, s := c.weights(ctx)
	eps := ctx.Draw(ctx.Input(chain.InputKey, graph.KeyType), graph.Normal, philox.Sampling, philox.SamplingLatents, graph.T(graph.F32, n, c.C*c.H*c.W))
	ctx.Assign(ctx.Var(out.Name, out.Type), ctx.Reshape(ctx.Add(m, ctx.Mul(ctx.Exp(s), eps)), out.Type.Shape))
	g, err := ctx.Commit()
	return chain.Plan{Vars: []nn.Variable{out}, Stages: []chain.Stage{{Name: "draw", Graph: g, Times: 2}}, Out: out.Name}, err
}

// Energies builds E(v).
func (c Config) Energies(_ nn.Mode, n int) (*graph.Graph, error) {
	ctx := nn.NewContext(nn.Eval, 1)
	v := c.flat(ctx, n)
	m, s := c.weights(ctx)
	e := energy(ctx, v, m, s)
	ctx.Output(algo.OutputLogit, e)
	ctx.Output(algo.OutputEnergy, e)
	return ctx.Commit()
}
