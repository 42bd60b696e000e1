package moves

import (
	"unsafe"

	"ebtrain/ddp/exec/cpu/array"
	"ebtrain/ddp/exec/cpu/threads"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
)

// drawn is how many elements of a row are drawn at a time.
const drawn = 256

// draw fills rows with the elements of philox streams.
type draw struct {
	jobs  *threads.Jobs
	op    graph.Draw
	key   []int64
	y     unsafe.Pointer
	rows  int
	cols  int
	write array.Writer[float64]
	buf   [][drawn]float64 // by thread

	single func(n philox.Name, dst []float32, block uint32) // where the elements are float32s, if there is such a function
}

func newDraw(jobs *threads.Jobs, op graph.Draw, key, y array.Place) Kernel {
	rows := y.Dims.At(0)
	d := &draw{jobs: jobs, op: op, key: array.Span[int64](key.Mem, 3), y: y.Mem, rows: rows, cols: y.Len() / max(rows, 1),
		write: array.WriterOf[float64](y.DType), buf: make([][drawn]float64, jobs.Threads)}
	if y.DType == graph.F32 {
		d.single = singles[op.Dist]
	}
	return d
}

func (d *draw) Run() error {
	d.jobs.Run(d, d.rows*d.cols*8)
	return nil
}

// Part draws some pieces of the rows: several short rows, or a part of a long one.
func (d *draw) Part(worker, w, n int) {
	if d.op.Dist != graph.Rademacher && d.cols > 0 && d.cols < drawn/8 {
		d.short(worker, w, n)
		return
	}
	perRow := (d.cols + drawn - 1) / drawn
	lo, hi := threads.Part(d.rows*perRow, w, n)
	for g := lo; g < hi; g++ {
		r, c := g/perRow, g%perRow*drawn
		if d.single != nil {
			at := r*d.cols + c
			d.single(d.name(r), array.Span[float32](d.y, at+min(drawn, d.cols-c))[at:], uint32(c/4))
			continue
		}
		buf := d.buf[worker][:min(drawn, d.cols-c)]
		fillFrom(d.op.Dist, d.name(r), buf, uint32(c/4))
		d.write(d.y, r*d.cols+c, buf)
	}
}

// short draws some of the rows, as many at a time as fit.
func (d *draw) short(worker, w, n int) {
	r, end := threads.Part(d.rows, w, n)
	for most := drawn / d.cols / 8 * 8; r < end; r += most {
		buf := d.buf[worker][:min(most, end-r)*d.cols]
		if d.op.Dist == graph.Normal {
			d.name(r).NormalRows(buf, d.cols)
		} else {
			d.name(r).UniformRows(buf, d.cols)
		}
		d.write(d.y, r*d.cols, buf)
	}
}

// singles draw float32s.
var singles = map[graph.Dist]func(n philox.Name, dst []float32, block uint32){
	graph.Normal: philox.Name.NormalFrom32, graph.Uniform: philox.Name.UniformFrom32,
}

// name is the stream of row r.
func (d *draw) name(r int) philox.Name {
	return philox.Name{Seed: uint64(d.key[0]), Step: uint32(d.key[1]), Sample: uint32(d.key[2] + int64(r)),
		Purpose: d.op.Purpose, Sub: d.op.Sub}
}

// fillFrom draws elements 4·block, 4·block + 1, … of a stream.
func fillFrom(dist graph.Dist, n philox.Name, dst []float64, block uint32) {
	switch dist {
	case graph.Normal:
		n.NormalFrom(dst, block)
	case graph.Uniform:
		n.UniformFrom(dst, block)
	default:
		for i := 0; i < len(dst); i, block = i+4, block+1 {
			for j, w := range n.Block(block) {
				if i+j < len(dst) {
					dst[i+j] = 2*float64(w&1) - 1
				}
			}
		}
	}
}
