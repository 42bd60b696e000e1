package nn

import (
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

type values = ddptest.Values

// context64 is a context of F64, for comparison with loops in float64.
func context64(mode Mode) *Context {
	c := NewContext(mode, 1)
	c.DType = graph.F64
	return c
}

// run commits c, initialises what vars lacks, and runs the graph once.
func run(t *testing.T, c *Context, vars exec.Vars, in values) values {
	t.Helper()
	return runGraph(t, c, commit(t, c), vars, in)
}

func commit(t *testing.T, c *Context) *graph.Graph {
	t.Helper()
	g, err := c.Commit()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// runGraph is run of what was committed.
func runGraph(t *testing.T, c *Context, g *graph.Graph, vars exec.Vars, in values) values {
	t.Helper()
	if err := Initialise(vars, c.Variables(), 1); err != nil {
		t.Fatal(err)
	}
	out, err := ddptest.Run(g, vars, nil, in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// numbers is the variable name.
func numbers(t *testing.T, vars exec.Vars, name string) []float64 {
	t.Helper()
	x, err := vars.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	return ddptest.Numbers(x)
}

// set gives an F64 variable a value.
func set(t *testing.T, vars exec.Vars, name string, s graph.Shape, v []float64) {
	t.Helper()
	if err := vars.Set(name, ddptest.Tensor(graph.Type{DType: graph.F64, Shape: s}, v)); err != nil {
		t.Fatal(err)
	}
}

func near(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	if err := ddptest.Near(got, want, tol); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// slope is the gradient of f at x by central differences.
func slope(f func(x []float64) float64, x []float64) []float64 {
	const h = 1e-5
	x = append([]float64(nil), x...)
	g := make([]float64, len(x))
	for i, at := range x {
		x[i] = at + h
		up := f(x)
		x[i] = at - h
		g[i] = (up - f(x)) / (2 * h)
		x[i] = at
	}
	return g
}

func dot(x, y []float64) float64 {
	sum := 0.0
	for i := range x {
		sum += x[i] * y[i]
	}
	return sum
}
