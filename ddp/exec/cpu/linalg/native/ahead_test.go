package native

import (
	"testing"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/linalg/engine/enginetest"
	"ebtrain/ddp/exec/cpu/threads"
	"ebtrain/ddp/graph"
)

// other is an engine that says what it is asked.
type other struct {
	engine.Engine
	asked int
}

func (o *other) Conv(engine.ConvOp, engine.ConvProblem) (engine.Kernel, error) {
	o.asked++
	return nil, nil
}

func (o *other) MatMul(engine.MatMulProblem) (engine.Kernel, error) {
	o.asked++
	return nil, nil
}

// TestAhead: convolutions of few channels and all but big products do not go to the other
// engine, unless they may be done in bfloat16.
func TestAhead(t *testing.T) {
	team := threads.NewTeam(1)
	defer team.Close()
	rest := &other{}
	e := Ahead(team, rest)
	if !On(team).kernel.Masks {
		if e != engine.Engine(rest) {
			t.Error("without AVX-512 an engine stands in front of the other")
		}
		t.Skip("this processor has no AVX-512, with which alone something goes ahead of the other engine; that nothing does was tried, and TestConformance holds this engine to the suite")
	}
	if _, ok := e.(*ahead); !ok {
		t.Fatal("nothing stands in front of the other engine")
	}
	conv := func(c, o, stride int, bf16 bool) engine.ConvProblem {
		return engine.ConvProblem{Conv: graph.NewConv(3, stride, 1),
			N: 8, C: c, H: 16, W: 16, O: o, OH: 16 / stride, OW: 16 / stride, BF16: bf16}
	}
	for _, c := range []struct {
		op    engine.ConvOp
		p     engine.ConvProblem
		other bool
	}{
		{engine.Forward, conv(3, 32, 1, false), false},
		{engine.Forward, conv(3, 32, 1, true), true},
		{engine.Forward, conv(3, 64, 1, false), true},
		{engine.Forward, conv(16, 16, 1, false), true},
		{engine.GradX, conv(8, 16, 1, false), false},
		{engine.GradX, conv(8, 16, 2, false), true},
		{engine.GradW, conv(3, 64, 1, false), false},
		{engine.GradW, conv(16, 64, 1, false), true},
	} {
		rest.asked = 0
		k, err := e.Conv(c.op, c.p)
		if err != nil {
			t.Fatal(err)
		}
		if other := rest.asked > 0; other != c.other || other != (k == nil) {
			t.Errorf("%v of %v: left to the other engine is %t, want %t", c.op, c.p, other, c.other)
		}
	}
	for _, c := range []struct {
		p     engine.MatMulProblem
		other bool
	}{
		{engine.MatMulProblem{M: 32, N: 256, K: 64}, false},
		{engine.MatMulProblem{M: 32, N: 256, K: 64, BF16: true}, true},
		{engine.MatMulProblem{M: 100, N: 400, K: 560}, false},
		{engine.MatMulProblem{M: 1024, N: 1024, K: 1024}, true},
	} {
		rest.asked = 0
		if _, err := e.MatMul(c.p); err != nil || rest.asked > 0 != c.other {
			t.Errorf("%v: left to the other engine is %t (%v), want %t", c.p, rest.asked > 0, err, c.other)
		}
	}
}

// TestAheadConformance: whichever engine does a problem.
func TestAheadConformance(t *testing.T) {
	enginetest.Run(t, func(n int) engine.Engine {
		e := New(n)
		return Ahead(e.own, e)
	})
}
