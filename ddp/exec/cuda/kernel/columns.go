package kernel

import (
	"fmt"

	"ebtrain/ddp/graph"
)

// Columns is the op of a step that no graph has: an image x (N,H,W,C) as a matrix with
// rows (n,i,j) and columns (f,e,c), which makes a product of a convolution:
//
//	y[n,i,j, (f·KW + e)·C + c] = x[n, i·StrideH + f·DilH − PadT, j·StrideW + e·DilW − PadL, c]
//
// 0 where there is no such pixel, and in columns beyond KH·KW·C. First says that columns
// are (c,f,e). PadB and PadR are not used: y's extents say how many places there are. Pads
// and dilations may be negative, with strides of 1.
//
// Back is its transpose, from y to x: each element of x is the sum, in order of f and e, of
// those that it was copied to.
type Columns struct {
	graph.Window
	First, Back bool
}

func (op Columns) String() string {
	name := "columns"
	if op.Back {
		name = "columns back"
	}
	return fmt.Sprintf("%s %+v, channels first %v", name, op.Window, op.First)
}

// manyRows is from how many rows on a thread makes a whole row, of mostTaps columns at most.
const manyRows, mostTaps = 1 << 12, 256

// columns makes the kernel.
func (m *making) columns(op Columns) ([]Launch, error) {
	var l Launch
	var err error
	switch in, out := m.operands(m.s.In)[0], m.operands(m.s.Out)[0]; {
	case op.Back:
		l, err = m.sumColumns(op, in, out)
	case out.dims.With(3, 1).Len() >= manyRows && op.KH*op.KW*in.dims.At(3) <= mostTaps:
		l, err = m.gatherRows(op, in, out)
	default:
		l, err = m.gatherColumns(op, in, out)
	}
	return []Launch{l}, err
}

// column are the three digits of the number of a column, and how many of each there are,
// the last digit first.
func (op Columns) column() (digits, counts [3]string) {
	if op.First {
		return [...]string{"e", "f", "c"}, [...]string{"kw", "kh", "channels"}
	}
	return [...]string{"c", "e", "f"}, [...]string{"channels", "kw", "kh"}
}

// newGather declares what is gathered from and to, the places and the image.
func (m *making) newGather(op Columns, x, y operand) *source {
	s := &source{wide: m.wideFor(x.dims.Len(), y.dims.Len())}
	s.pointer("const "+ctype(x.dtype), "x", x.value)
	s.pointer(ctype(y.dtype), "y", y.value)
	s.quot("yw", y.dims.At(2))
	s.quot("yh", y.dims.At(1))
	for _, f := range []struct {
		name string
		v    int
	}{{"xh", x.dims.At(1)}, {"xw", x.dims.At(2)}, {"sh", op.StrideH}, {"sw", op.StrideW}, {"dh", op.DilH}, {"dw", op.DilW}, {"pt", op.PadT}, {"pl", op.PadL}} {
		s.small(f.name, f.v)
	}
	s.line("KERNEL(NAME, %d, struct NAME_args) {\n\tconst idx p = (idx)BID * %[1]d + TID;\n\tif (p >= (idx)a.n)\n\t\treturn;", Block)
	return s
}

// place is the text that finds where the first tap of row q lies.
const place = `const idx u = QUOT(q, a.yw), image = QUOT(u, a.yh);
	const int top = (int)(u - image * (idx)a.yh.d) * a.sh - a.pt, left = (int)(q - u * (idx)a.yw.d) * a.sw - a.pl;`

// put is the text that stores n of v, from number i on, at the element at of y.
func (s *source) put(y operand, reg string, n, i int, at string) string {
	if y.aligned && vectors(y.dtype, n) {
		return fmt.Sprintf("%s(a.y + %s, v + %d);", s.storer(y.dtype, reg, n), at, i)
	}
	return fmt.Sprintf("UNROLL\n\tfor (int g = 0; g < %d; g++)\n\t\ta.y[%s + g] = %s;", n, at, stored(y.dtype, reg, fmt.Sprintf("v[%d + g]", i)))
}

// run is how many columns of that many are stored at once.
func (y operand) run(width int) int {
	v := 16 / y.dtype.Size()
	for width%v != 0 {
		v /= 2
	}
	return v
}

// gatherColumns makes some neighbouring columns of a row in each thread. It divides for
// the first of them, and counts on for the others.
func (m *making) gatherColumns(op Columns, x, y operand) (Launch, error) {
	s := m.newGather(op, x, y)
	reg, width := register(y.dtype), y.dims.At(3)
	v := y.run(width)
	s.int("n", y.dims.Len()/v)
	for _, f := range []struct {
		name string
		d    int
	}{{"chunks", width / v}, {"kw", op.KW}, {"kh", op.KH}, {"channels", x.dims.At(3)}} {
		s.quot(f.name, f.d)
	}
	digit, count := op.column()
	s.line(`	const idx q = QUOT(p, a.chunks);
	%[10]s
	const int k = (int)(p - q * (idx)a.chunks.d) * %[1]d, k1 = quot32(k, a.%[5]s);
	int %[2]s = k - k1 * (int)a.%[5]s.d, %[4]s = quot32(k1, a.%[6]s), %[3]s = k1 - %[4]s * (int)a.%[6]s.d;
	%[8]s v[%[1]d];
	UNROLL
	for (int g = 0; g < %[1]d; g++) {
		const int r = top + f * a.dh, s = left + e * a.dw;
		v[g] = 0;
		if (%[4]s < (int)a.%[7]s.d && r >= 0 && r < a.xh && s >= 0 && s < a.xw)
			v[g] = %[9]s;
		if (++%[2]s == (int)a.%[5]s.d) {
			%[2]s = 0;
			if (++%[3]s == (int)a.%[6]s.d) {
				%[3]s = 0;
				%[4]s++;
			}
		}
	}
	%[11]s
}`, v, digit[0], digit[1], digit[2], count[0], count[1], count[2], reg,
		loaded(x.dtype, reg, "a.x[((image * a.xh + r) * a.xw + s) * (idx)a.channels.d + c]"), place, s.put(y, reg, v, 0, fmt.Sprintf("p * %d", v)))
	return s.launch("columns", blocks(y.dims.Len()/v))
}

// gatherRows makes a row in each thread. Which taps and channels there are is in the text,
// so that of an element nothing is left but to load it; neighbours load neighbours.
func (m *making) gatherRows(op Columns, x, y operand) (Launch, error) {
	s := m.newGather(op, x, y)
	reg, width, channels := register(y.dtype), y.dims.At(3), x.dims.At(3)
	s.int("n", y.dims.Len()/width)
	s.int("down", op.DilH*x.dims.At(2)*channels)
	s.int("across", op.DilW*channels)
	s.line("\tconst idx q = p;\n\t%s\n\tconst idx at = ((image * a.xh + top) * a.xw + left) * %d;", place, channels)
	for f := range op.KH {
		s.line("\tconst int r%d = top + %[1]d * a.dh >= 0 && top + %[1]d * a.dh < a.xh;", f)
	}
	for e := range op.KW {
		s.line("\tconst int s%d = left + %[1]d * a.dw >= 0 && left + %[1]d * a.dw < a.xw;", e)
	}
	const together = 32 // which are loaded before any is stored
	s.line("\t%s v[%d];", reg, together)
	for k := range width {
		tap, c := k/channels, k%channels
		if op.First {
			tap, c = k%(op.KH*op.KW), k/(op.KH*op.KW)
		}
		f, e, x := tap/op.KW, tap%op.KW, loaded(x.dtype, reg, fmt.Sprintf("a.x[at + %d * (idx)a.down + %d * (idx)a.across + %d]", tap/op.KW, tap%op.KW, c))
		if k < op.KH*op.KW*channels {
			s.line("\tv[%d] = r%d && s%d ? %s : 0;", k%together, f, e, x)
		} else {
			s.line("\tv[%d] = 0;", k%together)
		}
		if k+1 < width && (k+1)%together != 0 {
			continue
		}
		from, n := k/together*together, y.run(width)
		for i := from; i <= k; i += n {
			s.line("\t%s", s.put(y, reg, n, i-from, fmt.Sprintf("p * %d + %d", width, i)))
		}
	}
	s.line("}")
	return s.launch("columns", blocks(y.dims.Len()/width))
}

// sumColumns makes an element of the image in each thread. The taps of a small kernel are
// in the text.
func (m *making) sumColumns(op Columns, y, x operand) (Launch, error) {
	s := &source{wide: m.wideFor(x.dims.Len(), y.dims.Len())}
	reg := register(y.dtype)
	s.pointer("const "+ctype(y.dtype), "y", y.value)
	s.pointer(ctype(x.dtype), "x", x.value)
	s.int("n", x.dims.Len())
	for _, f := range []struct {
		name string
		d    int
	}{{"channels", x.dims.At(3)}, {"xw", x.dims.At(2)}, {"xh", x.dims.At(1)}} {
		s.quot(f.name, f.d)
	}
	s.window(op.Window)
	s.small("yh", y.dims.At(1))
	s.small("yw", y.dims.At(2))
	s.int("width", y.dims.At(3))
	column := "(f * a.kw + e) * (int)a.channels.d + c"
	if op.First {
		column = "(c * a.kh + f) * a.kw + e"
	}
	kh, kw := "a.kh", "a.kw"
	if op.KH*op.KW <= 25 {
		kh, kw = fmt.Sprint(op.KH), fmt.Sprint(op.KW)
	}
	s.line("KERNEL(NAME, %d, struct NAME_args) {\n\tconst idx p = (idx)BID * %[1]d + TID;\n\tif (p >= (idx)a.n)\n\t\treturn;", Block)
	s.line(`	const idx q = QUOT(p, a.channels), u = QUOT(q, a.xw), image = QUOT(u, a.xh);
	const int c = (int)(p - q * (idx)a.channels.d), r = (int)(u - image * (idx)a.xh.d), s = (int)(q - u * (idx)a.xw.d);
	%[1]s sum = 0;
	UNROLL
	for (int f = 0; f < %[4]s; f++) {
		const int down = r + a.pt - f * a.dh, i = down < 0 ? 0 : quot32(down, a.sh);
		if (down < 0 || i * (int)a.sh.d != down || i >= a.yh)
			continue;
		UNROLL
		for (int e = 0; e < %[5]s; e++) {
			const int across = s + a.pl - e * a.dw, j = across < 0 ? 0 : quot32(across, a.sw);
			if (across < 0 || j * (int)a.sw.d != across || j >= a.yw)
				continue;
			sum += %[2]s;
		}
	}
	a.x[p] = %[3]s;
}`, reg, loaded(y.dtype, reg, "a.y[((image * a.yh + i) * a.yw + j) * (idx)a.width + "+column+"]"), stored(x.dtype, reg, "sum"), kh, kw)
	return s.launch("columns", blocks(x.dims.Len()))
}
