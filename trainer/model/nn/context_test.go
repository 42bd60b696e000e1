package nn

import (
	"slices"
	"strings"
	"testing"

	"ebtrain/ddp"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
)

// A Scratch variable begins with its initial value, lasts from run to run, and
// is a constant to differentiation.
func TestScratch(t *testing.T) {
	c := context64(Train)
	var x, grad graph.ID
	c.Scope("chain", func() {
		x = c.Scratch("x", graph.D(3), Ones)
		c.Update("x", c.Scale(c.Scratch("x", graph.D(3), Ones), 2))
	})
	grad = c.Grad(c.Sum(c.Square(x)), c.Var("chain.x", graph.T(graph.F64, 3)))[0]
	c.Output("x", x)
	c.Output("grad", grad)
	vars := ddptest.NewVars()
	out := run(t, c, vars, nil)
	near(t, "x", out["x"], []float64{1, 1, 1}, 0)
	near(t, "gradient", out["grad"], []float64{0, 0, 0}, 0)
	near(t, "x after a run", numbers(t, vars, "chain.x"), []float64{2, 2, 2}, 0)
}

// A Buffer is a constant to differentiation, too: who differentiates by it gets 0.
func TestBuffersAreConstants(t *testing.T) {
	c, vars := context64(Train), ddptest.NewVars()
	x := c.Buffer("x", graph.D(3), Ones)
	c.Output("grad", c.Grad(c.Sum(c.Square(x)), c.Var("x", graph.T(graph.F64, 3)))[0])
	near(t, "gradient", run(t, c, vars, nil)["grad"], []float64{0, 0, 0}, 0)
}

// Replicated leaves Scratch out and nothing else; Params are weights alone, of one
// scope; and variables are found by their roles.
func TestRoles(t *testing.T) {
	c := context64(Train)
	c.Scope("network", func() { c.Weight("w", graph.D(), Ones) }) // its name begins with the other's
	c.Scope("net", func() {
		c.Weight("w", graph.D(), Ones)
		c.Scratch("s", graph.D(), nil)
		c.Buffer("b", graph.D(), nil)
		c.Moment("m", graph.D())
	})
	var names []string
	for _, v := range Replicated(c.Variables()) {
		names = append(names, v.Name)
	}
	if !slices.Equal(names, []string{"network.w", "net.w", "net.b", "net.m"}) || len(c.Variables()) != 5 {
		t.Errorf("replicated are %v of %d variables", names, len(c.Variables()))
	}
	if ps := c.Params("net"); len(ps) != 1 || ps[0].Name != "net.w" {
		t.Errorf("parameters are %v", ps)
	}
	for role, name := range map[Role]string{Buffer: "net.b", Moment: "net.m", Scratch: "net.s"} {
		if got := Named(c.Variables(), role); len(got) != 1 || !got[name] {
			t.Errorf("those with the role %v are %v, want %s", role, got, name)
		}
		if got := RoleBytes(c.Variables(), role); got != 8 {
			t.Errorf("those with the role %v have %d bytes, want 8", role, got)
		}
	}
	c.Scope("net", func() { c.Buffer("s", graph.D(), nil) })
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "net.s is a scratch f64[], and asked for as a buffer f64[]") {
		t.Errorf("a scratch variable asked for as a buffer: %v", err)
	}
}

// A rank that keeps parts of some variables has them with the types of its parts; the
// others, and those of who asks, stay as they are.
func TestOfRank(t *testing.T) {
	whole, part := graph.T(graph.F32, 4, 3), graph.T(graph.F32, 6)
	vars := []Variable{{Name: "a", Type: whole, Role: Moment}, {Name: "b", Type: whole, Role: Moment}}
	got := OfRank(vars, []ddp.Sharded{{Name: "b", Part: part}})
	if len(got) != 2 || got[0].Type != whole || got[1].Type != part || got[1].Name != "b" || got[1].Role != Moment {
		t.Errorf("a rank has %v", got)
	}
	if vars[1].Type != whole {
		t.Errorf("what was asked about has become %v", vars)
	}
}
