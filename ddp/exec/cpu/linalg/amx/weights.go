package amx

import "unsafe"

// weights is the operand B of a correlation, as it lies in memory: column n, channel
// c and tap t are at w[n·columnStep + c·channelStep + t]. Packed, a panel is 16
// columns, a row of 64 bytes two channels of a tap:
//
//	product 0                     product 1
//	tap 0             tap 1       tap 0
//	c0,c1 │ c2,c3 │ … c0,c1 │ …   …
//
// There are whole steps of channels, so tiles belong to one tap.
type weights struct {
	columns, channels, taps int
	columnStep, channelStep int
	places                  []int // of the taps, from a panel's start
	panel                   int   // bytes
	rows                    []int // of a tap, from its start
}

// place gives every tap of some products its place in a panel, and tells the products.
func (w *weights) place(g *image, list []product) {
	w.places = make([]int, w.taps)
	unused := make([]bool, w.taps)
	for t := range unused {
		unused[t] = true
	}
	tapBytes := 2 * lanes * w.channels
	for i := range list {
		p := &list[i]
		p.place(g, w.panel)
		for _, t := range p.Taps {
			w.places[t.Index], unused[t.Index] = w.panel, false
			w.panel += tapBytes
		}
	}
	for t, is := range unused {
		if is { // met by no window: it is put behind the others
			w.places[t] = w.panel
			w.panel += tapBytes
		}
	}
	for c := 0; c < w.channels; c += 2 {
		w.rows = append(w.rows, c/2*rowBytes)
	}
}

// panels is how many there are.
func (w *weights) panels() int { return w.columns / lanes }

// pack writes panels [lo,hi), panel i to i·panel of dst.
func (w *weights) pack(k *kernels, ws *workspace, dst unsafe.Pointer, src []float32, lo, hi int) {
	for i := lo; i < hi; i++ {
		d := unsafe.Add(dst, i*w.panel)
		s := src[i*lanes*w.columnStep:]
		switch {
		case w.taps > 1:
			w.packTaps(k, ws, d, s)
		case w.columnStep == 1:
			k.pairs(unsafe.Add(d, w.places[0]), &w.rows[0], &s[0], &s[w.channelStep], 8*w.channelStep, w.channels/2)
		default:
			w.packRows(k, ws, d, s)
		}
	}
}

// packTaps packs a panel of several taps.
func (w *weights) packTaps(k *kernels, ws *workspace, dst unsafe.Pointer, src []float32) {
	even, odd := &ws.columns[0], &ws.columns[1]
	for c := 0; c < w.channels; c += 2 {
		for t := 0; t < w.taps; t += lanes {
			n := min(lanes, w.taps-t)
			k.transpose.Columns(&even[0], &src[c*w.channelStep+t], w.columnStep, n)
			k.transpose.Columns(&odd[0], &src[(c+1)*w.channelStep+t], w.columnStep, n)
			k.pairs(unsafe.Add(dst, 2*lanes*c), &w.places[t], &even[0], &odd[0], 4*lanes, n)
		}
	}
}

// packRows packs a panel of one tap whose channels are neighbours.
func (w *weights) packRows(k *kernels, ws *workspace, dst unsafe.Pointer, src []float32) {
	columns := &ws.columns[0]
	for c := 0; c < w.channels; c += lanes {
		k.transpose.Columns(&columns[0], &src[c], w.columnStep, lanes)
		k.pairs(unsafe.Add(dst, w.places[0]+2*lanes*c), &w.rows[0], &columns[0], &columns[lanes], 8*lanes, lanes/2)
	}
}
