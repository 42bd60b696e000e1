package native

import (
	"unsafe"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/threads"
)

// direct is Forward or GradX by bands of the image (type band): B is packed first, then
// each thread takes a band of an image at a time.
type direct struct {
	*products           // as they are packed
	bands     []band    // by product
	joined    []product // as they are computed
	b         []int     // where their B begins in scratch
	private   int       // floats of a thread's band
	all       int       // bands of all images and products
	band      func(chunk int, ws *workspace)
}

// newDirect is nil where the convolution has to gather its windows.
func newDirect(e *Engine, op engine.ConvOp, p engine.ConvProblem) *direct {
	list, mk := convProducts(op, p), &e.kernel
	k := &direct{}
	for i := range list {
		mr, _ := list[i].shape(mk)
		b, ok := newBand(list[i].a.(*windows))
		if !ok || b.GridW < narrowGrid || list[i].m <= fewTiles*mr {
			return nil
		}
		q := list[i]
		if n := joins(mk, &b, &q); n > 1 {
			b.join(n, &q)
		}
		k.bands, k.joined = append(k.bands, b), append(k.joined, q)
		k.private = max(k.private, b.floats(mk.Step))
		k.all += b.Images * b.parts
	}
	k.products = newProducts(e, list, convSizes(op, p))
	at := 0
	for i := range list {
		k.b = append(k.b, at)
		at += list[i].inPanels(mk)
		if k.bands[i].pixels > 1 {
			k.b[i] = k.scratch
			k.scratch += k.joined[i].inPanels(mk)
		}
	}
	k.scratch += e.pool.Threads() * k.private
	k.products.pack, k.band = k.packPart, k.bandPart
	return k
}

// narrowGrid is the width of an image below which rows of micro-tiles are better gathered
// from more than one of its rows.
const narrowGrid = 8

func (k *direct) Run(dst, a, b, scratch unsafe.Pointer) error {
	if k.e == nil || k.e.pool == nil {
		return ErrClosed
	}
	k.o = k.sizes.bind(dst, a, b, scratch, k.Scratch())
	k.e.pool.Do(k.alone, k.chunks, k.pack)
	k.e.pool.Do(k.alone, k.all, k.band)
	k.o = operands{}
	return nil
}

// packPart packs panels of B.
func (k *direct) packPart(chunk int, ws *workspace) {
	mk, buf := &k.e.kernel, k.o.scratch
	for i := range k.list {
		b, p := &k.bands[i], &k.list[i]
		_, panels := p.tiles(mk)
		lo, hi := threads.Part(panels, chunk, k.chunks)
		p.packPanels(mk, ws, buf, k.o.b, lo, hi)
		if b.pixels > 1 && lo < hi { // then there is one panel
			b.spread(k.o.scratch[k.b[i]:][:k.joined[i].inPanels(mk)], buf, p.k, p.n, mk.Narrow)
		}
		buf = buf[p.inPanels(mk):]
	}
}

// bandPart computes one band of one image of one product.
func (k *direct) bandPart(chunk int, ws *workspace) {
	i := 0
	for ; chunk >= k.bands[i].Images*k.bands[i].parts; i++ {
		chunk -= k.bands[i].Images * k.bands[i].parts
	}
	own := k.o.scratch[k.scratch-(ws.thread+1)*k.private:][:k.private]
	b := &k.bands[i]
	n := chunk / b.parts
	i0, i1 := threads.Part(b.GridH, chunk%b.parts, b.parts)
	own = b.place(own, k.o.a, n, i0, i1, k.e.kernel.Step)
	k.rows(ws, b, &k.joined[i], own, k.o.scratch[k.b[i]:], n, i0, i1)
	ws.forget()
}

// rows computes rows [i0,i1) of the grid over image n.
func (k *direct) rows(ws *workspace, b *band, p *product, own, packed []float32, n, i0, i1 int) {
	mk, t := &k.e.kernel, &ws.tile
	mr, nr := p.shape(mk)
	_, panels := p.tiles(mk)
	steps := (b.GridW + mk.Step - 1) / mk.Step
	across := (steps*mk.Step + mr - 1) / mr
	t.K, t.Segments, t.Segment = p.k/len(b.strips), len(b.strips), b.down*b.pitch()
	t.RS, t.KS, t.BS, t.Add = b.StepW*b.c, 1, nr, false
	for j := range panels {
		t.B, t.Cols = packed[j*p.k*nr:], min(nr, p.n-j*nr)
		for i := i0; i < i1; i++ {
			for s := range across {
				lo, hi := threads.Part(steps, s, across)
				lo, hi = lo*mk.Step, min(hi*mk.Step, b.GridW)
				t.A = own[(i-i0)*b.StepH*b.pitch()+lo*b.StepW*b.c:]
				t.Rows = hi - lo
				t.C = k.o.dst[p.c.locate(ws, (n*b.GridH+i)*b.GridW+lo, t.Rows)+j*nr:]
				mk.Sum(t)
			}
		}
	}
}
