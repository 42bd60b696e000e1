package native

import (
	"slices"
	"testing"
	"unsafe"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/linalg/micro"
	"ebtrain/ddp/graph"
)

// TestThreadsAndBits: results do not depend on the number of threads, of convolutions that
// are summed up in parts, in bands and a few pixels at a time, and of products.
func TestThreadsAndBits(t *testing.T) {
	at := func(p []float32) unsafe.Pointer { return unsafe.Pointer(&p[0]) }
	bits := func(n int, prepare func(e *Engine) (engine.Kernel, error), dst, a, b int) []float32 {
		e := New(n)
		k, err := prepare(e)
		if err != nil {
			t.Fatal(err)
		}
		d, x, y, s := micro.Aligned(dst), micro.Aligned(a), micro.Aligned(b), micro.Aligned(k.Scratch()/4+1)
		for i := range max(a, b) {
			x[i%a], y[i%b] = float32(i%37)/7-2, float32(i%41)/11-1
		}
		if err := k.Run(at(d), at(x), at(y), at(s)); err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		return d
	}
	same := func(what any, prepare func(e *Engine) (engine.Kernel, error), dst, a, b int) {
		want := bits(1, prepare, dst, a, b)
		for n := 2; n <= 5; n++ {
			if got := bits(n, prepare, dst, a, b); !slices.Equal(got, want) {
				t.Errorf("%v: bits of %d threads are not those of one", what, n)
			}
		}
	}
	for _, channels := range [][2]int{{3, 32}, {8, 8}, {48, 80}} {
		p := engine.ConvProblem{Conv: graph.NewConv(3, 1, 1), N: 9, C: channels[0], H: 32, W: 32, O: channels[1], OH: 32, OW: 32}
		for _, op := range []engine.ConvOp{engine.Forward, engine.GradX, engine.GradW} {
			s := convSizes(op, p)
			same(p, func(e *Engine) (engine.Kernel, error) { return e.Conv(op, p) }, s.dst, s.a, s.b)
		}
	}
	m := engine.MatMulProblem{M: 203, N: 177, K: 700, TransB: true}
	same(m, func(e *Engine) (engine.Kernel, error) { return e.MatMul(m) }, m.M*m.N, m.M*m.K, m.K*m.N)
}

// TestScratchOfProducts: B in panels is memory that a product asks for, unless it reads all
// of B where it lies.
func TestScratchOfProducts(t *testing.T) {
	for _, mk := range micro.All() {
		e := newEngine(1, mk)
		whole := 2 * mk.NR // columns, so that every kernel reads whole vectors
		for _, tt := range []struct {
			p      engine.MatMulProblem
			panels bool
		}{
			{engine.MatMulProblem{M: 4, K: 8, N: whole}, false},
			{engine.MatMulProblem{M: fewTiles * mk.MR, K: 8, N: whole}, false},
			{engine.MatMulProblem{M: fewTiles*mk.MR + 1, K: 8, N: whole}, true},
			{engine.MatMulProblem{M: 100, K: 8, N: whole, TransB: true}, true},
			{engine.MatMulProblem{M: 4, K: 8, N: whole + 1}, !mk.Masks},
		} {
			k, err := e.MatMul(tt.p)
			if err != nil {
				t.Fatal(err)
			}
			want := 0
			if tt.panels {
				want = 4 * ((tt.p.N+mk.NR-1)/mk.NR*mk.NR*tt.p.K + 15) &^ 63
			}
			if got := k.Scratch(); got != want {
				t.Errorf("%s, %+v: %d bytes, want %d", mk.Name, tt.p, got, want)
			}
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}
