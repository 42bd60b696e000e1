package hypercheck

import (
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"ebtrain/collective/host"
	"ebtrain/ddp/ddptest"
	"ebtrain/trainer/algo"
)

// two is a gradient of two networks whose variables lie between one another's. The norms
// are 5 and 1e-9.
func two() gradient {
	return gradient{upper: -2, names: []string{"net.a", "small.c", "net.b"},
		of: map[string][]float64{"net.a": {1.8, 2.4}, "small.c": {1e-9}, "net.b": {0, 4}}}
}

// Differences are of all of a network's variables, relative to its gradient or to a part
// of the whole one, whatever their signs; each comparison has its column.
func TestDifferencesOfNetworks(t *testing.T) {
	table := newTable(two(), 2)
	if len(table.Networks) != 2 || table.Networks[0].Name != "net" || table.Networks[0].Size != 4 || table.Networks[1].Size != 1 {
		t.Fatalf("networks %+v", table.Networks)
	}
	for i, norm := range []float64{5, 1e-9} {
		if err := ddptest.Near([]float64{table.Networks[i].Norm}, []float64{norm}, 1e-12); err != nil {
			t.Error(err)
		}
	}
	for inner, far := range map[algo.Inner]float64{algo.AllReduced: 1, algo.NoAdjoint: 2, algo.Local: 3} {
		g := two()
		g.upper -= 0.2 * far
		g.of = map[string][]float64{"net.a": {1.8 + 0.3*far, 2.4}, "small.c": {1e-9 - 1e-6*far}, "net.b": {0, 4 - 0.4*far}}
		table.compare(inner, g, two())
	}
	n, small := table.Networks[0], table.Networks[1]
	got := []float64{table.UpperDiff, n.Ranks, n.NoAdjoint, n.Local, small.Ranks, small.NoAdjoint, small.Local}
	if err := ddptest.Near(got, []float64{0.1, 0.1, 0.2, 0.3, 0.02, 0.04, 0.06}, 1e-9); err != nil {
		t.Error(err)
	}
}

// What one rank finds, all have.
func TestMerge(t *testing.T) {
	comms, err := host.NewLocal(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for rank, comm := range comms {
		wg.Go(func() {
			r := float64(rank)
			n := Network{Ranks: r, NoAdjoint: 2 * (1 - r), Local: 3 * r, judged: []judged{{r * float64(Wrong), 4 * r, 5 * r}}}
			table := &Table{UpperDiff: 1 - r, Networks: []Network{n}}
			if err := table.merge(t.Context(), comm); err != nil {
				t.Error(err)
				comm.Abort(err)
			}
			n = table.Networks[0]
			got := []float64{table.UpperDiff, n.Ranks, n.NoAdjoint, n.Local, float64(n.Verdict), n.Differences, n.Allowed}
			if want := []float64{1, 1, 2, 3, float64(Wrong), 4, 5}; !slices.Equal(got, want) {
				t.Errorf("rank %d has %v, want %v", rank, got, want)
			}
		})
	}
	wg.Wait()
	for _, comm := range comms {
		if err := comm.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A network that differs between ranks is wrong, though central differences agree with it.
func TestVerdictOfRanks(t *testing.T) {
	for far, want := range map[float64]string{Tolerance: "ok", 2 * Tolerance: "WRONG", math.NaN(): "WRONG"} {
		var b strings.Builder
		table := Table{Ranks: 2, Networks: []Network{{Name: "net", Ranks: far}}}
		if err := table.Write(&b); err != nil || !strings.HasSuffix(strings.TrimSpace(b.String()), want) {
			t.Errorf("%v: %v, want %s in\n%s", far, err, want, b.String())
		}
		if (table.Err() == nil) != (want == "ok") {
			t.Errorf("%v: %v", far, table.Err())
		}
	}
}
