package moves

import (
	"fmt"

	"ebtrain/ddp/exec/cpu/array"
	"ebtrain/ddp/exec/cpu/threads"
	"ebtrain/ddp/graph"
)

// image is a loop over the pixels of the result y of an op on images in
// channels-last order, shared by rows of y. The adjoints are written as
// gathers, so no two threads add to the same element.
type image[T array.Number] struct {
	jobs *threads.Jobs
	work int
	x, y []T
	aux  []int32 // places of maxima
	in   graph.Shape
	out  graph.Shape // (N, H, W, C)
	row  func(k *image[T], worker, n, i int)
	mix  mixer[T]
	from [][]source[T] // by worker: room for the sources of a pixel

	win  graph.Window
	taps [2][][]tap // along H and W: the sources of each index of y
	runs []run      // of a row of y
}

func (k *image[T]) Run() error {
	if k.out.Len() > 0 {
		k.jobs.Run(k, k.work)
	}
	return nil
}

func (k *image[T]) Part(worker, w, n int) {
	rows := k.out.At(0) * k.out.At(1)
	lo, hi := threads.Part(rows, w, n)
	for r := lo; r < hi; r++ {
		k.row(k, worker, r/k.out.At(1), r%k.out.At(1))
	}
}

// px is the channels of a pixel of x or y.
func (k *image[T]) px(n, i, j int) []T {
	h, w, c := k.in.At(1), k.in.At(2), k.in.At(3)
	return k.x[((n*h+i)*w+j)*c:][:c:c]
}

func (k *image[T]) py(n, i, j int) []T {
	h, w, c := k.out.At(1), k.out.At(2), k.out.At(3)
	return k.y[((n*h+i)*w+j)*c:][:c:c]
}

// newImage makes the kernel of a pool or an enlargement.
func newImage[T array.Float](jobs *threads.Jobs, mix mixer[T], op any, in, out []array.Place) (Kernel, error) {
	x, y := in[0], out[0]
	switch op := op.(type) {
	case graph.SumPool2D:
		h, w := poolTaps(op.Window, x.Dims.At(1), x.Dims.At(2))
		return newLinear(jobs, mix, x, y, h, w), nil
	case graph.SumUnpool2D:
		h, w := poolTaps(op.Window, op.H, op.W)
		return newLinear(jobs, mix, x, y, adjoint(h, op.H), adjoint(w, op.W)), nil
	case graph.MaxPool2D:
		return newMaxPool[T](jobs, op, x, y, out[1]), nil
	case graph.Upsample2D:
		return newLinear(jobs, mix, x, y, upTaps(op.Mode, op.Scale, x.Dims.At(1)), upTaps(op.Mode, op.Scale, x.Dims.At(2))), nil
	case graph.Upsample2DT:
		h, w := upTaps(op.Mode, op.Scale, y.Dims.At(1)), upTaps(op.Mode, op.Scale, y.Dims.At(2))
		return newLinear(jobs, mix, x, y, adjoint(h, y.Dims.At(1)), adjoint(w, y.Dims.At(2))), nil
	}
	return nil, fmt.Errorf("no kernel for %T", op)
}

// linear sets y[n,i,j] = Σ wᵢ·wⱼ·x[n,i',j'] over the taps of i and j.
func linear[T array.Float](k *image[T], worker, n, i int) {
	h, w, c := k.in.At(1), k.in.At(2), k.in.At(3)
	row := k.y[(n*k.out.At(1)+i)*k.out.At(2)*c:]
	for _, r := range k.runs {
		from := k.from[worker][:0]
		for _, a := range k.taps[0][i] {
			x := k.x[(n*h+a.at)*w*c:]
			for _, b := range k.taps[1][r.first] {
				from = append(from, source[T]{x[b.at*c:], T(a.w * b.w)})
			}
		}
		k.mix(row[r.first*c:], from, pixels{count: r.count, n: c, dy: r.step * c, dx: r.move * c})
	}
}

// axpy sets y += w·x.
func axpy[T array.Number](y, x []T, w T) {
	x = x[:len(y)]
	for i, v := range x {
		y[i] += w * v
	}
}

// newLinear is a separable linear map of images.
func newLinear[T array.Float](jobs *threads.Jobs, mix mixer[T], x, y array.Place, h, w [][]tap) Kernel {
	work, most := 0, [2]int{}
	for _, t := range h {
		work += len(t)
		most[0] = max(most[0], len(t))
	}
	for _, t := range w {
		most[1] = max(most[1], len(t))
	}
	from := make([][]source[T], jobs.Threads)
	for i := range from {
		from[i] = make([]source[T], most[0]*most[1])
	}
	return &image[T]{jobs: jobs, x: array.Elems[T](x), y: array.Elems[T](y), in: x.Dims, out: y.Dims,
		row: linear[T], mix: mix, from: from, taps: [2][][]tap{h, w}, runs: runsOf(w), work: 4 * work * y.Dims.At(0) * y.Dims.At(2) * y.Dims.At(3)}
}

// maxPool finds the first maximum of each window and its place.
func maxPool[T array.Float](k *image[T], _, n, i int) {
	c := k.out.At(3)
	w := k.in.At(2)
	for j := range k.out.At(2) {
		y := k.py(n, i, j)
		idx := k.aux[((n*k.out.At(1)+i)*k.out.At(2)+j)*c:][:c:c]
		first := true
		for p := range k.win.KH {
			h := i*k.win.StrideH + p - k.win.PadT
			if h < 0 || h >= k.in.At(1) {
				continue
			}
			for q := range k.win.KW {
				v := j*k.win.StrideW + q - k.win.PadL
				if v < 0 || v >= w {
					continue
				}
				better(y, idx, k.px(n, h, v), int32(h*w+v), first)
				first = false
			}
		}
	}
}

// better replaces maxima that x exceeds, or that a NaN of it does away with.
func better[T array.Float](y []T, idx []int32, x []T, at int32, first bool) {
	x, idx = x[:len(y)], idx[:len(y)]
	for c, v := range x {
		if m := y[c]; first || v > m || v != v && m == m { //nolint:staticcheck // NaN is what differs from itself
			y[c], idx[c] = v, at
		}
	}
}

func newMaxPool[T array.Float](jobs *threads.Jobs, op graph.MaxPool2D, x, y, idx array.Place) Kernel {
	return &image[T]{jobs: jobs, x: array.Elems[T](x), y: array.Elems[T](y), aux: array.Elems[int32](idx),
		in: x.Dims, out: y.Dims, row: maxPool[T], win: op.Window, work: 2 * y.Len() * op.KH * op.KW}
}
