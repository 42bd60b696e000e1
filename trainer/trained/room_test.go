package trained

import (
	"strings"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/device"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// small is a backend of little memory.
type small struct {
	exec.Backend
	bytes int64
}

func (s small) Memory() (device.Store, error) {
	return device.Store{Bytes: s.bytes, Of: "this machine"}, nil
}

const side = 64

var square = graph.T(graph.F32, side, side)

// products needs two products of x at a time besides the result.
func products(ctx *nn.Context, x graph.ID) graph.ID {
	return ctx.MatMul(ctx.MatMul(x, x, false, false), ctx.MatMul(x, x, false, true), false, false)
}

// Programs whose values each fit, and which do not fit, are a sentence that names the flag.
func TestProgramsThatDoNotFit(t *testing.T) {
	r, _ := load(t, makeRun(t, board(t, 1), 1), Newest)
	backend, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := backend.Close(); err != nil {
			t.Error(err)
		}
	}()
	r.Vars = backend.NewVars()

	x := chain.Var("products", square)
	ctx := nn.NewContext(nn.Eval, 1)
	ctx.Assign(ctx.Var(x.Name, x.Type), products(ctx, ctx.Var(x.Name, x.Type)))
	g, err := ctx.Commit()
	if err != nil {
		t.Fatal(err)
	}
	plan := chain.Plan{Vars: []nn.Variable{x}, Stages: []chain.Stage{{Name: "draw", Graph: g, Times: 1}}, Out: x.Name}
	look := func(int) (*graph.Graph, error) {
		ctx := nn.NewContext(nn.Eval, 1)
		ctx.Output(algo.OutputScore, products(ctx, ctx.Input(algo.InputImages, square)))
		return ctx.Commit()
	}
	one := int64(square.Bytes())
	for _, tt := range []struct {
		bytes       int64
		draw, looks string
	}{
		{64 * one, "", ""},
		{4*one - one/4, `what is drawn does not fit into the memory of this machine: `, ""}, // the variables are there twice
		{2*one + one/4, `what is drawn does not fit into the memory of this machine: `, `the program "looks" does not fit into the memory of this machine: `},
		{2 * one, `what is drawn does not fit into the memory of this machine: `, `the program "looks" does not fit into the memory of this machine: `}, // no room besides the variables
		{one, "one value of the program, ", "one value of the program, "},
	} {
		b := small{backend, tt.bytes}
		_, err := r.Draw(t.Context(), b, Draw{Plan: plan, Smaller: "--n"})
		names(t, err, tt.draw, "choose a smaller --n")
		l := NewLook(r, b, "looks", look, 1)
		_, err = l.At(t.Context(), make([]float32, side*side), side, 0)
		names(t, err, tt.looks, "choose a smaller --batch")
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

func names(t *testing.T, err error, want, advice string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("with room: %v", err)
	case want != "" && (err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), ": "+advice)):
		t.Errorf("got %v, want %s…: %s", err, want, advice)
	}
}
