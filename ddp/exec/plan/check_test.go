package plan

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
)

// start fills inputs and variables with numbers of their names.
func (m *machine) start() {
	for _, list := range [][]External{m.p.Inputs, m.p.Vars} {
		for _, e := range list {
			r := rand.New(rand.NewPCG(uint64(len(e.Name)), uint64(e.Name[len(e.Name)-1])))
			t := exec.NewTensor(e.Type)
			for i := range e.Type.Shape.Len() {
				t.SetAt(i, r.Float64()-0.5)
			}
			copy(m.external(e), m.stored(e, t).Bytes())
		}
	}
}

// stored is t as the plan wants it in memory.
func (m *machine) stored(e External, t *exec.Tensor) *exec.Tensor {
	if m.p.Values[e.Value].Last {
		return exec.ChannelsLast(t)
	}
	return t
}

// results are the outputs and variables, in memory's order.
func (m *machine) results() (all [][]byte) {
	for _, list := range [][]External{m.p.Outputs, m.p.Vars} {
		for _, e := range list {
			all = append(all, m.external(e))
		}
	}
	return all
}

// logical are the outputs and variables as their users see them.
func (m *machine) logical() (all []*exec.Tensor) {
	for _, list := range [][]External{m.p.Outputs, m.p.Vars} {
		for _, e := range list {
			val := &m.p.Values[e.Value]
			t := exec.NewTensor(graph.Type{DType: e.Type.DType, Shape: val.Dims})
			copy(t.Bytes(), m.external(e))
			if val.Last {
				t = exec.ChannelsFirst(t)
			}
			all = append(all, t)
		}
	}
	return all
}

// TestMachine holds the machine, and so the plan, to the reference: networks with
// derivatives of all orders.
func TestMachine(t *testing.T) {
	for _, c := range exectest.Networks() {
		if err := holds(c, Options{Name: c.Name, World: 1}); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}

// holds compares what a plan of a case computes with what the reference does.
func holds(c exectest.Case, o Options) error {
	for _, kind := range []graph.Kind{graph.Input, graph.Var} {
		g, err := c.Graph(graph.F64, kind)
		if err != nil {
			return err
		}
		values := c.Tensors(graph.F64)
		want, err := reference(g, values)
		if err != nil {
			return err
		}
		p := New(g, o)
		p.Allocate()
		m, err := newMachine(p, 1)
		if err != nil {
			return err
		}
		for _, list := range [][]External{p.Inputs, p.Vars} {
			for _, e := range list {
				copy(m.external(e), m.stored(e, values[e.Name]).Bytes())
			}
		}
		for i, run := range m.steps {
			if err := run(); err != nil {
				return fmt.Errorf("step %d: %w", i, err)
			}
		}
		for i, e := range p.Outputs {
			got := exec.NewTensor(e.Type)
			copy(got.Bytes(), m.external(e))
			for k := range e.Type.Shape.Len() {
				if a, b := got.At(k), want[i].At(k); !(math.Abs(a-b) <= 1e-9*(1+math.Abs(b))) { // memory that is not the plan's holds NaN
					return fmt.Errorf("%s, element %d: got %v, want %v", e.Name, k, a, b)
				}
			}
		}
	}
	return nil
}

// reference computes the outputs of g.
func reference(g *graph.Graph, values map[string]*exec.Tensor) (out []*exec.Tensor, err error) {
	b := ref.New()
	vars := b.NewVars()
	for name, v := range values {
		if err := vars.Set(name, v); err != nil {
			return nil, err
		}
	}
	p, err := b.Compile(g, exec.Options{Name: "reference", Vars: vars})
	if err != nil {
		return nil, err
	}
	for name, v := range values {
		if in := p.Input(name); in != nil {
			copy(in.Bytes(), v.Bytes())
		}
	}
	if err := exec.Run(context.Background(), p); err != nil {
		return nil, err
	}
	for _, o := range g.Outputs() {
		out = append(out, p.Output(o.Name))
	}
	return out, nil
}
