package cpu

import (
	"unsafe"

	"ebtrain/ddp/graph"
)

// cast converts between element types, by way of type T.
type cast[T number] struct {
	pool  *pool
	x, y  unsafe.Pointer
	n     int
	read  reader[T]
	write writer[T]
	buf   [][]T // by thread
}

const castBlock = 512

// newCast goes through int64 between integers, float32 where that holds every
// value of both types, and float64 otherwise.
func newCast(p *pool, x, y place) kernel {
	narrow := func(d graph.DType) bool { return d == graph.F32 || d == graph.BF16 || d == graph.U8 }
	switch {
	case !x.dtype.IsFloat() && !y.dtype.IsFloat():
		return castBy[int64](p, x, y)
	case narrow(x.dtype) && narrow(y.dtype) && y.dtype.IsFloat():
		return castBy[float32](p, x, y)
	}
	return castBy[float64](p, x, y)
}

func castBy[T number](p *pool, x, y place) kernel {
	c := &cast[T]{pool: p, x: x.mem, y: y.mem, n: x.dims.Len(), read: readerOf[T](x.dtype), write: writerOf[T](y.dtype)}
	for range p.threads {
		c.buf = append(c.buf, make([]T, castBlock))
	}
	return c
}

func (c *cast[T]) run() error {
	c.pool.run(c, c.n)
	return nil
}

func (c *cast[T]) part(worker, w, n int) {
	for at, hi := c.n*w/n, c.n*(w+1)/n; at < hi; at += castBlock {
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
	write         writer[int64]
	buf           []int64
}

func newIota(op graph.Iota, y place) kernel {
	return &indices{y.mem, y.dims.Len(), y.dims.At(op.Axis), y.dims.Strides().At(op.Axis), writerOf[int64](y.dtype), make([]int64, 1)}
}

func (k *indices) run() error {
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
	write writer[float64]
	buf   []float64
}

func newFill(v float64, y place) kernel {
	f := &fillConst{y.mem, y.dims.Len(), writerOf[float64](y.dtype), make([]float64, min(castBlock, y.dims.Len()))}
	fill(f.buf, v)
	return f
}

func (f *fillConst) run() error {
	for at := 0; at < f.n; at += len(f.buf) {
		f.write(f.y, at, f.buf[:min(len(f.buf), f.n-at)])
	}
	return nil
}
