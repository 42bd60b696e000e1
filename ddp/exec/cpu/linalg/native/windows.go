package native

import (
	"ebtrain/ddp/exec/cpu/linalg/lower"
	"ebtrain/ddp/exec/cpu/linalg/micro"
)

// strip is a run of taps of a window that are neighbours in an image row: it
// covers count pixels from (dh, dw) on, relative to the window's corner.
type strip struct {
	dh, dw, count int
	k             int // its first row of B
	offset        int // from the window's corner in memory
}

// windows is the operand A of a convolution: a row is what the window at a pixel of the
// product's grid sees: strip by strip, the channels of one group of each pixel, zeros
// outside the image.
type windows struct {
	lower.Product
	h, w, c      int // the image
	first, group int // the group's channels are first … first+group-1
	strips       []strip
	k            int // length of a row
	minH, maxH   int // of the strips' pixels
	minW, maxW   int
}

func newWindows(q lower.Product, h, w, c, first, group int) *windows {
	v := &windows{Product: q, h: h, w: w, c: c, first: first, group: group}
	for _, t := range q.Taps {
		v.addTap(t.DH, t.DW)
	}
	return v
}

func (v *windows) place(ws *workspace, _ *micro.Kernel, data []float32, m, rows, k0, k1 int) {
	p := v.Pixel(m)
	for r := range rows {
		v.gather(ws.a[r*rowStride:r*rowStride+k1-k0], data, p, k0)
		p = v.Next(p)
	}
	ws.tile.A, ws.tile.RS, ws.tile.KS = ws.a, rowStride, 1
}

// inside says whether the whole window at p is inside the image.
func (v *windows) inside(p lower.Pixel) bool {
	h, w := p.I*v.StepH, p.J*v.StepW
	return h+v.minH >= 0 && h+v.maxH < v.h && w+v.minW >= 0 && w+v.maxW < v.w
}

// gather writes elements k0 … k0+len(dst)-1 of the row at p to dst.
func (v *windows) gather(dst, data []float32, p lower.Pixel, k0 int) {
	if !v.inside(p) {
		v.gatherClipped(dst, data, p, k0)
		return
	}
	corner := ((p.N*v.h+p.I*v.StepH)*v.w+p.J*v.StepW)*v.c + v.first
	for s := range v.strips {
		st := &v.strips[s]
		lo, hi := max(k0-st.k, 0), min(k0+len(dst)-st.k, st.count*v.group)
		if lo < hi {
			copy(dst[st.k+lo-k0:st.k+hi-k0], data[corner+st.offset+lo:])
		}
	}
}

// gatherClipped is gather for windows that reach beyond the image.
func (v *windows) gatherClipped(dst, data []float32, p lower.Pixel, k0 int) {
	for s := range v.strips {
		st := &v.strips[s]
		// Of the strip's elements, [lo,hi) are wanted.
		lo, hi := max(k0-st.k, 0), min(k0+len(dst)-st.k, st.count*v.group)
		if lo >= hi {
			continue
		}
		d := dst[st.k+lo-k0 : st.k+hi-k0]
		ih, iw := p.I*v.StepH+st.dh, p.J*v.StepW+st.dw
		if ih < 0 || ih >= v.h {
			clear(d)
			continue
		}
		// Of those, [from,to) are inside the image.
		from, to := max(-iw*v.group, lo), min((v.w-iw)*v.group, hi)
		if from >= to {
			clear(d)
			continue
		}
		clear(d[:from-lo])
		clear(d[to-lo:])
		src := ((p.N*v.h+ih)*v.w+iw)*v.c + v.first
		copy(d[from-lo:to-lo], data[src+from:src+to])
	}
}

// addTap appends a tap to the strips; taps come sorted by (dh, dw). Channels of
// neighbouring pixels are contiguous only if the group is all of them.
func (v *windows) addTap(dh, dw int) {
	if v.k == 0 {
		v.minH, v.maxH, v.minW, v.maxW = dh, dh, dw, dw
	}
	v.minH, v.maxH, v.minW, v.maxW = min(v.minH, dh), max(v.maxH, dh), min(v.minW, dw), max(v.maxW, dw)
	if n := len(v.strips); n > 0 && v.group == v.c {
		if last := &v.strips[n-1]; last.dh == dh && last.dw+last.count == dw {
			last.count++
			v.k += v.group
			return
		}
	}
	v.strips = append(v.strips, strip{dh, dw, 1, v.k, (dh*v.w + dw) * v.c})
	v.k += v.group
}
