package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/stepbench/flops"
)

// peakChain is how many products a run of the peak program has.
const peakChain = 2

// peakProgram multiplies square matrices: x·y·y. Its entries keep their size.
func peakProgram(backend exec.Backend, size int) (exec.Program, int64, error) {
	b := &graph.Builder{}
	t := graph.T(graph.F32, size, size)
	z, y := b.Input("x", t), b.Input("y", t)
	for range peakChain {
		z = b.MatMul(z, y, false, false)
	}
	b.Output("sum", b.Sum(z))
	g, err := b.Build()
	if err != nil {
		return nil, 0, err
	}
	p, err := backend.Compile(g, exec.Options{Name: "peak"})
	if err != nil {
		return nil, 0, err
	}
	row := make([]float64, size)
	for i, name := range []string{"x", "y"} {
		in := p.Input(name).F32()
		for r := range size {
			philox.Name{Seed: 1, Purpose: philox.Testing, Sub: uint16(i), Sample: uint32(r)}.Normal(row)
			for c, v := range row {
				in[r*size+c] = float32(v / math.Sqrt(float64(size)))
			}
		}
	}
	return p, flops.Of(g).Total(), nil
}

// peak is the best rate of the backend's matrix product while all ranks do the
// same, in GFLOP/s of this rank. It stands for the machine's multiply-add peak,
// which a well-shaped product nearly reaches.
func (b *bench) peak(ctx context.Context, size int) (gflops float64, err error) {
	p, n, err := peakProgram(b.backend, size)
	if err != nil {
		return 0, fmt.Errorf("peak: %w", err)
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := exec.Run(ctx, p); err != nil { // maps memory
		return 0, err
	}
	if err := b.barrier(ctx); err != nil {
		return 0, err
	}
	const atLeast, enough = 3, time.Second
	for i, began := 0, time.Now(); i < atLeast || time.Since(began) < enough; i++ {
		t := time.Now()
		if err := exec.Run(ctx, p); err != nil {
			return 0, err
		}
		gflops = max(gflops, float64(n)/1e9/time.Since(t).Seconds())
	}
	return gflops, nil
}
