package hypercheck

import (
	"context"
	"errors"
	"fmt"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// machine compiles and runs what one rank needs.
type machine struct {
	check   *Check
	model   algo.Bilevel
	backend exec.Backend
	step    int64
	start   []value // of variables that do not begin with their initial value
}

// part is a rank's part in computing the hypergradient; comm, over which its
// program reduces, is nil for the one process on the whole batch.
type part struct {
	ranks, rank int
	comm        collective.Comm
	inner       algo.Inner
}

// gradient is an upper loss and its gradient in θ.
type gradient struct {
	upper float64
	names []string // of the variables θ, in the order of declaration
	of    map[string][]float64
}

// program is a hypergradient that is ready to run any number of times: its
// inputs are filled.
type program struct {
	*machine
	program exec.Program
	vars    exec.Vars
	names   []string
}

func (m *machine) options(p part) algo.HyperOptions {
	return algo.HyperOptions{World: p.ranks, Batch: m.check.Batch / p.ranks, DType: graph.F64, Inner: p.inner}
}

// once compiles, runs and releases.
func (m *machine) once(ctx context.Context, p part) (gradient, error) {
	q, err := m.compile(p)
	if err != nil {
		return gradient{}, err
	}
	g, err := q.run(ctx)
	return g, errors.Join(err, q.close())
}

// compile makes a part's program, with variables of its own at their initial
// values.
func (m *machine) compile(p part) (*program, error) {
	g, specs, err := m.model.Hypergradient(m.options(p))
	if err != nil {
		return nil, err
	}
	q := &program{machine: m, vars: m.backend.NewVars()}
	if err := m.begin(q.vars, specs); err != nil {
		return nil, err
	}
	if err := nn.Initialise(q.vars, specs, m.check.Seed); err != nil {
		return nil, err
	}
	q.program, err = m.backend.Compile(g, exec.Options{Name: "hypergradient", Vars: q.vars, Comm: p.comm})
	if err != nil {
		return nil, err
	}
	if err := q.look(specs); err != nil {
		return nil, errors.Join(err, q.close())
	}
	m.fill(q.program, p)
	c := m.check
	c.Model.Feeder(q.program)(m.step, c.Epoch)
	return q, nil
}

// look finds θ: the variables that have a gradient.
func (q *program) look(specs []nn.Variable) error {
	for _, v := range specs {
		out := q.program.Output(algo.GradientOf(v.Name))
		switch {
		case out == nil:
			continue
		case v.Type.DType != graph.F64 || out.Type != v.Type:
			return fmt.Errorf("hypercheck: variable %s is %v and its gradient %v, expected both in f64 and of one shape", v.Name, v.Type, out.Type)
		}
		q.names = append(q.names, v.Name)
	}
	if upper := q.program.Output(algo.OutputUpper); upper == nil || len(q.names) == 0 {
		return fmt.Errorf("hypercheck: the model's hypergradient has %d gradients, and an upper loss: %v; expected some and true", len(q.names), upper != nil)
	}
	return nil
}

// fill sets the inputs that all models share to the part's share of the batch.
func (m *machine) fill(q exec.Program, p part) {
	c := m.check
	share := c.Batch / p.ranks
	if images := q.Input(algo.InputImages); images != nil {
		size := len(c.Images) / c.Batch
		for i, v := range c.Images[p.rank*share*size : (p.rank+1)*share*size] {
			images.SetAt(i, float64(v))
		}
	}
	if stop := q.Input(algo.InputStop); stop != nil {
		stop.SetAt(0, 0)
	}
	m.name(q, c.First+int64(p.rank*share))
}

// name sets the inputs that depend on the step.
func (m *machine) name(q exec.Program, first int64) {
	if key := q.Input(algo.InputKey); key != nil {
		copy(key.I64(), []int64{int64(m.check.Seed), m.step, first})
	}
}

// run computes the upper loss and its gradient.
func (q *program) run(ctx context.Context) (gradient, error) {
	upper, err := q.upper(ctx)
	g := gradient{upper: upper, names: q.names, of: map[string][]float64{}}
	if err != nil {
		return g, err
	}
	for _, name := range q.names {
		g.of[name] = append([]float64(nil), q.program.Output(algo.GradientOf(name)).F64()...)
	}
	return g, nil
}

// upper computes the upper loss at the variables as they are.
func (q *program) upper(ctx context.Context) (float64, error) {
	if err := exec.Run(ctx, q.program); err != nil {
		return 0, err
	}
	return q.program.Output(algo.OutputUpper).Scalar(), nil
}

func (q *program) close() error { return q.program.Close() }
