package kernel

import (
	"fmt"

	"ebtrain/ddp/graph"
)

// conv is a convolution, or one of its derivatives, as a product. Images lie as
// (N, H, W, C), weights as (O, KH, KW, C) if last, (O, C, KH, KW) otherwise; C and O are
// those of a group there.
//
//	          m        n            k
//	Conv2D    (n,i,j)  o            (f,e,c)    x at (i,j) moved by tap (f,e) · w
//	GradX     (n,h,w)  c            (f,e,o)    dy from where tap (f,e) reaches (h,w) · w
//	GradW     o        (f,e,c)      (n,i,j)    dy · x at (i,j) moved by tap (f,e)
type conv struct {
	*product
	c       graph.Conv
	image   graph.Shape // x, however it is used
	windows graph.Shape // y
	last    bool
}

// newConv declares the geometry. x, w, y are the operands and results by their roles.
func (m *making) newConv(c graph.Conv, k *product, x, w, y operand) *conv {
	v := &conv{k, c, x.dims, y.dims, m.value(w.value).Last}
	k.groups = c.Groups
	k.window(c.Window)
	perGroup, outs := x.dims.At(3)/c.Groups, y.dims.At(3)/c.Groups
	for _, f := range []struct {
		name string
		d    int
	}{{"cg", perGroup}, {"og", outs}, {"taps", c.KW}, {"xh", x.dims.At(1)}, {"xw", x.dims.At(2)}, {"yh", y.dims.At(1)}, {"yw", y.dims.At(2)}} {
		k.quot(f.name, max(f.d, 1))
	}
	k.int("c", x.dims.At(3))
	k.int("o", y.dims.At(3))
	k.int("area", c.KH*c.KW)
	return v
}

// tap splits the index named by from into (f, e, rest), the last of which counts up to
// the argument by.
func tap(from, rest, by string) string {
	return fmt.Sprintf("const idx ft = QUOT(%s, a.%s), %s = %[1]s - ft * (idx)a.%[2]s.d, f = QUOT(ft, a.taps), e = ft - f * (idx)a.taps.d;", from, by, rest)
}

// pixel splits the index named by from into image and row and column of a plane of the
// arguments h, w.
func pixel(from, h, w, row, column string) string {
	return fmt.Sprintf("const idx u = QUOT(%s, a.%s), %s = %[1]s - u * (idx)a.%[2]s.d, image = QUOT(u, a.%[4]s), %[5]s = u - image * (idx)a.%[4]s.d;", from, w, column, h, row)
}

// moved is the element of x at place (i, j) moved by tap (f, e), channel ch of group g.
func (v *conv) moved(name string, x operand, ch string) string {
	return fmt.Sprintf(`const idx r = i * (idx)a.sh.d + f * a.dh - a.pt, s = j * (idx)a.sw.d + e * a.dw - a.pl;
				if (r >= 0 && r < (idx)a.xh.d && s >= 0 && s < (idx)a.xw.d)
					v = %s;`, loaded(x.dtype, v.t, fmt.Sprintf("a.%s[((image * (idx)a.xh.d + r) * (idx)a.xw.d + s) * (idx)a.c + g * (idx)a.cg.d + %s]", name, ch)))
}

// weight is the element of the weights at output o and channel ch of group g, tap
// (f, e).
func (v *conv) weight(o, ch string) string {
	if v.last {
		return fmt.Sprintf("((g * (idx)a.og.d + %s) * (idx)a.area + f * (idx)a.taps.d + e) * (idx)a.cg.d + %s", o, ch)
	}
	return fmt.Sprintf("((g * (idx)a.og.d + %s) * (idx)a.cg.d + %s) * (idx)a.area + f * (idx)a.taps.d + e", o, ch)
}

// conv2D sets y = Σ x·w.
func (m *making) conv2D(op graph.Conv2D) ([]Launch, error) {
	in, y := m.operands(m.s.In), m.operands(m.s.Out)[0]
	x, w := in[0], in[1]
	v := m.newConv(op.Conv, m.newProduct(x, w, y), x, w, y)
	v.m, v.n, v.k = y.dims.With(3, 1).Len(), y.dims.At(3)/op.Groups, op.KH*op.KW*x.dims.At(3)/op.Groups
	v.aText, v.aAlongK = tap("k", "ch", "cg")+"\n\t\t\t\t"+pixel("m", "yh", "yw", "i", "j")+"\n\t\t\t\t"+v.moved("x", x, "ch"), true
	v.bText, v.bAlongK = tap("k", "ch", "cg")+fmt.Sprintf("\n\t\t\t\tv = %s;", loaded(w.dtype, v.t, "a.y["+v.weight("n", "ch")+"]")), true
	v.outText = "m * (idx)a.o + g * (idx)a.og.d + n"
	return v.launches(m)
}

// conv2DGradX sets x = Σ w·y.
func (m *making) conv2DGradX(op graph.Conv2DGradX) ([]Launch, error) {
	in, x := m.operands(m.s.In), m.operands(m.s.Out)[0]
	w, y := in[0], in[1]
	v := m.newConv(op.Conv, m.newProduct(y, w, x), x, w, y)
	v.m, v.n, v.k = x.dims.With(3, 1).Len(), x.dims.At(3)/op.Groups, op.KH*op.KW*y.dims.At(3)/op.Groups
	v.aText = tap("k", "out", "og") + "\n\t\t\t\t" + pixel("m", "xh", "xw", "h", "w") + fmt.Sprintf(`
				const idx ih = h + a.pt - f * a.dh, jw = w + a.pl - e * a.dw;
				if (ih >= 0 && jw >= 0) {
					const idx i = QUOT(ih, a.sh), j = QUOT(jw, a.sw);
					if (i * (idx)a.sh.d == ih && j * (idx)a.sw.d == jw && i < (idx)a.yh.d && j < (idx)a.yw.d)
						v = %s;
				}`, loaded(y.dtype, v.t, "a.x[((image * (idx)a.yh.d + i) * (idx)a.yw.d + j) * (idx)a.o + g * (idx)a.og.d + out]"))
	v.aAlongK = true
	v.bText = tap("k", "out", "og") + fmt.Sprintf("\n\t\t\t\tv = %s;", loaded(w.dtype, v.t, "a.y["+v.weight("out", "n")+"]"))
	v.outText = "m * (idx)a.c + g * (idx)a.cg.d + n"
	return v.launches(m)
}

// conv2DGradW sets w = Σ x·y.
func (m *making) conv2DGradW(op graph.Conv2DGradW) ([]Launch, error) {
	in, w := m.operands(m.s.In), m.operands(m.s.Out)[0]
	x, y := in[0], in[1]
	v := m.newConv(op.Conv, m.newProduct(y, x, w), x, w, y)
	v.m, v.n, v.k = y.dims.At(3)/op.Groups, op.KH*op.KW*x.dims.At(3)/op.Groups, y.dims.With(3, 1).Len()
	v.aText = fmt.Sprintf("v = %s;", loaded(y.dtype, v.t, "a.x[k * (idx)a.o + g * (idx)a.og.d + m]"))
	v.bText = tap("n", "ch", "cg") + "\n\t\t\t\t" + pixel("k", "yh", "yw", "i", "j") + "\n\t\t\t\t" + v.moved("y", x, "ch")
	v.outText = "(g * (idx)a.og.d + m) * (idx)a.n + n"
	if !v.last {
		v.outText = "((g * (idx)a.og.d + m) * (idx)a.cg.d + n - QUOT(n, a.cg) * (idx)a.cg.d) * (idx)a.area + QUOT(n, a.cg)"
	}
	return v.launches(m)
}
