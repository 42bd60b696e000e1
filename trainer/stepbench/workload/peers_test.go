package workload

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/stepbench/golden"
)

// load is a workload that is compared with a peer.
type load struct {
	file string // of testdata
	step golden.Step
}

func loads() []load {
	weight := func(k, n int) []float64 { return golden.Wave(n, k, 0.4, 0) }
	input := func(step int, _ string, n int) []float64 { return golden.Wave(n, 50+step, 0.4, 0.5) }
	draw := func(step int, d graph.Draw, n int) []float64 {
		if d.Dist == graph.Uniform {
			return golden.Wave(n, 1000*step+int(d.Sub)+100, 0.45, 0.5)
		}
		return golden.Wave(n, 1000*step+int(d.Sub)+100, 1.2, 0)
	}
	rbm := GRBM{Visible: 6, Hidden: 4, Lower: 2, Unroll: 3, Sigma: 0.3, Temperature: 0.1, LR: 0.01}
	conv := ConvSM{Size: 8, Channels: 2, Width: 2, Features: 3, LR: 0.01}
	return []load{
		{"grbm.json", golden.Step{Model: rbm, Batch: 6, Losses: []string{"upper", "lower"}, Weight: weight, Input: input, Draw: draw}},
		{"convsm.json", golden.Step{Model: conv, Batch: 4, Losses: []string{"loss"}, Weight: weight, Input: input, Draw: draw}},
	}
}

// Two steps of each workload against what PyTorch computes.
func TestAgainstPeers(t *testing.T) {
	for _, l := range loads() {
		t.Run(l.file, func(t *testing.T) { l.step.Check(t, filepath.Join("testdata", l.file)) })
	}
}

// The schedule of Adam, and the noise of a step on two ranks, which is what one
// rank draws.
func TestDrawsAreGlobal(t *testing.T) {
	for _, l := range []struct {
		name  string
		model interface {
			Step(world, batch int) (*graph.Graph, []nn.Variable, error)
			Feeder(p exec.Program) func(step int64, epoch int)
		}
		images int
	}{
		{"grbm", GRBM{Visible: 6, Hidden: 4, Lower: 1, Unroll: 1, Sigma: 0.3, Temperature: 0.5, LR: 1e-3}, 6},
		{"conv-sm", ConvSM{Size: 8, Channels: 1, Width: 1, Features: 2, LR: 1e-3}, 64},
	} {
		t.Run(l.name, func(t *testing.T) {
			const batch = 4
			var one []float64
			for _, world := range []int{1, 2} {
				err := ddptest.Each(world, func(rank int, comm collective.Comm) (err error) {
					g, specs, err := l.model.Step(world, batch/world)
					if err != nil {
						return err
					}
					b := ref.New()
					vars := b.NewVars()
					if err := nn.Initialise(vars, specs, 1); err != nil {
						return err
					}
					p, err := b.Compile(g, exec.Options{Name: "step", Vars: vars, Comm: comm})
					if err != nil {
						return err
					}
					defer func() { err = errors.Join(err, p.Close()) }()
					in := p.Input(algo.InputImages)
					n := l.images * batch / world
					for i, x := range golden.Wave(l.images*batch, 3, 0.4, 0.5)[rank*n : (rank+1)*n] {
						in.SetAt(i, x)
					}
					copy(p.Input(algo.InputKey).I64(), []int64{7, 0, int64(rank * batch / world)})
					l.model.Feeder(p)(0, 0)
					if err := exec.Run(context.Background(), p); err != nil {
						return err
					}
					got := ddptest.Numbers(p.Output(algo.OutputReport))
					if world == 1 {
						one = got
						return nil
					}
					return ddptest.Near(got, one, 1e-4)
				})
				if err != nil {
					t.Errorf("%d ranks: %v", world, err)
				}
			}
		})
	}
}

// Sizes that cannot be built are refused.
func TestValidate(t *testing.T) {
	if err := errors.Join(Frey().Validate(), SmallConv().Validate()); err != nil {
		t.Error(err)
	}
	for _, m := range []interface{ Validate() error }{GRBM{}, ConvSM{}, func() GRBM { m := Frey(); m.Lower = 0; return m }(), func() ConvSM { m := SmallConv(); m.Size = 12; return m }()} {
		if m.Validate() == nil {
			t.Errorf("%+v passes", m)
		}
	}
}
