package nn

import (
	"strings"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
)

// A layer is evaluated at its own weights, at others, and at its own again; the
// gradient at the others reaches what they were made of, and nothing is assigned.
func TestWith(t *testing.T) {
	c := context64(Train)
	l := Linear{Name: "l", In: 2, Out: 1}
	x := c.Input("x", graph.T(graph.F64, 1, 2))
	c.Output("before", l.Apply(c, x))
	ps := c.Params("l")
	doubled := []graph.ID{c.Scale(ps[0].ID, 2), c.Scale(ps[1].ID, 2)}
	c.With(ps, doubled, func() {
		y := l.Apply(c, x)
		c.Output("other", y)
		c.Output("slope", c.Grad(c.Sum(y), ps[1].ID)[0])
	})
	c.Output("after", l.Apply(c, x))
	vars := ddptest.NewVars()
	set(t, vars, "l.weight", graph.D(1, 2), []float64{3, 5})
	set(t, vars, "l.bias", graph.D(1), []float64{7})
	out := run(t, c, vars, values{"x": {1, 10}})
	for name, want := range map[string]float64{"before": 60, "other": 120, "slope": 2, "after": 60} {
		near(t, name, out[name], []float64{want}, 0)
	}
	near(t, "the variable", numbers(t, vars, "l.weight"), []float64{3, 5}, 0)
}

func TestWithRefuses(t *testing.T) {
	for name, want := range map[string]string{"l": "1 values for 2 variables", "m": "before it is declared"} {
		c := context64(Train)
		Linear{Name: "l", In: 1, Out: 1}.Apply(c, c.Input("x", graph.T(graph.F64, 1, 1)))
		ps := c.Params("l")
		if name == "m" {
			ps = []Param{{Name: "m.weight"}}
		}
		c.With(ps, []graph.ID{c.Zeros(graph.T(graph.F64, 1, 1))}, func() {})
		if _, err := c.Commit(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, want)
		}
	}
}
