package moves

import (
	"unsafe"

	"ebtrain/ddp/exec/cpu/array"
	"ebtrain/ddp/exec/cpu/threads"
	"ebtrain/ddp/graph"
)

// cast converts between element types, by way of type T.
type cast[T array.Number] struct {
	jobs  *threads.Jobs
	x, y  unsafe.Pointer
	n     int
	read  array.Reader[T]
	write array.Writer[T]
	buf   [][]T // by thread
}

const castBlock = 512

// newCast goes through int64 between integers, float32 where that holds every
// value of both types, and float64 otherwise.
func newCast(jobs *threads.Jobs, x, y array.Place) Kernel {
	narrow := func(d graph.DType) bool { return d == graph.F32 || d == graph.BF16 || d == graph.U8 }
	switch {
	case !x.DType.IsFloat() && !y.DType.IsFloat():
		return castBy[int64](jobs, x, y)
	case narrow(x.DType) && narrow(y.DType):
		return castBy[float32](jobs, x, y)
	}
	return castBy[float64](jobs, x, y)
}

func castBy[T array.Number](jobs *threads.Jobs, x, y array.Place) Kernel {
	c := &cast[T]{jobs: jobs, x: x.Mem, y: y.Mem, n: x.Len(), read: array.ReaderOf[T](x.DType), write: array.WriterOf[T](y.DType)}
	for range jobs.Threads {
		c.buf = append(c.buf, make([]T, castBlock))
	}
	return c
}

func (c *cast[T]) Run() error {
	c.jobs.Run(c, c.n)
	return nil
}

func (c *cast[T]) Part(worker, w, n int) {
	for at, hi := threads.Part(c.n, w, n); at < hi; at += castBlock {
		b := c.buf[worker][:min(castBlock, hi-at)]
		c.read(b, c.x, at)
		c.write(c.y, at, b)
	}
}

// indices writes the index along an axis.
type indices struct {
	y             unsafe.Pointer
	total         int
	extent, inner int
	write         array.Writer[int64]
	buf           []int64
}

func newIota(op graph.Iota, y array.Place) Kernel {
	return &indices{y.Mem, y.Len(), y.Dims.At(op.Axis), y.Dims.Strides().At(op.Axis), array.WriterOf[int64](y.DType), make([]int64, 1)}
}

func (k *indices) Run() error {
	for i := range k.total {
		k.buf[0] = int64(i / k.inner % k.extent)
		k.write(k.y, i, k.buf)
	}
	return nil
}

// fillConst writes one number everywhere.
type fillConst struct {
	y     unsafe.Pointer
	n     int
	write array.Writer[float64]
	buf   []float64
}

func newFill(v float64, y array.Place) Kernel {
	f := &fillConst{y.Mem, y.Len(), array.WriterOf[float64](y.DType), make([]float64, min(castBlock, y.Len()))}
	array.Fill(f.buf, v)
	return f
}

func (f *fillConst) Run() error {
	for at := 0; at < f.n; at += len(f.buf) {
		f.write(f.y, at, f.buf[:min(len(f.buf), f.n-at)])
	}
	return nil
}
