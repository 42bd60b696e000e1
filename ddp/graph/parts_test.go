package graph_test

import (
	"fmt"
	"math"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
)

const partRanks = 3

// partsOrders is the graph of T = Σ_r L_r, a loss through all ops on vectors that
// three ranks share, and of its derivatives: g1 of T, g2 of Σ sin(g1)·x, g3 of Σ
// cos(g2)·x, each with respect to the rank's own x.
func partsOrders(t *testing.T) *graph.Graph {
	t.Helper()
	var b graph.Builder
	x := b.Input("x", graph.T(graph.F64, partRanks))
	place := b.Input("place", graph.T(graph.F64, partRanks))
	mean := b.ReduceScatter(collective.Mean, partRanks, "mean", b.Mul(b.Sin(x), place))
	sum := b.ReduceScatter(collective.Sum, partRanks, "sum", b.Square(x))
	all := b.AllGather(partRanks, "all", b.Mul(b.Tanh(mean), b.Add(sum, b.Part(partRanks, x))))
	loss := b.Sum(b.Mul(b.Add(all, b.Placed(partRanks, b.Cos(mean))), b.Exp(x)))
	b.Output("L1", loss)
	for order := 1; order <= 3; order++ {
		g := b.Grad(loss, x)[0]
		b.Output(fmt.Sprint("g", order), g)
		loss = b.Sum(b.Mul(b.Sin(g), x))
		b.Output(fmt.Sprint("L", order+1), loss)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestPartsAcrossRanks holds the derivatives of the ops on vectors that ranks share,
// of orders 1 to 3, to finite differences of T.
func TestPartsAcrossRanks(t *testing.T) {
	g := partsOrders(t)
	xs := [3][]float64{{0.3, -0.8, 0.2}, {1.1, 0.4, -0.3}, {-0.5, 0.9, 0.6}}
	places := [3][]float64{{0.7, 0.1, -0.4}, {0.2, -0.6, 0.5}, {0.9, 0.3, 0.8}}
	at := func(r, i int, h float64) (total map[string]float64) {
		moved := [3][]float64{append([]float64(nil), xs[0]...), append([]float64(nil), xs[1]...), append([]float64(nil), xs[2]...)}
		moved[r][i] += h
		total = map[string]float64{}
		for _, out := range runVectors(t, g, moved, places) {
			for name, v := range out {
				total[name] += v[0]
			}
		}
		return total
	}
	base := runVectors(t, g, xs, places)
	const h = 1e-3
	for r := range xs {
		for i := range xs[r] {
			up, down, up2, down2 := at(r, i, h), at(r, i, -h), at(r, i, 2*h), at(r, i, -2*h)
			for order := 1; order <= 3; order++ {
				l := fmt.Sprint("L", order)
				fd := (8*(up[l]-down[l]) - up2[l] + down2[l]) / (12 * h)
				got := base[r][fmt.Sprint("g", order)][i]
				if !(math.Abs(got) >= 1e-3 && math.Abs(got-fd) <= 1e-7*(1+math.Abs(fd))) {
					t.Errorf("order %d, rank %d, element %d: got %.12g, finite differences give %.12g", order, r, i, got, fd)
				}
			}
		}
	}
}

// TestPartsOfRanks: what each of three ranks gets.
func TestPartsOfRanks(t *testing.T) {
	var b graph.Builder
	x := b.Input("x", graph.T(graph.F64, partRanks))
	for name, id := range map[string]graph.ID{
		"sum": b.ReduceScatter(collective.Sum, partRanks, "s", x), "mean": b.ReduceScatter(collective.Mean, partRanks, "m", x),
		"part": b.Part(partRanks, x), "placed": b.Placed(partRanks, b.Part(partRanks, x)),
		"gathered": b.AllGather(partRanks, "g", b.Part(partRanks, x)),
	} {
		b.Output(name, id)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	out := runVectors(t, g, [3][]float64{{1, 2, 3}, {10, 20, 30}, {200, 400, 600}}, [3][]float64{})
	for name, want := range map[string][3]string{
		"sum": {"[211]", "[422]", "[633]"}, "mean": {"[70.33333333333333]", "[140.66666666666666]", "[211]"},
		"part": {"[1]", "[20]", "[600]"}, "placed": {"[1 0 0]", "[0 20 0]", "[0 0 600]"},
		"gathered": {"[1 20 600]", "[1 20 600]", "[1 20 600]"},
	} {
		for r := range want {
			if got := fmt.Sprint(out[r][name]); got != want[r] {
				t.Errorf("%s: rank %d has %s, want %s", name, r, got, want[r])
			}
		}
	}
}

// A graph for another number of ranks is refused, with a sentence, whichever op it is.
func TestPartsOfOtherWorlds(t *testing.T) {
	for _, op := range []graph.Op{
		graph.Part{World: 2}, graph.Placed{World: 2}, graph.AllGather{World: 2, Label: "a"}, graph.ReduceScatter{Op: collective.Sum, World: 2, Label: "a"},
	} {
		var b graph.Builder
		b.Output("y", b.Apply(op, b.Input("x", graph.T(graph.F64, 4)))[0])
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf(`program "p": %s is for 2 ranks, and there are 1: build the graph for as many`, op)
		if _, err := ref.New().Compile(g, exec.Options{Name: "p"}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// The collectives of a derivative are named for those of the function, with a prime for each
// order; what moves nothing has no label.
func TestLabels(t *testing.T) {
	var b graph.Builder
	x := b.Input("x", graph.T(graph.F64, 4))
	y := b.AllReduce(collective.Mean, "reduce", b.Exp(x))[0]
	y = b.AllGather(2, "gather", b.Exp(b.ReduceScatter(collective.Sum, 2, "scatter", b.Exp(b.Mul(x, y)))))
	y = b.Add(b.Exp(y), b.Placed(2, b.Part(2, x)))
	first := b.Grad(y, x)[0]
	b.Output("second", b.Grad(first, x)[0])
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, n := range g.Nodes() {
		switch label, is := graph.LabelOf(n.Op); n.Op.(type) {
		case graph.AllReduce, graph.AllGather, graph.ReduceScatter:
			if found[label] = true; !is || label == "" {
				t.Errorf("%s has the label %q, %v", n.Op, label, is)
			}
		default:
			if is || label != "" {
				t.Errorf("%s has the label %q, %v", n.Op, label, is)
			}
		}
	}
	for _, label := range []string{"reduce", "scatter", "gather"} {
		for _, want := range []string{label, label + "'", label + "''"} {
			if !found[want] {
				t.Errorf("no collective is called %s: %v", want, found)
			}
		}
	}
}

// runVectors runs g on three ranks.
func runVectors(t *testing.T, g *graph.Graph, xs, places [3][]float64) (out [3]map[string][]float64) {
	t.Helper()
	errs := make(chan error)
	for r, comm := range exectest.NewGroup(partRanks) {
		go func() {
			var err error
			if out[r], err = runRank(g, comm, xs[r], places[r]); err != nil {
				comm.Abort(err)
			}
			errs <- err
		}()
	}
	for range out {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	return out
}
