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

// TestFew: convolutions of few channels by this package's kernels for them, where there is
// nothing else; they decline all that they cannot do.
func TestFew(t *testing.T) {
	m := cudatest.Use(t)
	t.Cleanup(m.Clean)
	b := open(t, Config{Transport: TransportStaged})
	for seed := range uint64(12) {
		rnd := rand.New(rand.NewPCG(seed, 12))
		p := linalg.Conv{Op: linalg.ConvOp(1 + seed%3), Conv: graph.NewConv(3, 1, 1), N: 2, C: 3, H: 6 + rnd.IntN(8), W: 5 + rnd.IntN(40), O: []int{48, 40, 64, 23}[rnd.IntN(4)]}
		if rnd.IntN(2) == 0 {
			p.C, p.O = p.O, p.C
		}
		p.OH, p.OW = p.H, p.W
		p.T = linalg.Types{Dst: graph.BF16, A: graph.BF16, B: graph.BF16, Math: linalg.BF16}
		switch {
		case p.Op == linalg.GradW:
			p.T.Dst = graph.F32
		case rnd.IntN(2) == 0:
		case p.Op == linalg.GradX:
			p.T.A = graph.F32
		default:
			p.T.B = graph.F32
		}
		k := chosen(t, b, p)
		_, na, nb := p.Lens()
		x, y := linalgtest.Numbers(rnd, na, p.T.A), linalgtest.Numbers(rnd, nb, p.T.B)
		if err := linalgtest.Check(p, x, y, linalgtest.Compute(t, b.lanes[0], k, p, x, y)); err != nil {
			t.Errorf("%v: %v", k, err)
		}
	}
}

// chosen is the kernel for a problem where there is none but ours for few channels.
func chosen(t *testing.T, b *Backend, p linalg.Problem) choose.Kernel {
	t.Helper()
	c := choose.New(choose.Options{Device: b.dev, Stream: b.lanes[0], Few: b.few, Say: func(s string) { t.Error(s) }})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	list, err := c.Choose([]linalg.Problem{p})
	if err != nil {
		t.Fatal(err)
	}
	if n := list[0].String(); !strings.HasPrefix(n, "few ") {
		t.Errorf("%v is done by %s", p, n)
	}
	return list[0]
}

// TestFewDeclined: what has no kernel for few channels.
func TestFewDeclined(t *testing.T) {
	m := cudatest.Use(t)
	t.Cleanup(m.Clean)
	b := open(t, Config{Transport: TransportStaged})
	good := linalg.Conv{Op: linalg.Forward, Conv: graph.NewConv(3, 1, 1), N: 1, C: 3, H: 8, W: 8, O: 16, OH: 8, OW: 8,
		T: linalg.Types{Dst: graph.BF16, A: graph.BF16, B: graph.F32, Math: linalg.BF16}}
	if k, err := b.few(good); k == nil || err != nil {
		t.Fatalf("%v: got %v, %v", good, k, err)
	}
	for name, change := range map[string]func(p *linalg.Conv){
		"weights that may not be rounded": func(p *linalg.Conv) { p.T.Math = linalg.TF32 },
		"an image in float32":             func(p *linalg.Conv) { p.T.A = graph.F32 },
		"a result in float32":             func(p *linalg.Conv) { p.T.Dst = graph.F32 },
		"a stride":                        func(p *linalg.Conv) { p.StrideH, p.OH = 2, 4 },
		"a dilation":                      func(p *linalg.Conv) { p.DilW, p.OW = 2, 6 },
		"groups":                          func(p *linalg.Conv) { p.C, p.Groups = 4, 2 },
		"many channels":                   func(p *linalg.Conv) { p.C = 9 },
		"too many channels":               func(p *linalg.Conv) { p.O = 300 },
		"a large kernel":                  func(p *linalg.Conv) { p.Conv, p.OH, p.OW = graph.NewConv(5, 1, 1), 6, 6 },
		"as many channels":                func(p *linalg.Conv) { p.O = 3 },
	} {
		p := good
		change(&p)
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		if k, err := b.few(p); k != nil || err != nil {
			t.Errorf("%s: got %v, %v", name, k, err)
		}
	}
	if k, err := b.few(linalg.Product{Batch: 1, M: 8, N: 8, K: 8, T: good.T}); k != nil || err != nil {
		t.Errorf("a product: got %v, %v", k, err)
	}
}

// TestFewOld: a device that does not multiply bfloat16 has none.
func TestFewOld(t *testing.T) {
	m := cudatest.Use(t)
	t.Cleanup(m.Clean)
	m.Set("CAPABILITY", "75")
	b := open(t, Config{Transport: TransportStaged})
	p := linalg.Conv{Op: linalg.Forward, Conv: graph.NewConv(3, 1, 1), N: 1, C: 3, H: 8, W: 8, O: 16, OH: 8, OW: 8,
		T: linalg.Types{Dst: graph.BF16, A: graph.BF16, B: graph.BF16, Math: linalg.BF16}}
	if k, err := b.few(p); k != nil || err != nil {
		t.Errorf("got %v, %v", k, err)
	}
}
