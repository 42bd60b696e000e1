package cpu

import (
	"unsafe"

	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
)

// draw fills rows with the elements of philox streams.
type draw struct {
	pool  *pool
	op    graph.Draw
	key   []int64
	y     unsafe.Pointer
	rows  int
	cols  int
	write writer[float64]
	buf   [][4]float64 // by thread
}

func newDraw(p *pool, op graph.Draw, key, y place) kernel {
	rows := y.dims.At(0)
	return &draw{p, op, span[int64](key.mem, 3), y.mem, rows, y.dims.Len() / max(rows, 1), writerOf[float64](y.dtype), make([][4]float64, p.threads)}
}

func (d *draw) run() error {
	d.pool.run(d, d.rows*d.cols*16)
	return nil
}

// part draws a range of the groups of four elements that one philox block
// serves.
func (d *draw) part(worker, w, n int) {
	perRow := (d.cols + 3) / 4
	total := d.rows * perRow
	for g := total * w / n; g < total*(w+1)/n; g++ {
		r, b := g/perRow, g%perRow
		name := philox.Name{Seed: uint64(d.key[0]), Step: uint32(d.key[1]), Sample: uint32(d.key[2] + int64(r)),
			Purpose: d.op.Purpose, Sub: d.op.Sub}
		d.buf[worker] = four(d.op.Dist, name.Block(uint32(b)))
		d.write(d.y, r*d.cols+4*b, d.buf[worker][:min(4, d.cols-4*b)])
	}
}

func four(dist graph.Dist, b [4]uint32) (v [4]float64) {
	switch dist {
	case graph.Normal:
		v[0], v[1] = philox.BoxMuller(b[0], b[1])
		v[2], v[3] = philox.BoxMuller(b[2], b[3])
	case graph.Uniform:
		for i, u := range b {
			v[i] = philox.Float64(u)
		}
	default:
		for i, u := range b {
			v[i] = 2*float64(u&1) - 1
		}
	}
	return v
}
