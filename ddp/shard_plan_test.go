package ddp_test

import (
	"slices"
	"strings"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// twoNetworks is a sharded step of two networks whose weights are gathered late: what it
// begins with needs none of them, then it reads those of the second, then of the first.
func twoNetworks(t *testing.T) *plan.Plan {
	t.Helper()
	b, typ := &graph.Builder{}, graph.T(graph.F32, 256, 256) // travels alone
	x := b.Input("x", graph.T(graph.F32, 4, 256))
	state, may, ws := map[string]bool{}, map[string]bool{}, []graph.ID{}
	for _, name := range []string{"first", "second"} {
		ws = append(ws, b.Var(name, typ))
		may[name], state[name+".m"] = true, true
	}
	y := b.MatMul(x, b.MatMul(x, x, true, false), false, false)
	y = b.MatMul(b.Tanh(b.MatMul(y, ws[1], false, false)), ws[0], false, false)
	loss := b.Mean(b.Square(y))
	for i, g := range ddp.Sync(b, 2, "net", b.Grad(loss, ws...)) {
		m := b.Var([]string{"first.m", "second.m"}[i], typ)
		next := b.Add(b.Scale(m, 0.9), g)
		b.Assign(m, next)
		b.Assign(ws[i], b.Sub(ws[i], next))
	}
	b.Output("loss", b.AllReduce(collective.Mean, "loss", loss)[0])
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	g, _, err = ddp.ShardOptimizer(g, ddp.Sharding{World: 2, State: state, Late: may})
	if err != nil {
		t.Fatal(err)
	}
	p := plan.New(g, plan.Options{Name: "step", World: 2})
	p.Allocate()
	return p
}

// A step starts its gathers before it computes anything, waits for each where the network
// is first used, and has no memory for them but that of the variables.
func TestGathersTravel(t *testing.T) {
	p := twoNetworks(t)
	var order []string
	for _, s := range p.Steps {
		switch op := s.Op.(type) {
		case plan.Start:
			if op.Kind != collective.AllGather {
				break
			}
			space, k, _ := p.View(op.Bucket)
			if space != plan.Var {
				t.Fatalf("weights are gathered in the %v, want in their variable", space)
			}
			order = append(order, "start "+p.Vars[k].Name)
		case plan.Wait:
			if space, k, _ := p.View(s.Out[0]); op.Kind == collective.AllGather {
				if space != plan.Var {
					t.Fatalf("gathered weights are in the %v", space)
				}
				order = append(order, "wait "+p.Vars[k].Name)
			}
		case graph.MatMul:
			order = append(order, "product")
		}
	}
	want := []string{"start second", "start first", "product", "product", "wait second", "product", "wait first", "product"}
	if len(order) < len(want) || !slices.Equal(order[:len(want)], want) || slices.ContainsFunc(order[len(want):], func(s string) bool { return strings.HasPrefix(s, "wait") }) {
		var text strings.Builder
		_ = p.Dump(&text) // a string never fails to take a write
		t.Errorf("the step does %q, want it to begin with %q:\n%s", order, want, &text)
	}
}
