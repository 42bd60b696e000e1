package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// golden is what a PyTorch peer computes in two steps, in float64.
type golden struct {
	Losses [][]float64          `json:"losses"`
	Params map[string][]float64 `json:"params"`
}

func readGolden(t *testing.T, name string) (g golden) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	if len(g.Losses) != 2 || len(g.Params) == 0 {
		t.Fatalf("%s: want two steps and some parameters, got %d and %d", name, len(g.Losses), len(g.Params))
	}
	return g
}

// wave are the peers' numbers, sin(1.3·i + 0.7·k).
func wave(n, k int, scale, shift float64) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = shift + scale*math.Sin(1.3*float64(i)+0.7*float64(k))
	}
	return v
}

// load is a workload with inputs in the place of its draws.
type load struct {
	name   string
	order  []string // of the parameters, as the peer numbers them
	batch  int
	images graph.Shape
	build  func(c *nn.Context, batch int, draw noise)
	feeder func(p exec.Program) func(step int64, epoch int)
	// draw is draw number i of a step over the whole batch.
	draw func(step, i, n int) []float64
}

func loads() []load {
	rbm := GRBM{Visible: 6, Hidden: 4, Lower: 2, Unroll: 3, Sigma: 0.3, Temperature: 0.1, LR: 0.01}
	conv := ConvSM{Size: 8, Channels: 2, Width: 2, Features: 3, LR: 0.01}
	c := nn.NewContext(nn.Train, 1)
	conv.build(c, 4, drawn(c))
	var convOrder []string
	for _, p := range c.Params("energy") {
		convOrder = append(convOrder, p.Name)
	}
	return []load{
		{"grbm.json", []string{"model.s", "model.w", "model.b", "model.c", "posterior.weight", "posterior.bias"}, 6, graph.D(6, 6), rbm.build, rbm.Feeder,
			func(step, i, n int) []float64 {
				if i%2 == 0 {
					return wave(n, 1000*step+i+100, 1.2, 0)
				}
				return wave(n, 1000*step+i+100, 0.45, 0.5)
			}},
		{"convsm.json", convOrder, 4, graph.D(4, 2, 8, 8), conv.build, conv.Feeder,
			func(step, i, n int) []float64 { return wave(n, 1000*step+i+100, 1.2, 0) }},
	}
}

// Two steps of each workload against what PyTorch computes, in float64 on 1 and
// 2 ranks: losses and all parameters after them.
func TestAgainstPeers(t *testing.T) {
	for _, l := range loads() {
		want := readGolden(t, l.name)
		if len(want.Params) != len(l.order) {
			t.Fatalf("%s has %d parameters, the graph %d", l.name, len(want.Params), len(l.order))
		}
		for _, world := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, %d ranks", l.name, world), func(t *testing.T) {
				err := ddptest.Each(world, func(rank int, comm collective.Comm) error {
					losses, vars, err := l.rank(ref.New(), graph.F64, rank, world, comm)
					if err != nil {
						return err
					}
					return errors.Join(near(losses, want, 1e-8), l.params(vars, want, 1e-8))
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// The same in float32 on the CPU backend: the program that stepbench times.
func TestOnCPU(t *testing.T) {
	for _, l := range loads() {
		t.Run(l.name, func(t *testing.T) {
			backend, err := cpu.New(cpu.Config{Threads: 2})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := backend.Close(); err != nil {
					t.Error(err)
				}
			}()
			losses, vars, err := l.rank(backend, graph.F32, 0, 1, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := readGolden(t, l.name)
			if err := errors.Join(near(losses, want, 1e-3), l.params(vars, want, 1e-3)); err != nil {
				t.Error(err)
			}
		})
	}
}

func near(losses [][]float64, want golden, tol float64) error {
	for i, w := range want.Losses {
		if err := ddptest.Near(losses[i], w, tol); err != nil {
			return fmt.Errorf("losses of step %d: %w", i, err)
		}
	}
	return nil
}

func (l load) params(vars exec.Vars, want golden, tol float64) error {
	for _, name := range l.order {
		got, err := vars.Get(name)
		if err != nil {
			return err
		}
		if err := ddptest.Near(ddptest.Numbers(got), want.Params[name], tol); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
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
					for i, x := range wave(l.images*batch, 3, 0.4, 0.5)[rank*n : (rank+1)*n] {
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

// rank runs two steps on one of world ranks.
func (l load) rank(backend exec.Backend, dt graph.DType, rank, world int, comm collective.Comm) (losses [][]float64, vars exec.Vars, err error) {
	c := nn.NewContext(nn.Train, world)
	c.DType = dt
	draws := map[string]int{} // input → number of the draw
	batch := l.batch / world
	l.build(c, batch, func(i uint16, _ graph.Dist, typ graph.Type) graph.ID {
		name := fmt.Sprintf("draw %d", i)
		draws[name] = int(i)
		return c.Input(name, typ)
	})
	g, err := c.Commit()
	if err != nil {
		return nil, nil, err
	}
	vars = backend.NewVars()
	if err := nn.Initialise(vars, c.Variables(), 1); err != nil {
		return nil, nil, err
	}
	for k, name := range l.order {
		typ, ok := vars.Type(name)
		if !ok {
			return nil, nil, fmt.Errorf("the graph has no variable %s", name)
		}
		if err := vars.Set(name, ddptest.Tensor(typ, wave(typ.Shape.Len(), k, 0.4, 0))); err != nil {
			return nil, nil, err
		}
	}
	p, err := backend.Compile(g, exec.Options{Name: l.name, Vars: vars, Comm: comm})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	part := func(t *exec.Tensor, all []float64) { // this rank's rows
		n := t.Type.Shape.Len()
		for i := range n {
			t.SetAt(i, all[rank*n+i])
		}
	}
	for step := range 2 {
		part(p.Input(algo.InputImages), wave(l.images.Len(), 50+step, 0.4, 0.5))
		for name, i := range draws {
			t := p.Input(name)
			part(t, l.draw(step, i, t.Type.Shape.Len()*world))
		}
		if key := p.Input(algo.InputKey); key != nil {
			copy(key.I64(), []int64{1, int64(step), int64(rank * batch)})
		}
		l.feeder(p)(int64(step), 0)
		if err := exec.Run(context.Background(), p); err != nil {
			return nil, nil, err
		}
		losses = append(losses, ddptest.Numbers(p.Output(algo.OutputReport)))
	}
	return losses, vars, nil
}
