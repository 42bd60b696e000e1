// Package linalgtest holds libraries of convolutions and products to the reference:
// random problems, numbers for them, what exec/ref makes of those, and how far a
// candidate may be from it. Only tests import it.
package linalgtest

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cuda/linalg"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
)

// maxFlops is the most work of a random problem.
const maxFlops = 4e5

// Conv is a random geometry: strides, unequal paddings, dilations, groups, three
// channels, kernels that cover the image.
func Conv(rnd *rand.Rand, op linalg.ConvOp, t linalg.Types) linalg.Conv {
	for {
		c := graph.Conv{Groups: 1, Window: graph.SquareWindow(1+rnd.IntN(4), 1+rnd.IntN(2), rnd.IntN(3))}
		if rnd.IntN(3) == 0 {
			c.Window = graph.Window{KH: 1 + rnd.IntN(5), KW: 1 + rnd.IntN(5), StrideH: 1 + rnd.IntN(3), StrideW: 1 + rnd.IntN(3),
				PadT: rnd.IntN(4), PadB: rnd.IntN(4), PadL: rnd.IntN(4), PadR: rnd.IntN(4), DilH: 1 + rnd.IntN(2), DilW: 1 + rnd.IntN(2)}
		}
		channels := func() int { return []int{1, 2, 3, 4, 5, 8, 16}[rnd.IntN(7)] }
		p := linalg.Conv{Op: op, T: t, N: 1 + rnd.IntN(3), C: channels(), H: 1 + rnd.IntN(9), W: 1 + rnd.IntN(9), O: channels()}
		switch rnd.IntN(4) {
		case 0:
			c.Groups = []int{2, 3, p.C}[rnd.IntN(3)]
			p.O = c.Groups * (1 + rnd.IntN(3))
			p.C = (p.C + c.Groups - 1) / c.Groups * c.Groups
		case 1: // the kernel covers the image
			p.H, p.W = c.KH, c.KW
			c.PadT, c.PadB, c.PadL, c.PadR, c.DilH, c.DilW = 0, 0, 0, 0, 1, 1
		}
		p.Conv = c
		if p.H+c.PadT+c.PadB < c.DilH*(c.KH-1)+1 || p.W+c.PadL+c.PadR < c.DilW*(c.KW-1)+1 {
			continue
		}
		p.OH, p.OW = c.Out(p.H, p.W)
		if p.Flops() <= maxFlops {
			return p
		}
	}
}

// Product has extents of all sizes, often 1.
func Product(rnd *rand.Rand, t linalg.Types) linalg.Product {
	extent := func() int {
		if rnd.IntN(3) == 0 {
			return 1 + rnd.IntN(2)
		}
		return 1 + rnd.IntN(40)
	}
	for {
		p := linalg.Product{Batch: 1, M: extent(), N: extent(), K: extent(), TransA: rnd.IntN(2) == 0, TransB: rnd.IntN(2) == 0, T: t}
		if rnd.IntN(3) == 0 {
			p.Batch = 1 + rnd.IntN(4)
		}
		if p.Flops() <= maxFlops {
			return p
		}
	}
}

// Numbers are n random numbers that a type can hold.
func Numbers(rnd *rand.Rand, n int64, d graph.DType) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = Round(rnd.NormFloat64(), d)
	}
	return v
}

// Round is the nearest number that a type can hold.
func Round(v float64, d graph.DType) float64 {
	switch d {
	case graph.F32:
		return float64(float32(v))
	case graph.BF16:
		return float64(collective.FromBF16(collective.ToBF16(float32(v))))
	}
	return v
}

// Encode writes numbers as elements of a type.
func Encode(v []float64, d graph.DType) []byte {
	out := make([]byte, len(v)*d.Size())
	for i, x := range v {
		at := out[i*d.Size():]
		switch d {
		case graph.F32:
			binary.NativeEndian.PutUint32(at, math.Float32bits(float32(x)))
		case graph.BF16:
			binary.NativeEndian.PutUint16(at, collective.ToBF16(float32(x)))
		default:
			binary.NativeEndian.PutUint64(at, math.Float64bits(x))
		}
	}
	return out
}

// Decode reads what Encode writes.
func Decode(raw []byte, d graph.DType) []float64 {
	v := make([]float64, len(raw)/d.Size())
	for i := range v {
		at := raw[i*d.Size():]
		switch d {
		case graph.F32:
			v[i] = float64(math.Float32frombits(binary.NativeEndian.Uint32(at)))
		case graph.BF16:
			v[i] = float64(collective.FromBF16(binary.NativeEndian.Uint16(at)))
		default:
			v[i] = math.Float64frombits(binary.NativeEndian.Uint64(at))
		}
	}
	return v
}

// Check compares a result with the reference's. A product may be off by what a sum of
// that many terms in float32 is, and by the rounding of operands that the problem
// allows, both in proportion to the sum of the products' magnitudes; the result is
// rounded to its type.
func Check(p linalg.Problem, a, b, got []float64) error {
	want, err := Reference(p, a, b)
	if err != nil {
		return err
	}
	size, err := Reference(p, magnitudes(a), magnitudes(b))
	if err != nil {
		return err
	}
	t := p.Types()
	for i, w := range want {
		bound := slack(t)*size[i] + unit(t.Dst)*math.Abs(w)
		if d := math.Abs(got[i] - w); !(d <= bound) {
			return fmt.Errorf("%v: element %d is %v, want %v ± %.2g", p, i, got[i], w, bound)
		}
	}
	return nil
}

func magnitudes(v []float64) []float64 {
	m := make([]float64, len(v))
	for i, x := range v {
		m[i] = math.Abs(x)
	}
	return m
}

// unit is the largest relative error of a rounding to a type.
func unit(d graph.DType) float64 {
	switch d {
	case graph.F32:
		return 1.0 / (1 << 24)
	case graph.BF16:
		return 1.0 / (1 << 8)
	}
	return 1.0 / (1 << 52)
}

// slack is the error that a product's terms may have.
func slack(t linalg.Types) float64 {
	s := 16 * unit(graph.F32)
	switch {
	case t.A == graph.F64:
		return 16 * unit(graph.F64)
	case t.A == graph.BF16 && t.B == graph.BF16:
		return s
	case t.Math == linalg.TF32:
		return s + 2.0/(1<<11)
	case t.Math == linalg.BF16:
		return s + 2*unit(graph.BF16)
	}
	return s
}

// Reference is what exec/ref makes of a problem in float64.
func Reference(p linalg.Problem, a, b []float64) ([]float64, error) {
	switch p := p.(type) {
	case linalg.Conv:
		return reference(p, a, b)
	case linalg.Product:
		var out []float64
		for i := range p.Batch {
			one := p
			one.Batch = 1
			x, y := shapes(one)
			z, err := run(graph.MatMul{TransX: p.TransA, TransY: p.TransB}, x, y, a[i*p.M*p.K:][:p.M*p.K], b[i*p.K*p.N:][:p.K*p.N])
			if err != nil {
				return nil, err
			}
			out = append(out, z...)
		}
		return out, nil
	}
	return nil, fmt.Errorf("there is no problem %v", p)
}

func shapes(p linalg.Product) (x, y graph.Shape) {
	x, y = graph.D(p.M, p.K), graph.D(p.K, p.N)
	if p.TransA {
		x = graph.D(p.K, p.M)
	}
	if p.TransB {
		y = graph.D(p.N, p.K)
	}
	return x, y
}

// reference permutes images and weights, as the graph has channels first.
func reference(p linalg.Conv, a, b []float64) ([]float64, error) {
	x, w, y := graph.D(p.N, p.C, p.H, p.W), graph.D(p.O, p.C/p.Groups, p.KH, p.KW), graph.D(p.N, p.O, p.OH, p.OW)
	var op graph.Op
	var sa, sb, sd graph.Shape
	switch p.Op {
	case linalg.Forward:
		op, sa, sb, sd = graph.Conv2D{Conv: p.Conv}, x, w, y
	case linalg.GradX:
		op, sa, sb, sd = graph.Conv2DGradX{Conv: p.Conv, H: p.H, W: p.W}, w, y, x
	default:
		op, sa, sb, sd = graph.Conv2DGradW{Conv: p.Conv}, x, y, w
	}
	out, err := run(op, sa, sb, permuted(a, sa, true), permuted(b, sb, true))
	return permuted(out, sd, false), err
}

// permuted brings the elements of a value of shape s from channels-last order into
// channels-first order, or back.
func permuted(v []float64, s graph.Shape, first bool) []float64 {
	if v == nil {
		return nil
	}
	out := make([]float64, len(v))
	n, c, h, w := s.At(0), s.At(1), s.At(2), s.At(3)
	for i := range n {
		for k := range c {
			for y := range h {
				for x := range w {
					last, at := ((i*h+y)*w+x)*c+k, ((i*c+k)*h+y)*w+x
					if first {
						out[at] = v[last]
					} else {
						out[last] = v[at]
					}
				}
			}
		}
	}
	return out
}

// run computes one op on the reference, in float64.
func run(op graph.Op, sa, sb graph.Shape, a, b []float64) ([]float64, error) {
	g := &graph.Builder{}
	x, y := g.Input("a", graph.Type{DType: graph.F64, Shape: sa}), g.Input("b", graph.Type{DType: graph.F64, Shape: sb})
	g.Output("z", g.Apply(op, x, y)[0])
	made, err := g.Build()
	if err != nil {
		return nil, err
	}
	prog, err := ref.New().Compile(made, exec.Options{Name: "reference"})
	if err != nil {
		return nil, err
	}
	copy(prog.Input("a").F64(), a)
	copy(prog.Input("b").F64(), b)
	if err := exec.Run(context.Background(), prog); err != nil {
		return nil, err
	}
	out := append([]float64(nil), prog.Output("z").F64()...)
	return out, prog.Close()
}

// Columns is what a linalg.Columns says, in loops.
func Columns(c linalg.Columns, src []float64) []float64 {
	n, _ := c.Lens()
	dst := make([]float64, n)
	for row := range c.N * c.I * c.J {
		image, i, j := row/(c.I*c.J), row/c.J%c.I, row%c.J
		for f := range c.KH {
			for e := range c.KW {
				r, s := i*c.StrideH+f*c.DilH-c.PadT, j*c.StrideW+e*c.DilW-c.PadL
				if r < 0 || r >= c.H || s < 0 || s >= c.W {
					continue
				}
				for ch := range c.C {
					k := (f*c.KW+e)*c.C + ch
					if c.First {
						k = (ch*c.KH+f)*c.KW + e
					}
					x, y := ((image*c.H+r)*c.W+s)*c.C+ch, row*c.Width+k
					if c.Back {
						dst[x] += src[y]
					} else {
						dst[y] = src[x]
					}
				}
			}
		}
	}
	return dst
}
