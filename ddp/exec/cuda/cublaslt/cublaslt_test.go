//go:build cgo

package cublaslt_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ebtrain/collective/cuda"
	"ebtrain/collective/cuda/cudatest"
	"ebtrain/ddp/exec/cuda/cublaslt"
	"ebtrain/ddp/exec/cuda/linalg"
	"ebtrain/ddp/exec/cuda/linalg/linalgtest"
	"ebtrain/ddp/graph"
)

const workspace = 1 << 20

var _ linalg.Library = (*cublaslt.Library)(nil)

// open is cuBLASLt on the machine of doubles, closed when the test ends, with nothing
// left.
func open(t *testing.T, workspace int64) (*cublaslt.Library, *cuda.Stream) {
	t.Helper()
	m := cudatest.Use(t)
	dev, s := linalgtest.Device(t, m.Clean)
	l, err := cublaslt.New(dev, workspace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l, s
}

func types(dst, ab graph.DType, m linalg.Math) linalg.Types {
	return linalg.Types{Dst: dst, A: ab, B: ab, Math: m}
}

var allTypes = []linalg.Types{
	types(graph.F32, graph.F32, linalg.Full),
	types(graph.F32, graph.F32, linalg.TF32),
	types(graph.BF16, graph.BF16, linalg.BF16),
	types(graph.F32, graph.BF16, linalg.Full),
	types(graph.F64, graph.F64, linalg.Full),
}

// TestProducts: every candidate for random products computes what the reference does,
// restored from its text, too.
func TestProducts(t *testing.T) {
	l, s := open(t, workspace)
	for seed := range uint64(150) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		p := linalgtest.Product(rnd, allTypes[seed%uint64(len(allTypes))])
		list, err := l.Prepare(p, 8)
		if err != nil {
			t.Fatal(err)
		}
		// The double has one more, which sums in place.
		if len(list) != 2 || !strings.Contains(list[0].String(), "algorithm 21") || !strings.Contains(list[1].String(), "algorithm 22") {
			t.Fatalf("%v: got %v, want algorithms 21 and 22", p, list)
		}
		_, na, nb := p.Lens()
		a, b := linalgtest.Numbers(rnd, na, p.T.A), linalgtest.Numbers(rnd, nb, p.T.B)
		for _, k := range list {
			got := linalgtest.Compute(t, s, k, p, a, b)
			if err := linalgtest.Check(p, a, b, got); err != nil {
				t.Fatalf("%v: %v", k, err)
			}
			again, err := l.Restore(p, k.Saved())
			if err != nil {
				t.Fatal(err)
			}
			if again.String() != k.String() || again.Workspace() != k.Workspace() {
				t.Errorf("%v of %d bytes became %v of %d", k, k.Workspace(), again, again.Workspace())
			}
			if same := linalgtest.Compute(t, s, again, p, a, b); !slices.Equal(same, got) {
				t.Errorf("%v: %v has other bits when it is restored", p, k)
			}
			closeAll(t, k, again)
		}
	}
}

func closeAll(t *testing.T, list ...linalg.Candidate) {
	t.Helper()
	for _, k := range list {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
}

func small(t linalg.Types) linalg.Product {
	return linalg.Product{Batch: 1, M: 3, N: 4, K: 5, TransB: true, T: t}
}

// TestMath: float32 is rounded to TF32 where a problem allows it, and only there: with
// numbers that TF32 cannot hold both show.
func TestMath(t *testing.T) {
	l, s := open(t, workspace)
	for m, want := range map[linalg.Math]float64{linalg.Full: 1 + 1.0/(1<<20), linalg.TF32: 1, linalg.BF16: 1} {
		p := linalg.Product{Batch: 1, M: 1, N: 1, K: 1, T: types(graph.F32, graph.F32, m)}
		list, err := l.Prepare(p, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := linalgtest.Compute(t, s, list[0], p, []float64{1 + 1.0/(1<<20)}, []float64{1}); got[0] != want {
			t.Errorf("%v: got %v, want %v", m, got[0], want)
		}
		closeAll(t, list...)
	}
}

// TestSilentAlgorithm: an algorithm that does not tell a part of itself is taken.
func TestSilentAlgorithm(t *testing.T) {
	m := cudatest.Use(t)
	dev, s := linalgtest.Device(t, m.Clean)
	l, err := cublaslt.New(dev, workspace)
	if err != nil {
		t.Fatal(err)
	}
	m.Fail("cublasLtMatmulAlgoConfigGetAttribute", 2, 15) // its tile
	m.Fail("cublasLtMatmulAlgoConfigGetAttribute", 5, 7)  // how it sums
	p := small(types(graph.F64, graph.F64, linalg.Full))
	list, err := l.Prepare(p, 1)
	if err != nil || len(list) != 1 || list[0].String() != "algorithm 21, tile unknown, stages 15, split 3" {
		t.Fatalf("got %v, %v", list, err)
	}
	a, b := make([]float64, p.M*p.K), make([]float64, p.K*p.N)
	if err := linalgtest.Check(p, a, b, linalgtest.Compute(t, s, list[0], p, a, b)); err != nil {
		t.Error(err)
	}
	closeAll(t, list...)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestLimits: what cuBLASLt is not asked for or has not is no candidate, and no error.
func TestLimits(t *testing.T) {
	l, _ := open(t, 300)
	list, err := l.Prepare(small(types(graph.F32, graph.F32, linalg.Full)), 8)
	if err != nil || len(list) != 1 || !strings.Contains(list[0].String(), "algorithm 22") {
		t.Errorf("with 300 bytes of workspace: %v, %v, want algorithm 22 alone", list, err)
	}
	closeAll(t, list...)
	big := small(types(graph.F32, graph.F32, linalg.Full))
	big.M = 1 << 31
	for name, p := range map[string]linalg.Problem{
		"mixed operands":  small(linalg.Types{Dst: graph.F32, A: graph.BF16, B: graph.F32}),
		"a narrow result": small(types(graph.BF16, graph.F32, linalg.BF16)),
		"a huge extent":   big,
		"a convolution":   linalg.Conv{Op: linalg.Forward, Conv: graph.NewConv(1, 1, 0), N: 1, C: 1, H: 1, W: 1, O: 1, OH: 1, OW: 1},
	} {
		if list, err := l.Prepare(p, 8); err != nil || len(list) > 0 {
			t.Errorf("%s: %v, %v", name, list, err)
		}
	}
	t.Setenv("EBDOUBLE_CUBLASLT_LACKS", "all")
	if list, err := l.Prepare(small(types(graph.F32, graph.F32, linalg.Full)), 8); err != nil || len(list) > 0 {
		t.Errorf("where there is none: %v, %v", list, err)
	}
}

// TestEachCallFails: each call of cuBLASLt that a preparation, a run and a closing make
// fails once. It is one sentence that names the call, and nothing is left.
func TestEachCallFails(t *testing.T) {
	for _, f := range []string{
		"cublasLtCreate", "cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute", "cublasLtMatrixLayoutCreate", "cublasLtMatrixLayoutSetAttribute",
		"cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmulAlgoCheck",
		"cublasLtMatmulAlgoConfigGetAttribute", "cublasLtMatmul",
	} {
		t.Run(f, func(t *testing.T) {
			n := 1
			for ; n < 3000; n++ {
				m := cudatest.Use(t) // no fault is left
				m.Fail(f, n, 13)
				err := live(t)
				if err == nil {
					break
				}
				m.Clean()
				var e *cublaslt.Error
				if !errors.As(err, &e) || e.Call != f || e.Status != 13 || strings.Contains(err.Error(), "\n") {
					t.Fatalf("call %d: got %q", n, err)
				}
			}
			if n == 1 {
				t.Error("no call was made to fail")
			}
		})
	}
}

// live is the life of a library, up to its first error; what was made is closed.
func live(t *testing.T) (err error) {
	t.Helper()
	dev, err := cuda.OpenDevice(0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := dev.NewStream("test", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if e := errors.Join(s.Close(), dev.Close()); e != nil {
			t.Error(e)
		}
	}()
	l, err := cublaslt.New(dev, workspace)
	if err != nil {
		return err
	}
	defer func() {
		if e := l.Close(); e != nil {
			t.Error(e)
		}
	}()
	p := small(types(graph.F32, graph.F32, linalg.Full))
	p.Batch = 2
	list, err := l.Prepare(p, 8)
	if err != nil {
		return err
	}
	defer closeAll(t, list...)
	again, err := l.Restore(p, list[0].Saved())
	if err != nil {
		return err
	}
	defer closeAll(t, again)
	_, na, nb := p.Lens()
	x := linalgtest.NewArrays(t, s, again, p, make([]float64, na), make([]float64, nb))
	defer x.Free()
	if err := again.Enqueue(s, x.Places, x.Work); err != nil {
		return err
	}
	x.Result()
	return nil
}

// TestRestoreRefuses: what is no choice, and an algorithm of another problem.
func TestRestoreRefuses(t *testing.T) {
	l, _ := open(t, workspace)
	p := small(types(graph.F32, graph.F32, linalg.Full))
	list, err := l.Prepare(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, list...)
	other := p
	other.M = 7
	for saved, want := range map[string]string{
		`{`:                     "the choice of an algorithm",
		`{"algo":"abc"}`:        "the choice of an algorithm",
		`{"algo":"00"}`:         "want 64 bytes",
		string(list[0].Saved()): "cublasLtMatmulAlgoCheck",
	} {
		if k, err := l.Restore(other, json.RawMessage(saved)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v, want an error about %q", saved, k, err, want)
		}
	}
}

func TestName(t *testing.T) {
	l, _ := open(t, workspace)
	if l.Name() != "cuBLASLt 13.1.0" {
		t.Errorf("got %q", l.Name())
	}
}
