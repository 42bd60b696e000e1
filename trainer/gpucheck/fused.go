package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cuda"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
)

// fusedCases are groups over long arrays, as steps have them: each builds one over
// variables x and y of (rows, cols).
var fusedCases = []struct {
	name  string
	build func(b *graph.Builder, x, y graph.ID)
}{
	{"pointwise, one read, one written", func(b *graph.Builder, x, y graph.ID) { b.Assign(y, b.Tanh(b.Shift(x, 1))) }},
	{"pointwise, two read, two written", func(b *graph.Builder, x, y graph.ID) {
		m := b.Add(b.Scale(x, 0.9), b.Scale(y, 0.1))
		b.Assign(x, m)
		b.Assign(y, b.Sigmoid(m))
	}},
	{"sum over rows", func(b *graph.Builder, x, _ graph.ID) { b.Output("sum", b.Sum(b.Mul(x, x), 0)) }},
	{"sum over columns", func(b *graph.Builder, x, _ graph.ID) { b.Output("sum", b.Sum(b.Mul(x, x), 1)) }},
	{"sum of all", func(b *graph.Builder, x, _ graph.ID) { b.Output("sum", b.Sum(b.Mul(x, x), 0, 1)) }},
}

// sumCases are sums of numbers and of their squares, over arrays as steps have them.
var sumCases = []struct {
	name  string
	shape graph.Shape
	axes  []int
}{
	{"a batch norm of 256 images of 32x32, 96 channels", graph.D(256*32*32, 96), []int{0}},
	{"a batch norm of 64 images of 16x16, 192 channels", graph.D(64*16*16, 192), []int{0}},
	{"a batch norm of 64 images of 4x4, 384 channels", graph.D(64*4*4, 384), []int{0}},
	{"a linear layer of 64 samples, 512 channels", graph.D(64, 512), []int{0}},
	{"a spectral norm of 64x1024 weights", graph.D(64, 1024), []int{0, 1}},
	{"a spectral norm of 512x8192 weights", graph.D(512, 8192), []int{0, 1}},
}

// fused times groups over arrays of so many bytes, beside the rate of copies.
func fused(ctx context.Context, r *report, m *rates, bytes int) (err error) {
	for _, c := range fusedCases {
		err = errors.Join(err, r.do(ctx, "d", fmt.Sprintf("%s, arrays of %d MiB", c.name, bytes>>20), func() (string, map[string]any, error) {
			const cols = 1024
			rate, _, err := fusedRate(ctx, c.build, graph.Type{DType: graph.F32, Shape: graph.D(bytes/4/cols, cols)})
			numbers := map[string]any{"read_and_written_tb_s": rate / 1e12}
			if m.bytes > 0 {
				numbers["share_of_copy"] = rate / m.bytes
			}
			return "", numbers, err
		}))
	}
	for _, c := range sumCases {
		err = errors.Join(err, r.do(ctx, "d", "sums of "+c.name, func() (string, map[string]any, error) {
			t := graph.Type{DType: graph.F32, Shape: c.shape}
			rate, took, err := fusedRate(ctx, func(b *graph.Builder, x, _ graph.ID) { sumAndSquares(b, x, c.axes...) }, t)
			return "", map[string]any{"read_and_written_tb_s": rate / 1e12, "us": took.Seconds() * 1e6}, err
		}))
	}
	return err
}

func sumAndSquares(b *graph.Builder, x graph.ID, axes ...int) {
	b.Output("sum", b.Sum(x, axes...))
	b.Output("squares", b.Sum(b.Mul(x, x), axes...))
}

// fusedGraph is what build makes of variables x and y, which fusedVars sets.
func fusedGraph(build func(b *graph.Builder, x, y graph.ID), t graph.Type) (*graph.Graph, error) {
	var b graph.Builder
	build(&b, b.Var("x", t), b.Var("y", t))
	return b.Build()
}

func fusedVars(be exec.Backend, x *exec.Tensor) (exec.Vars, error) {
	vars := be.NewVars()
	return vars, errors.Join(vars.Set("x", x), vars.Set("y", x))
}

// sums is an output as the CPU makes it, and what it makes of the numbers' magnitudes, of which
// roundings are shares.
type sums struct {
	name           string
	of, magnitudes []float32
}

// fusedWant is a graph's outputs, all of which are sums.
func fusedWant(ctx context.Context, g *graph.Graph, t graph.Type) (want []sums, err error) {
	if len(g.Outputs()) == 0 {
		return nil, nil
	}
	x := normal(t)
	of, err := fusedOutputs(ctx, g, x)
	if err != nil {
		return nil, err
	}
	for i, v := range x.F32() {
		x.F32()[i] = max(v, -v)
	}
	magnitudes, err := fusedOutputs(ctx, g, x)
	if err != nil {
		return nil, err
	}
	for i, o := range g.Outputs() {
		want = append(want, sums{o.Name, of[i], magnitudes[i]})
	}
	return want, nil
}

// fusedOutputs is what the CPU makes of x.
func fusedOutputs(ctx context.Context, g *graph.Graph, x *exec.Tensor) (all [][]float32, err error) {
	be, err := openCPU()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, be.Close()) }()
	vars, err := fusedVars(be, x)
	if err != nil {
		return nil, err
	}
	p, err := be.Compile(g, exec.Options{Name: "fused", Vars: vars})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := exec.Run(ctx, p); err != nil {
		return nil, err
	}
	for _, o := range g.Outputs() {
		all = append(all, slices.Clone(p.Output(o.Name).F32()))
	}
	return all, nil
}

// right says whether an output is right to roundings.
func (s sums) right(got []float32) error {
	for i, w := range s.of {
		if v := got[i]; !(math.Abs(float64(v-w)) <= 1e-4*float64(s.magnitudes[i])) {
			return fmt.Errorf("%s %d of %d is %v, and the CPU's is %v", s.name, i, len(s.of), v, w)
		}
	}
	return nil
}

// allRight says whether all outputs of a program are.
func allRight(want []sums, output func(name string) []float32) (err error) {
	for _, s := range want {
		err = errors.Join(err, s.right(output(s.name)))
	}
	return err
}

// fusedRate is how many bytes a second a program's kernels read and write, in the median
// run, and what that takes; the device's clock tells, kernel by kernel. Each run's sums are
// held to the CPU's.
func fusedRate(ctx context.Context, build func(b *graph.Builder, x, y graph.ID), t graph.Type) (rate float64, _ time.Duration, err error) {
	const runs = 11
	be, err := gpu(cuda.Config{})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, be.Close()) }()
	vars, err := fusedVars(be, normal(t))
	if err != nil {
		return 0, 0, err
	}
	g, err := fusedGraph(build, t)
	if err != nil {
		return 0, 0, err
	}
	want, err := fusedWant(ctx, g, t)
	if err != nil {
		return 0, 0, err
	}
	var trace func(exec.Event)
	p, err := be.Compile(g, exec.Options{Name: "fused", Vars: vars, Trace: func() func(exec.Event) { return trace }})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := exec.Run(ctx, p); err != nil { // loads the kernels
		return 0, 0, err
	}
	var moved int64
	var took []time.Duration
	for range runs {
		var sum time.Duration
		moved = 0
		trace = func(e exec.Event) { moved, sum = moved+e.Bytes, sum+e.Time }
		if err := exec.Run(ctx, p); err != nil {
			return 0, 0, err
		}
		if err := allRight(want, func(name string) []float32 { return p.Output(name).F32() }); err != nil {
			return 0, 0, err
		}
		took = append(took, sum)
	}
	mid := time.Duration(median(took) * 1e6)
	return float64(moved) / mid.Seconds(), mid, nil
}

// normal is a tensor of float32 normal numbers, of which each mebibyte is the same. (Zeros
// may be faster.)
func normal(t graph.Type) *exec.Tensor {
	all := exec.NewTensor(t)
	x := all.F32()
	tile := make([]float64, min(len(x), 1<<18))
	philox.Name{Seed: 1, Purpose: philox.Testing}.Normal(tile)
	for i := range x {
		x[i] = float32(tile[i%len(tile)])
	}
	return all
}
