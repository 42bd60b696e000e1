package loop_test

import (
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/run/ckpt"
	"ebtrain/trainer/run/loop"
)

// counting is an algorithm with one weight and one variable of its own on each
// rank, which grows by 1 + the place of the rank's first sample in each step.
type counting struct{ role nn.Role }

func (a counting) Takes() algo.Inputs                                { return algo.Inputs{Shape: graph.D(3, 32, 32)} }
func (a counting) Report() []algo.Column                             { return algo.Columns([]string{algo.ReportStop}) }
func (a counting) Feeder(exec.Program) func(int64, int)              { return func(int64, int) {} }
func (a counting) start(dst []float64, _ graph.Shape, _ philox.Name) { dst[0], dst[1] = 10, 20 }

func (a counting) Step(world, batch int) (*graph.Graph, []nn.Variable, error) {
	c := nn.NewContext(nn.Train, world)
	own := c.Scratch
	if a.role == nn.Buffer {
		own = c.Buffer
	}
	first := c.Cast(c.Slice(c.Input(algo.InputKey, graph.KeyType), 0, 2, 3, 1), graph.F32)
	c.Scope("net", func() {
		images := c.Input(algo.InputImages, graph.T(graph.F32, batch, 3, 32, 32))
		c.Update("w", c.Add(c.Weight("w", graph.D(), nn.Ones), c.AllReduce(collective.Mean, "w", c.Mean(images))[0]))
		c.Update("own", c.Shift(c.Add(own("own", graph.D(2), a.start), first), 1))
	})
	stop := c.AllReduce(collective.Mean, "stop", c.Input(algo.InputStop, graph.T(graph.F32)))[0]
	c.Output(algo.OutputReport, c.Reshape(stop, graph.D(1)))
	g, err := c.Commit()
	return g, c.Variables(), err
}

// train runs counting and returns what the ranks hold at the end.
func (a counting) train(t *testing.T, world int, config loop.Config) (w, own [][]float64, errs []error) {
	t.Helper()
	j := job{world: world, config: config, parts: func(_ int, p *loop.Parts) { p.Model = a }}
	if _, errs = j.run(t); errors.Join(errs...) != nil {
		return nil, nil, errs
	}
	for _, vars := range j.vars {
		for name, list := range map[string]*[][]float64{"net.w": &w, "net.own": &own} {
			x, err := vars.Get(name)
			if err != nil {
				t.Fatal(err)
			}
			*list = append(*list, ddptest.Numbers(x))
		}
	}
	return w, own, errs
}

// Ranks may differ in a Scratch variable, and only in such a one.
func TestScratchIsNotCompared(t *testing.T) {
	config := loop.Config{Batch: 4, Steps: 3, Seed: 1, CheckEvery: 1}
	_, own, errs := counting{nn.Scratch}.train(t, 2, config)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for rank, want := range [][]float64{{13, 23}, {19, 29}} {
		if err := ddptest.Near(own[rank], want, 0); err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
	_, _, errs = counting{nn.Buffer}.train(t, 2, config)
	for rank, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "net.own") {
			t.Errorf("rank %d: got %v, want a buffer that differs named", rank, err)
		}
	}
}

// Checkpoints do not hold Scratch variables; a resumed run begins them anew and
// goes on with all else.
func TestScratchIsNotSaved(t *testing.T) {
	for world := 1; world <= 2; world++ {
		config := loop.Config{Batch: 4, Steps: 5, Seed: 1}
		whole, _, errs := counting{nn.Scratch}.train(t, world, config)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		config.CkptDir, config.Steps = t.TempDir(), 2
		if _, _, errs := (counting{nn.Scratch}).train(t, world, config); errors.Join(errs...) != nil {
			t.Fatal(errors.Join(errs...))
		}
		path, _, _, err := ckpt.ReadLatest(config.CkptDir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		_, groups, err := ckpt.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(groups) != 1 || len(groups[ckpt.Weights]) != 1 {
			t.Errorf("%s holds %v, want the weight alone", filepath.Base(path), groups)
		}
		config.Steps, config.Resume = 5, true
		w, own, errs := counting{nn.Scratch}.train(t, world, config)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		for rank := range own {
			grown := float64(3 * (1 + rank*4/world)) // the three steps after the resume
			if err := ddptest.Near(own[rank], []float64{10 + grown, 20 + grown}, 0); err != nil {
				t.Errorf("%d ranks, rank %d: %v", world, rank, err)
			}
			if err := ddptest.Near(w[rank], whole[rank], 0); err != nil || w[rank][0] == 1 {
				t.Errorf("%d ranks, rank %d: the weight is %v: %v", world, rank, w[rank], err)
			}
		}
	}
}
