package main

import (
	"context"
	"math"
	"strings"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
)

// TestBounds: losses of the first step and norms of its gradients are held to bounds, and so is
// what comes of them in later steps.
func TestBounds(t *testing.T) {
	names := []string{"loss", "grad_norm"}
	want := [][]float64{{1, 3}, {1, 3}, {1, 3}}
	for _, c := range []struct {
		step, column int
		off          float64
		says         string
	}{
		{0, 0, 0.01, ""}, {0, 1, 0.2, ""}, {2, 0, 0.1, ""},
		{0, 0, 0.05, "the first losses are apart by 0.025"},
		{0, 1, 1, "grad_norm is apart by 0.25"}, // gradients of half their size
		{2, 0, -1, "loss is apart by 0.5"},
		{1, 1, math.NaN(), "grad_norm is apart by +Inf"},
	} {
		got := [][]float64{{1, 3}, {1, 3}, {1, 3}}
		got[c.step][c.column] += c.off
		numbers, err := bounds{0.02, 0.1}.judge(want, got, names)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) || numbers["three_steps"] == nil {
			t.Errorf("column %d of step %d is off by %v: got %v, %v", c.column, c.step, c.off, numbers, err)
		}
	}
}

// scaled is the reference, whose outputs are multiplied.
type scaled struct {
	exec.Backend
	by float64
}

type scaledProgram struct {
	exec.Program
	g  *graph.Graph
	by float64
}

func (b scaled) Compile(g *graph.Graph, o exec.Options) (exec.Program, error) {
	p, err := b.Backend.Compile(g, o)
	return scaledProgram{p, g, b.by}, err
}

func (p scaledProgram) Wait(ctx context.Context) error {
	err := p.Program.Wait(ctx)
	for _, o := range p.g.Outputs() {
		t := p.Output(o.Name)
		for i := range t.Type.Shape.Len() {
			t.SetAt(i, t.At(i)*p.by)
		}
	}
	return err
}

// TestStrayed: gradients that are off by what bfloat16 rounds are right, and those that are half
// as large as they should be are not.
func TestStrayed(t *testing.T) {
	const epsilon = 1.0 / 128
	for by, ok := range map[float64]bool{1 + epsilon: true, 0.5: false, -1: false} {
		if numbers, err := strayed(scaled{ref.New(), by}, epsilon); (err == nil) != ok {
			t.Errorf("times %v: got %v, %v", by, numbers, err)
		}
	}
}
