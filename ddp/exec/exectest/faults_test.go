package exectest_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
)

// faulty is the reference with a fault that strikes after each run.
type faulty struct {
	exec.Backend
	strike func(p *faultyProgram)
}

type faultyProgram struct {
	exec.Program
	g      *graph.Graph
	vars   exec.Vars
	runs   int
	strike func(p *faultyProgram)
}

func (f faulty) Compile(g *graph.Graph, o exec.Options) (exec.Program, error) {
	p, err := f.Backend.Compile(g, o)
	return &faultyProgram{Program: p, g: g, vars: o.Vars, strike: f.strike}, err
}

func (p *faultyProgram) Wait(ctx context.Context) error {
	err := p.Program.Wait(ctx)
	p.runs++
	p.strike(p)
	return err
}

// spoilOutput makes the largest element of the last output wrong by 2 percent.
func spoilOutput(p *faultyProgram) {
	outs := p.g.Outputs()
	t := p.Output(outs[len(outs)-1].Name)
	worst := 0
	for i := range t.Type.Shape.Len() {
		if !(math.Abs(t.At(i)) <= math.Abs(t.At(worst))) {
			worst = i
		}
	}
	bump(t, worst)
}

func bump(t *exec.Tensor, i int) {
	switch v := t.At(i); {
	case !t.Type.DType.IsFloat():
		t.Bytes()[i*t.Type.DType.Size()] ^= 1
	case math.IsNaN(v) || math.IsInf(v, 0):
		t.SetAt(i, 0)
	default:
		t.SetAt(i, v+math.Copysign(0.02*(math.Abs(v)+1e-3), v))
	}
}

// empty says whether the last output of a case has no elements.
func empty(c exectest.Case) bool {
	g, err := c.Graph(graph.F32, graph.Input)
	if err != nil {
		return true
	}
	outs := g.Outputs()
	return g.Type(outs[len(outs)-1].ID).Shape.Len() == 0
}

// TestFaultsAreFound runs every case on backends that are wrong in one way.
func TestFaultsAreFound(t *testing.T) {
	cases := append(exectest.Cases(), exectest.Networks()...)
	for seed := range uint64(40) {
		cases = append(cases, exectest.RandomCase(seed))
	}
	for _, f := range []struct {
		name, want string
		strike     func(p *faultyProgram)
	}{
		{"an element is wrong", "off by", spoilOutput},
		{"the last run differs", "the third run differs", func(p *faultyProgram) {
			if p.runs == 3 {
				spoilOutput(p)
			}
		}},
		{"an argument is overwritten", "the run changed", func(p *faultyProgram) {
			for _, n := range p.g.Nodes() {
				leaf, ok := n.Op.(graph.Leaf)
				if !ok || leaf.Type.Shape.Len() == 0 {
					continue
				}
				if in := p.Input(leaf.Name); in != nil {
					bump(in, 0)
				}
				if v, err := p.vars.Get(leaf.Name); err == nil {
					bump(v, 0)
					_ = p.vars.Set(leaf.Name, v) // the type is its own
				}
			}
		}},
	} {
		t.Run(f.name, func(t *testing.T) {
			for _, c := range cases {
				if empty(c) || f.want == "the run changed" && (len(c.Args) == 0 || c.Args[0].Shape.Len() == 0) {
					continue
				}
				err := exectest.Check(faulty{ref.New(), f.strike}, c, graph.F32)
				if err == nil || !(strings.Contains(err.Error(), f.want) || strings.Contains(err.Error(), "got")) {
					t.Errorf("%s: got %v, want an error that says %q", c.Name, err, f.want)
				}
			}
		})
	}
}
