package cpu

import (
	"unsafe"

	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
)

// drawn is how many elements of a row are drawn at a time.
const drawn = 256

// draw fills rows with the elements of philox streams.
type draw struct {
	pool  *pool
	op    graph.Draw
	key   []int64
	y     unsafe.Pointer
	rows  int
	cols  int
	write writer[float64]
	buf   [][drawn]float64 // by thread
}

func newDraw(p *pool, op graph.Draw, key, y place) kernel {
	rows := y.dims.At(0)
	return &draw{p, op, span[int64](key.mem, 3), y.mem, rows, y.dims.Len() / max(rows, 1), writerOf[float64](y.dtype), make([][drawn]float64, p.threads)}
}

func (d *draw) run() error {
	d.pool.run(d, d.rows*d.cols*8)
	return nil
}

// part draws some pieces of the rows.
func (d *draw) part(worker, w, n int) {
	perRow := (d.cols + drawn - 1) / drawn
	total := d.rows * perRow
	for g := total * w / n; g < total*(w+1)/n; g++ {
		r, c := g/perRow, g%perRow*drawn
		name := philox.Name{Seed: uint64(d.key[0]), Step: uint32(d.key[1]), Sample: uint32(d.key[2] + int64(r)),
			Purpose: d.op.Purpose, Sub: d.op.Sub}
		buf := d.buf[worker][:min(drawn, d.cols-c)]
		fillFrom(d.op.Dist, name, buf, uint32(c/4))
		d.write(d.y, r*d.cols+c, buf)
	}
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
