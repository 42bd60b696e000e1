package kernel

import (
	"fmt"
	"iter"

	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// Few is the op of a step that no graph has: a convolution or one of its derivatives (a
// graph.Conv2D, Conv2DGradX or Conv2DGradW) between an image of few channels and one of
// many, in bfloat16, in one pass over the large image. Values are as those of Op.
//
// Whether the few are x's or y's, there are three kernels. With k = (f,e,c) for taps and
// few channels, m for many, and w the weights, turned around where the sign of a tap is the
// other way:
//
//	expand      large[n,i,j,m] = Σₖ    small[n, i+f−PT, j+e−PL, c] · w[m,k]
//	contract    small[n,i,j,c] = Σₘ,f,e large[n, i+f−PT, j+e−PL, m] · w[m,k]
//	correlate   dw[m,k]        = Σn,i,j large[n,i,j,m] · small[n, i+f−PT, j+e−PL, c]
//
// All multiply by tensor cores (MMA) and add up in float32. They load and store the large
// image up to 16 bytes a thread where its channels are a multiple of 8, straight to and from
// registers: which k or m stands where in a fragment is free, so a thread's are neighbours.
type Few struct{ Op graph.Op }

func (op Few) String() string { return fmt.Sprintf("%v of few channels", op.Op) }

// few is such a kernel under construction. It is written for one geometry, whose extents
// are in the text: what finds a pixel is a shift, or a product with a constant. How many
// tiles and images there are is an argument.
type few struct {
	source
	m                 *making
	small, large, w   operand
	sh, sw, lh, lw    int // rows and columns of the images
	kh, kw, few, many int
	padT, padL        int  // PT and PL
	turned            bool // weights are
	manyFirst         bool // w is (m,f,e,c), not (c,f,e,m)
	th, tw            int  // a block's tile, of the image that it makes or walks over
	made              graph.Op
}

// What these kernels take. The weights of a block, and what it adds up, are in shared
// memory, where no more fit.
const (
	fewChannels, fewTaps    = 8, 64
	manyChannels, fewWeight = 256, 8192
)

// FitsFew says whether step i of a plan, a convolution or one of its derivatives, can be
// done by a Few: images in bfloat16, strides, dilations and groups of 1, on the one side at
// most 8 channels and few taps. Weights in float32 are rounded to bfloat16 as they are read.
// The device needs tensor cores for bfloat16: compute capability 8.0.
func FitsFew(p *plan.Plan, i int) bool {
	m, err := maker(p, i)
	if err != nil {
		return false
	}
	op, ok := p.Steps[i].Op.(graph.Op)
	if ok {
		_, err = m.newFew(Few{op})
	}
	return ok && err == nil
}

// newFew finds the geometry of a step.
func (m *making) newFew(op Few) (*few, error) {
	in, out := m.operands(m.s.In), m.operands(m.s.Out)[0]
	k := &few{m: m, made: op.Op}
	var c graph.Conv
	var x, y operand
	switch op := op.Op.(type) {
	case graph.Conv2D:
		c, x, k.w, y = op.Conv, in[0], in[1], out
	case graph.Conv2DGradX:
		c, k.w, y, x = op.Conv, in[0], in[1], out
	case graph.Conv2DGradW:
		c, x, y, k.w = op.Conv, in[0], in[1], out
	default:
		return nil, fmt.Errorf("%v is no convolution", op)
	}
	one := graph.Window{KH: c.KH, KW: c.KW, PadT: c.PadT, PadB: c.PadB, PadL: c.PadL, PadR: c.PadR, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1}
	if c.Window != one || c.Groups != 1 {
		return nil, fmt.Errorf("%v has strides, dilations or groups", op)
	}
	k.kh, k.kw, k.padT, k.padL = c.KH, c.KW, c.PadT, c.PadL
	k.small, k.large, k.manyFirst = x, y, true
	if y.dims.At(3) < x.dims.At(3) {
		k.small, k.large, k.manyFirst = y, x, false
	}
	// A tap reaches from y to x as it is, the other way around from x to y.
	_, gradX := op.Op.(graph.Conv2DGradX)
	_, gradW := op.Op.(graph.Conv2DGradW)
	if k.turned = gradX || gradW && !k.manyFirst; k.turned {
		k.padT, k.padL = k.kh-1-k.padT, k.kw-1-k.padL
	}
	k.sh, k.sw, k.few = k.small.dims.At(1), k.small.dims.At(2), k.small.dims.At(3)
	k.lh, k.lw, k.many = k.large.dims.At(1), k.large.dims.At(2), k.large.dims.At(3)
	k.wide = m.wideFor(k.small.dims.Len(), k.large.dims.Len())
	return k, k.check()
}

// check is nil if there is such a kernel.
func (k *few) check() error {
	types := k.small.dtype == graph.BF16 && k.large.dtype == graph.BF16 && (k.w.dtype == graph.F32 || k.w.dtype == graph.BF16)
	switch {
	case !types:
		return fmt.Errorf("%v of images in %v and %v, weights in %v", k.made, k.small.dtype, k.large.dtype, k.w.dtype)
	case k.few > fewChannels || k.taps() > fewTaps || k.many <= k.few || k.many > manyChannels || k.taps()*k.many > fewWeight:
		return fmt.Errorf("%v of %d channels, and %d", k.made, k.few, k.many)
	case !k.m.value(k.small.value).Last || !k.m.value(k.large.value).Last || !k.m.value(k.w.value).Last:
		return fmt.Errorf("%v of images that are not channels-last", k.made)
	case !k.small.aligned || !k.large.aligned || !k.w.aligned:
		return fmt.Errorf("%v of images at odd addresses", k.made)
	}
	return nil
}

// taps is how many k there are.
func (k *few) taps() int { return k.kh * k.kw * k.few }

// launches makes the kernels.
func (m *making) few(op Few) ([]Launch, error) {
	k, err := m.newFew(op)
	if err != nil {
		return nil, err
	}
	switch _, gradW := op.Op.(graph.Conv2DGradW); {
	case gradW:
		return k.correlate()
	case m.s.Out[0] == k.large.value:
		return k.expand()
	}
	return k.contract()
}

// fewShared is what a block takes of shared memory at most: every device gives it 48 KiB.
const fewShared = 47 << 10

// tile cuts an image into tiles of about so many pixels, in rows of 32 if it has as many,
// all of a size; of fewer, where what so many tiles read does not fit into shared memory
// beside so many bytes. It declares what finds a block's: the extents of the image are h
// and w.
func (k *few) tile(h, w, pixels, tiles, beside int) {
	k.tw = ceil(w, ceil(w, 32))
	for rows := max(1, pixels/k.tw); ; rows-- {
		k.th = ceil(h, ceil(h, rows))
		if rows == 1 || 2*tiles*k.area()+beside <= fewShared {
			break
		}
	}
	k.quot("across", ceil(w, k.tw))
	k.quot("down", ceil(h, k.th))
}

// tiles is how many there are in images of that size, and place the text that finds tile b:
// its image, and its first row and column.
func (k *few) tiles(h, w int) int { return k.small.dims.At(0) * ceil(h, k.th) * ceil(w, k.tw) }

func (k *few) place(b string) string {
	return fmt.Sprintf(`const idx rows = QUOT(%s, a.across), image = QUOT(rows, a.down);
		const int j0 = (int)(%[1]s - rows * (idx)a.across.d) * %[2]d, i0 = (int)(rows - image * (idx)a.down.d) * %[3]d;`, b, k.tw, k.th)
}

// resident is how many blocks run at once on an H200, three on each multiprocessor;
// mostTiles is how many tiles one does at most, for which it loads weights once.
const resident, mostTiles = 396, 4

// each declares how many of so many tiles a block does, and says how many blocks there are.
// Those of block BID are the texts first and end.
func (k *few) each(tiles int) (blocks int) {
	per := max(1, min(mostTiles, tiles/resident))
	if k.m.crowded {
		per = mostTiles
	}
	k.int("tiles", tiles)
	k.int("perBlock", per)
	return ceil(tiles, per)
}

const firstTile = `const idx first = BID * (idx)a.perBlock, end = first + (idx)a.perBlock < (idx)a.tiles ? first + (idx)a.perBlock : (idx)a.tiles;`

// alive is the text that says whether pixel p of a tile, in row r and column s, is one of an
// image of that size. What is so of all of so many p is left out.
func (k *few) alive(h, w, all int) string {
	text := ""
	for _, c := range []struct {
		never bool
		text  string
	}{{all == k.th*k.tw, fmt.Sprintf("p < %d", k.th*k.tw)}, {h%k.th == 0, fmt.Sprintf("i0 + r < %d", h)}, {w%k.tw == 0, fmt.Sprintf("j0 + s < %d", w)}} {
		if !c.never {
			text += c.text + " && "
		}
	}
	return text + "1"
}

// weight adds the function that loads a weight as bfloat16: 0 beyond the last m and k, which
// is no branch, so that loads need not wait for each other.
func (k *few) weight() {
	load := "w[some ? " + k.weightAt() + " : 0]"
	if k.w.dtype == graph.F32 {
		load = "toBF16(" + load + ")"
	}
	k.helper(fmt.Sprintf(`DEVICE u32 weight(const %s *w, int m, int k) {
	const int some = m < %d && k < %d;
	const u32 v = %s;
	return some ? v : 0;
}
`, ctype(k.w.dtype), k.many, k.taps(), load))
}

// weightAt is where the weight of m and k is.
func (k *few) weightAt() string {
	tap := fmt.Sprintf("k / %d", k.few)
	if k.turned {
		tap = fmt.Sprintf("(%d - %s)", k.kh*k.kw-1, tap)
	}
	switch {
	case k.manyFirst && !k.turned:
		return fmt.Sprintf("m * %d + k", k.taps())
	case k.manyFirst:
		return fmt.Sprintf("m * %d + %s * %d + k %% %[3]d", k.taps(), tap, k.few)
	}
	return fmt.Sprintf("(k %% %d * %d + %s) * %d + m", k.few, k.kh*k.kw, tap, k.many)
}

// groupsOf are so many fragments in groups of 8, 4, 2 and 1: the first of each, and how many.
func groupsOf(fragments, most int) iter.Seq2[int, int] {
	return func(yield func(first, v int) bool) {
		first := 0
		for v := most; v > 0; v /= 2 {
			for ; first+v <= fragments; first += v {
				if !yield(first, v) {
					return
				}
			}
		}
	}
}

// pitch is a row of what a tile reads of the small image, in elements.
func (k *few) pitch() int { return (k.tw + k.kw - 1) * k.few }

// area is all that it reads.
func (k *few) area() int { return (k.th + k.kh - 1) * k.pitch() }

// window adds the function that brings what a tile reads of the small image, from row top
// and column left on, to shared memory: 0 where there is no such pixel.
func (k *few) window() {
	k.helper(fmt.Sprintf(`DEVICE void window(bf16 *to, const bf16 *from, idx image, int top, int left, int id) {
	UNROLL
	for (int e = 0; e < %d; e++) {
		const int q = id + e * %d, r = q / %d, row = top + r, at = left * %d + q - r * %[3]d;
		const int inside = row >= 0 && row < %[5]d && at >= 0 && at < %[6]d;
		const bf16 v = from[inside ? (image * %[5]d + row) * %[6]d + at : 0];
		if (q < %[7]d)
			to[q] = inside ? v : 0;
	}
}
`, ceil(k.area(), Block), Block, k.pitch(), k.few, k.sh, k.sw*k.few, k.area()))
}

// tapAt is where tap k of a pixel is, from the pixel on; 0 for those beyond the last.
func (k *few) tapAt() string {
	run := k.kw * k.few
	return fmt.Sprintf("(k < %d ? k / %d * %d + k %% %[2]d : 0)", k.taps(), run, k.pitch())
}
