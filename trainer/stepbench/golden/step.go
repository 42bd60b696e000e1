package golden

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ebtrain/collective"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// Model is a training step as stepbench times it.
type Model interface {
	Step(world, batch int) (*graph.Graph, []nn.Variable, error)
	Report() []algo.Column
	Feeder(p exec.Program) func(step int64, epoch int)
}

// Step is a step of a model, and the numbers that the peer has given its own: of the
// whole batch, n of them.
type Step struct {
	Model  Model
	Batch  int      // over all ranks
	Losses []string // the peer's, by their names in the report
	Weight func(k, n int) []float64
	Input  func(step int, name string, n int) []float64 // of the samples
	Draw   func(step int, d graph.Draw, n int) []float64
}

// program is a step of one rank, compiled.
type program struct {
	exec.Program
	of          Step
	rank, world int
	draws       map[string]graph.Draw // by the inputs in their places
	vars        exec.Vars
}

// run takes the peer's steps on one of world ranks from the weights named in order, in
// F64 if wide. It returns the losses of each, and the variables after the last.
func (s Step) run(backend exec.Backend, order []string, wide bool, rank, world int, comm collective.Comm) (losses [][]float64, vars exec.Vars, err error) {
	p, err := s.compile(backend, wide, rank, world, comm)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := p.begin(order); err != nil {
		return nil, nil, err
	}
	feed := s.Model.Feeder(p)
	for i := range steps {
		p.fill(i)
		feed(int64(i), 0)
		if err := exec.Run(context.Background(), p); err != nil {
			return nil, nil, err
		}
		losses = append(losses, p.losses())
	}
	return losses, p.vars, nil
}

func (s Step) compile(backend exec.Backend, wide bool, rank, world int, comm collective.Comm) (*program, error) {
	g, specs, err := s.Model.Step(world, s.Batch/world)
	if err != nil {
		return nil, err
	}
	p := &program{of: s, rank: rank, world: world, draws: map[string]graph.Draw{}, vars: backend.NewVars()}
	if g, err = p.given(g, wide); err != nil {
		return nil, err
	}
	if wide {
		specs = slices.Clone(specs)
		for i := range specs {
			specs[i].Type = ddptest.Wide(specs[i].Type)
		}
	}
	if err := nn.Initialise(p.vars, specs, 1); err != nil {
		return nil, err
	}
	if world == 1 {
		comm = nil
	}
	p.Program, err = backend.Compile(g, exec.Options{Name: "golden", Vars: p.vars, Comm: comm})
	return p, err
}

// given is g with an input for each draw, in F64 if wide.
func (p *program) given(g *graph.Graph, wide bool) (*graph.Graph, error) {
	return ddptest.Rewrite(g, func(b *graph.Builder, op graph.Op, in []graph.ID) []graph.ID {
		if d, ok := op.(graph.Draw); ok {
			name := fmt.Sprintf("draw %d.%d", d.Purpose, d.Sub)
			p.draws[name] = d
			op, in = graph.Leaf{Kind: graph.Input, Name: name, Type: d.Type}, nil
		}
		if wide {
			return ddptest.Widen(b, op, in)
		}
		return b.Apply(op, in...)
	})
}

// begin gives the weights their first values.
func (p *program) begin(order []string) error {
	for k, name := range order {
		typ, ok := p.vars.Type(name)
		if !ok {
			return fmt.Errorf("the step has no variable %s", name)
		}
		if err := p.vars.Set(name, ddptest.Tensor(typ, p.of.Weight(k, typ.Shape.Len()))); err != nil {
			return err
		}
	}
	return nil
}

// fill gives the inputs of a step this rank's rows.
func (p *program) fill(step int) {
	rows := func(name string, whole func(n int) []float64) {
		t := p.Input(name)
		if t == nil {
			return
		}
		n := t.Type.Shape.Len()
		for i, x := range whole(n * p.world)[p.rank*n : (p.rank+1)*n] {
			t.SetAt(i, x)
		}
	}
	for _, name := range []string{algo.InputImages, algo.InputTokens, algo.InputLengths} {
		rows(name, func(n int) []float64 { return p.of.Input(step, name, n) })
	}
	for name, d := range p.draws {
		rows(name, func(n int) []float64 { return p.of.Draw(step, d, n) })
	}
	if key := p.Input(algo.InputKey); key != nil {
		copy(key.I64(), []int64{1, int64(step), int64(p.rank * p.of.Batch / p.world)})
	}
}

// losses are those of the last step that the peer has.
func (p *program) losses() (values []float64) {
	names := algo.Names(p.of.Model.Report())
	all := ddptest.Numbers(p.Output(algo.OutputReport))
	for _, name := range p.of.Losses {
		values = append(values, all[slices.Index(names, name)])
	}
	return values
}
