package cuda

import (
	"math/rand/v2"
	"strings"
	"testing"

	"ebtrain/collective/cuda/cudatest"
	"ebtrain/ddp/exec/cuda/choose"
	"ebtrain/ddp/exec/cuda/linalg"
	"ebtrain/ddp/exec/cuda/linalg/linalgtest"
	"ebtrain/ddp/graph"
)

// TestColumns: convolutions of few channels as products of the columns that this
// package's kernels make.
func TestColumns(t *testing.T) {
	m := cudatest.Use(t)
	t.Cleanup(m.Clean)
	b := open(t, Config{Transport: TransportStaged})
	c := choose.New(choose.Options{Device: b.dev, Stream: b.lanes[0], Products: b.libs.products, Cast: b.cast, Move: b.move, Say: func(s string) { t.Error(s) }})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	few := 0
	for seed := range uint64(150) {
		rnd := rand.New(rand.NewPCG(seed, 11))
		floats := []graph.DType{graph.F32, graph.BF16}
		p := linalgtest.Conv(rnd, linalg.ConvOp(1+seed%3), linalg.Types{Dst: floats[rnd.IntN(2)], A: floats[rnd.IntN(2)], B: floats[rnd.IntN(2)], Math: linalg.Math(rnd.IntN(3))})
		t32 := linalg.Types{Dst: graph.F32, A: graph.F32, B: graph.F32}
		if _, ok := p.Columns(t32); !ok {
			continue
		}
		few++
		list, err := c.Choose([]linalg.Problem{p})
		if err != nil {
			t.Fatal(err)
		}
		if n := list[0].String(); !strings.HasPrefix(n, "columns ") {
			t.Errorf("%v is done by %s", p, n)
		}
		_, na, nb := p.Lens()
		x, y := linalgtest.Numbers(rnd, na, p.T.A), linalgtest.Numbers(rnd, nb, p.T.B)
		if err := linalgtest.Check(p, x, y, linalgtest.Compute(t, b.lanes[0], list[0], p, x, y)); err != nil {
			t.Errorf("%v: %v", list[0], err)
		}
	}
	if few < 30 {
		t.Errorf("only %d convolutions are products of columns", few)
	}
}
