package enginetest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/graph"
)

// RandomOptions say what Random asks of engines.
type RandomOptions struct {
	Seed     uint64
	Problems int       // at most; 0 for no limit but End
	End      time.Time // when to stop; the zero Time for no limit but Problems
	Tiled    bool      // as RunTiled
	BF16     bool      // as RunBF16
}

// Random holds engines to the contract, as Run does, on random convolutions, each
// in its three ops, and random matrix products. make is called with 1, 2 and 3
// threads. It returns the number of problems.
func Random(t *testing.T, o RandomOptions, make func(threads int) engine.Engine) (problems int) {
	s := suite{thread: newThread(), tiled: o.Tiled, bf16: o.BF16}
	defer s.stop()
	for threads := 1; threads <= 3; threads++ {
		if s.do(func() error { s.engines = append(s.engines, make(threads)); return nil }) != nil {
			t.Fatal("no engine")
		}
		defer func() {
			if err := s.do(s.engines[threads-1].Close); err != nil {
				t.Errorf("close: %v", err)
			}
		}()
	}
	for seed := o.Seed; o.Problems == 0 || problems < o.Problems; seed++ {
		if !o.End.IsZero() && time.Now().After(o.End) {
			break
		}
		problems += s.random(t, seed)
		if t.Failed() {
			t.Logf("the seed is %d; the engine has its own number of threads, which the seed chooses", seed)
			break
		}
	}
	return problems
}

// random checks the problems of a seed with one of the engines, and says how many
// they are.
func (s *suite) random(t *testing.T, seed uint64) int {
	rnd := rand.New(rand.NewPCG(seed, 3))
	one, which := *s, max(0, rnd.IntN(5)-2)
	one.engines = s.engines[which : which+1]
	s = &one
	if rnd.IntN(4) == 0 {
		p := RandomMatMul(rnd)
		p.BF16 = s.bf16
		prepare := func(e engine.Engine) (engine.Kernel, error) { return e.MatMul(p) }
		s.check(t, matMulReference(p), prepare)
		s.spoilt(t, matMulReference(p), prepare)
		if t.Failed() {
			t.Logf("%+v", p)
		}
		return 1
	}
	p := RandomConv(rnd)
	p.BF16 = s.bf16
	for i, op := range []engine.ConvOp{engine.Forward, engine.GradX, engine.GradW} {
		prepare := func(e engine.Engine) (engine.Kernel, error) { return e.Conv(op, p) }
		s.check(t, convReference(op, p), prepare)
		if seed%3 == uint64(i) {
			s.spoilt(t, convReference(op, p), prepare)
		}
		if t.Failed() {
			t.Logf("%v of %+v", op, p)
			return i + 1
		}
	}
	return 3
}

// randomWork is the most work of a random problem.
const randomWork = 3e6

// RandomConv is a geometry of any kind, mostly those that networks are made of.
func RandomConv(rnd *rand.Rand) engine.ConvProblem {
	for {
		conv := graph.Conv{Groups: 1, Window: graph.SquareWindow(1+rnd.IntN(4), 1+rnd.IntN(2), rnd.IntN(3))}
		switch rnd.IntN(4) {
		case 0: // usual, for tiles
			conv = []graph.Conv{graph.NewConv(3, 1, 1), graph.NewConv(4, 2, 1), graph.NewConv(3, 1, rnd.IntN(3)), graph.NewConv(4, 2, rnd.IntN(4))}[rnd.IntN(4)]
		case 1: // everything unequal
			conv.Window = graph.Window{KH: 1 + rnd.IntN(5), KW: 1 + rnd.IntN(5), StrideH: 1 + rnd.IntN(4), StrideW: 1 + rnd.IntN(4),
				PadT: rnd.IntN(4), PadB: rnd.IntN(4), PadL: rnd.IntN(4), PadR: rnd.IntN(4), DilH: 1 + rnd.IntN(2), DilW: 1 + rnd.IntN(2)}
		}
		channels := func() int { return []int{1, 2, 3, 4, 5, 8, 13, 16, 17, 24, 32, 48, 64}[rnd.IntN(13)] }
		c, o := channels(), channels()
		if rnd.IntN(5) == 0 {
			conv.Groups = []int{2, 3, c}[rnd.IntN(3)]
			o = conv.Groups * (1 + rnd.IntN(4))
			c = (c + conv.Groups - 1) / conv.Groups * conv.Groups
		}
		n, h, w := 1+rnd.IntN(4), 1+rnd.IntN(20), 1+rnd.IntN(20)
		if oh, ow := conv.Out(h, w); h+conv.PadT+conv.PadB < conv.DilH*(conv.KH-1)+1 || w+conv.PadL+conv.PadR < conv.DilW*(conv.KW-1)+1 || oh < 1 || ow < 1 {
			continue
		}
		if p := NewConvCase("", n, c, h, w, o, conv).ConvProblem; p.Flops() <= randomWork {
			return p
		}
	}
}

// RandomMatMul has extents of all sizes, often 1.
func RandomMatMul(rnd *rand.Rand) engine.MatMulProblem {
	extent := func() int {
		switch rnd.IntN(4) {
		case 0:
			return 1 + rnd.IntN(3)
		case 1:
			return 1 + rnd.IntN(300)
		}
		return 1 + rnd.IntN(70)
	}
	for {
		p := engine.MatMulProblem{M: extent(), N: extent(), K: extent(), TransA: rnd.IntN(2) == 0, TransB: rnd.IntN(2) == 0}
		if p.Flops() <= randomWork {
			return p
		}
	}
}

// String is what a hunt has done.
func (o RandomOptions) String() string {
	return fmt.Sprintf("from seed %d, tiled %t, bf16 %t", o.Seed, o.Tiled, o.BF16)
}
