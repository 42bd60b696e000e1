package graph

import (
	"slices"
	"strings"
	"testing"
)

// built is the graph of b, which must be right.
func built(t *testing.T, b *Builder) *Graph {
	t.Helper()
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// text is the dump of g.
func text(t *testing.T, g *Graph) string {
	t.Helper()
	var s strings.Builder
	if err := g.Dump(&s); err != nil {
		t.Fatal(err)
	}
	return s.String()
}

// What is added to a graph goes on from its values; the graph itself, and one made of it
// without additions, stay as they were.
func TestExtend(t *testing.T) {
	var b Builder
	x, v := b.Input("x", T(F64, 3)), b.Var("v", T(F64, 3))
	b.Scope("net", func() { b.Output("y", b.Mul(x, v)) })
	b.Assign(v, b.Add(v, x))
	g := built(t, &b)
	before := text(t, g)
	if got := text(t, built(t, g.Extend())); got != before {
		t.Errorf("extended by nothing it is\n%s\nand was\n%s", got, before)
	}
	e := g.Extend()
	n := e.NumNodes()
	if got := e.Mul(e.Input("x", T(F64, 3)), e.Var("v", T(F64, 3))); got != g.Outputs()[0].ID || e.NumNodes() != n {
		t.Errorf("the same product again is value %d after %d nodes, want %d after %d", got, e.NumNodes(), g.Outputs()[0].ID, n)
	}
	e.Output("z", e.Neg(g.Assigns()[0].Value))
	more := built(t, e)
	if len(more.Outputs()) != 2 || len(more.Assigns()) != 1 || len(more.Nodes()) != n+1 {
		t.Errorf("extended by an output it is\n%s", text(t, more))
	}
	if got := text(t, g); got != before {
		t.Errorf("the graph has become\n%s\nand was\n%s", got, before)
	}
}

// Names are taken, outputs declared and variables assigned as they were.
func TestExtendKeepsRules(t *testing.T) {
	var b Builder
	v := b.Var("v", T(F64))
	b.Output("y", v)
	b.Assign(v, b.Neg(v))
	g := built(t, &b)
	for want, add := range map[string]func(e *Builder){
		"the name is taken": func(e *Builder) { e.Input("v", T(F64)) },
		"declared twice":    func(e *Builder) { e.Output("y", v) },
		"assigned twice":    func(e *Builder) { e.Assign(v, v) },
	} {
		e := g.Extend()
		add(e)
		if _, err := e.Build(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	empty := built(t, &Builder{}).Extend()
	empty.Output("one", empty.Ones(T(F64)))
	built(t, empty)
}

// A dummy that the graph has left behind is none of its results, and becomes none.
func TestExtendKnowsDummies(t *testing.T) {
	var b Builder
	x := b.Input("x", T(F64))
	b.Output("d", b.Pushforward(b.Square(x), x, b.Input("dx", T(F64))))
	b.Output("later", b.Input("later", T(F64)))
	g := built(t, &b)
	e := g.Extend()
	built(t, e)
	dummy := slices.IndexFunc(g.Nodes(), func(n Node) bool { l, ok := n.Op.(Leaf); return ok && l.Kind == Dummy })
	e.Output("dummy", g.Nodes()[dummy].Out[0])
	if _, err := e.Build(); err == nil || !strings.Contains(err.Error(), "not linear in the cotangent") {
		t.Errorf("%v, want that a result depends on a dummy", err)
	}
}
