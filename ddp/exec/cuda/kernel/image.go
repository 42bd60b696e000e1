package kernel

import (
	"fmt"

	"ebtrain/ddp/graph"
)

// image is the kernel of a pool or an enlargement of images (N, H, W, C): a thread
// makes V neighbouring channels of a pixel of the result, and looks at all pixels that
// it comes from. So adjoints are gathers too, and each element is added up in one
// order, in the type of registers.
type image struct {
	source
	x, y operand
	V    int
	reg  string
}

// newImage begins the kernel: up to the pixel (n, i, j) of y and its channel c.
func (m *making) newImage(x, y operand) *image {
	k := &image{x: x, y: y, V: 16 / x.dtype.Size(), reg: register(x.dtype)}
	for c := x.dims.At(3); c%k.V != 0; {
		k.V /= 2
	}
	k.wide = m.wideFor(x.dims.Len(), y.dims.Len())
	k.pointer("const "+ctype(x.dtype), "x", x.value)
	k.pointer(ctype(y.dtype), "y", y.value)
	k.int("n", y.dims.Len()/k.V)
	k.quot("chunks", y.dims.At(3)/k.V)
	k.quot("w", y.dims.At(2))
	k.quot("h", y.dims.At(1))
	k.int("xh", x.dims.At(1))
	k.int("xw", x.dims.At(2))
	k.int("channels", x.dims.At(3))
	k.line("KERNEL(NAME, %d, struct NAME_args) {\n\tconst idx p = (idx)BID * %[1]d + TID;\n\tif (p >= (idx)a.n)\n\t\treturn;", Block)
	k.line(`	const idx q = QUOT(p, a.chunks), c = (p - q * (idx)a.chunks.d) * %d;
	const idx u = QUOT(q, a.w), n = QUOT(u, a.h);
	const int i = (int)(u - n * (idx)a.h.d), j = (int)(q - u * (idx)a.w.d), xh = (int)a.xh, xw = (int)a.xw;`, k.V)
	return k
}

// load is the text that loads the channels of pixel (n, r, s) of x to v.
func (k *image) load() string {
	at := "((n * xh + r) * xw + s) * (idx)a.channels + c"
	if k.x.aligned && vectors(k.x.dtype, k.V) {
		return fmt.Sprintf("%s v[%d]; %s(v, a.x + (%s));", k.reg, k.V, k.loader(k.x.dtype, k.reg, k.V), at)
	}
	return fmt.Sprintf("%s v[%d]; for (int e = 0; e < %[2]d; e++) v[e] = %[3]s;", k.reg, k.V, loaded(k.x.dtype, k.reg, "a.x["+at+" + e]"))
}

// sum begins sums, or ends by storing them.
func (k *image) sum(body string) (Launch, error) {
	k.line("\t%s sum[%d];\n\tUNROLL\n\tfor (int e = 0; e < %[2]d; e++)\n\t\tsum[e] = 0;", k.reg, k.V)
	k.line("%s", body)
	if k.y.aligned && vectors(k.y.dtype, k.V) {
		k.line("\t%s(a.y + p * %d, sum);\n}", k.storer(k.y.dtype, k.reg, k.V), k.V)
	} else {
		k.line("\tUNROLL\n\tfor (int e = 0; e < %d; e++)\n\t\ta.y[p * %[1]d + e] = %[2]s;\n}", k.V, stored(k.y.dtype, k.reg, "sum[e]"))
	}
	return k.launch("image", blocks(k.y.dims.Len()/k.V))
}

// add is the text that adds v, times a weight if there is one, to the sums.
func (k *image) add(weight string) string {
	if weight != "" {
		weight += " * "
	}
	return fmt.Sprintf("UNROLL\n\t\t\tfor (int e = 0; e < %d; e++)\n\t\t\t\tsum[e] += %sv[e];", k.V, weight)
}

// window declares the geometry of a window.
func (s *source) window(w graph.Window) {
	for _, f := range []struct {
		name string
		v    int
	}{{"kh", w.KH}, {"kw", w.KW}, {"dh", w.DilH}, {"dw", w.DilW}, {"pt", w.PadT}, {"pl", w.PadL}} {
		s.small(f.name, f.v)
	}
	s.quot("sh", w.StrideH)
	s.quot("sw", w.StrideW)
}

// sumPool adds each window.
func (m *making) sumPool(op graph.SumPool2D) (Launch, error) {
	k := m.newImage(m.operands(m.s.In)[0], m.operands(m.s.Out)[0])
	k.window(op.Window)
	return k.sum(fmt.Sprintf(`	for (int f = 0; f < a.kh; f++)
		for (int g = 0; g < a.kw; g++) {
			const int r = i * (int)a.sh.d + f * a.dh - a.pt, s = j * (int)a.sw.d + g * a.dw - a.pl;
			if (r < 0 || r >= xh || s < 0 || s >= xw)
				continue;
			%s
			%s
		}`, k.load(), k.add("")))
}

// sumUnpool adds the elements in whose windows a pixel is.
func (m *making) sumUnpool(op graph.SumUnpool2D) (Launch, error) {
	k := m.newImage(m.operands(m.s.In)[0], m.operands(m.s.Out)[0])
	k.window(op.Window)
	return k.sum(fmt.Sprintf(`	for (int f = 0; f < a.kh; f++)
		for (int g = 0; g < a.kw; g++) {
			const int y = i + a.pt - f * a.dh, z = j + a.pl - g * a.dw;
			if (y < 0 || z < 0)
				continue;
			const int r = quot32(y, a.sh), s = quot32(z, a.sw);
			if (r * (int)a.sh.d != y || s * (int)a.sw.d != z || r >= xh || s >= xw)
				continue;
			%s
			%s
		}`, k.load(), k.add("")))
}

// maxPool finds the first maximum of each window, or its first NaN, and its place, channel
// by channel.
func (m *making) maxPool(op graph.MaxPool2D) (Launch, error) {
	out := m.operands(m.s.Out)
	k := m.newImage(m.operands(m.s.In)[0], out[0])
	k.window(op.Window)
	k.pointer("i32", "place", out[1].value)
	return k.sum(fmt.Sprintf(`	int at[%[1]d], first = 1;
	for (int f = 0; f < a.kh; f++)
		for (int g = 0; g < a.kw; g++) {
			const int r = i * (int)a.sh.d + f - a.pt, s = j * (int)a.sw.d + g - a.pl;
			if (r < 0 || r >= xh || s < 0 || s >= xw)
				continue;
			%[2]s
			UNROLL
			for (int e = 0; e < %[1]d; e++)
				if (first || v[e] > sum[e] || (v[e] != v[e] && sum[e] == sum[e])) {
					sum[e] = v[e];
					at[e] = r * xw + s;
				}
			first = 0;
		}
	UNROLL
	for (int e = 0; e < %[1]d; e++)
		a.place[p * %[1]d + e] = at[e];`, k.V, k.load()))
}

// upsample takes what a pixel of the larger image is made of.
func (m *making) upsample(op graph.Upsample2D) (Launch, error) {
	k := m.newImage(m.operands(m.s.In)[0], m.operands(m.s.Out)[0])
	k.resample(op)
	return k.sum(fmt.Sprintf(`	const struct share f = shareOf(i, xh), g = shareOf(j, xw);
	UNROLL
	for (int d = 0; d < %[4]d; d++) {
		const int r = f.lo + d;
		UNROLL
		for (int e = 0; e < %[4]d; e++) {
			const int s = g.lo + e;
			if (r > f.hi || s > g.hi)
				continue;
			const %[1]s weight = (%[1]s)((r == f.lo ? 1 - f.upper : f.upper) * (s == g.lo ? 1 - g.upper : g.upper));
			%[2]s
			%[3]s
		}
	}`, k.reg, k.load(), k.add("weight"), neighbours(op)))
}

// upsampleT takes the pixels of the larger image that a pixel is a part of: their centres
// are less than one pixel away, of the last and the first those beyond, too.
func (m *making) upsampleT(op graph.Upsample2DT) (Launch, error) {
	k := m.newImage(m.operands(m.s.In)[0], m.operands(m.s.Out)[0])
	k.resample(graph.Upsample2D(op))
	before, count := 0, op.Scale
	if op.Mode != graph.Nearest {
		before = (op.Scale + 1) / 2
		count += 2 * before
	}
	unroll := "UNROLL\n\t"
	if count > 8 {
		unroll = ""
	}
	return k.sum(fmt.Sprintf(`	const int h = (int)a.h.d, w = (int)a.w.d, top = i * %[4]d - %[5]d, left = j * %[4]d - %[5]d;
	%[7]sfor (int d = 0; d < %[6]d; d++) {
		const int r = top + d;
		const struct share f = shareOf(r < 0 ? 0 : r, h);
		if (r < 0 || r >= xh || i < f.lo || i > f.hi)
			continue;
		%[7]sfor (int e = 0; e < %[6]d; e++) {
			const int s = left + e;
			const struct share g = shareOf(s < 0 ? 0 : s, w);
			if (s < 0 || s >= xw || j < g.lo || j > g.hi)
				continue;
			const %[1]s weight = (%[1]s)((i == f.lo ? 1 - f.upper : f.upper) * (j == g.lo ? 1 - g.upper : g.upper));
			%[2]s
			%[3]s
		}
	}`, k.reg, k.load(), k.add("weight"), op.Scale, before, count, unroll))
}

// neighbours is how many pixels in a row a pixel of an enlarged image is made of.
func neighbours(op graph.Upsample2D) int {
	if op.Mode == graph.Nearest {
		return 1
	}
	return 2
}

// resample writes the function that tells what an index of the larger axis is made of:
// the centre of i lies at (i + ½)/scale − ½, at least 0, between two neighbours, exactly
// on one, or beyond the last. The scale is in the text, so that compilers know what they
// divide by.
func (k *image) resample(op graph.Upsample2D) {
	k.helper("struct share {\n\tint lo, hi;\n\tdouble upper;\n};\n")
	if op.Mode == graph.Nearest {
		k.helper(fmt.Sprintf(`DEVICE struct share shareOf(int i, int n) {
	struct share s = {i / %[1]d, i / %[1]d, 0};
	return s;
}
`, op.Scale))
		return
	}
	k.helper(fmt.Sprintf(`DEVICE struct share shareOf(int i, int n) {
	const int at = 2 * i + 1 > %[1]d ? 2 * i + 1 - %[1]d : 0, lo = at / %[2]d, rest = at %% %[2]d;
	struct share s = {lo, lo, 0};
	if (rest > 0 && lo + 1 < n) {
		s.hi = lo + 1;
		s.upper = (double)rest / %[2]d;
	}
	return s;
}
`, op.Scale, 2*op.Scale))
}

// pooled makes the kernel of an op on images.
func (m *making) pooled(op graph.Op) ([]Launch, error) {
	var l Launch
	var err error
	switch op := op.(type) {
	case graph.SumPool2D:
		l, err = m.sumPool(op)
	case graph.SumUnpool2D:
		l, err = m.sumUnpool(op)
	case graph.MaxPool2D:
		l, err = m.maxPool(op)
	case graph.Upsample2D:
		l, err = m.upsample(op)
	case graph.Upsample2DT:
		l, err = m.upsampleT(op)
	}
	return []Launch{l}, err
}
