package kernel

import (
	"fmt"

	"ebtrain/ddp/graph"
)

// product is the kernel of a matrix product c[m,n] = Σₖ a[m,k]·b[k,n], once for each of
// some groups, where an element of a or b is found by lines of text: that makes it a
// convolution too. A block makes 64×64 elements, a thread 4×4 of them, by steps of 16 in
// k that pass through shared memory:
//
//	        b: ┌───16×64───┐
//	a: ┌64×16┐ │  c: 64×64 │
//
// It adds in order of k by fused multiply-adds, in float32 or float64, whichever is
// wider. Where there are few blocks and many k, these are cut into splits, whose sums
// are partial and finished in float64. It suits any geometry; it is not fast.
type product struct {
	source
	x, y             operand // a is made of x, b of y
	out              operand
	m, n, k, groups  int
	splits, length   int    // of k
	aText, bText     string // set the type's v where m, k and k, n, which are idx, are inside
	aAlongK, bAlongK bool   // neighbours in memory have neighbouring k
	outText          string // the element of c
	t                string
}

// newProduct declares the operands.
func (m *making) newProduct(x, y, out operand) *product {
	k := &product{x: x, y: y, out: out, groups: 1, t: "float"}
	if out.dtype == graph.F64 {
		k.t = "double"
	}
	k.wide = m.wideFor(x.dims.Len(), y.dims.Len(), out.dims.Len())
	k.pointer("const "+ctype(x.dtype), "x", x.value)
	k.pointer("const "+ctype(y.dtype), "y", y.value)
	return k
}

const productTile, productStep = 64, 16

// split cuts k where there are fewer blocks than a device wants.
func (k *product) split() {
	tiles := ceil(k.m, productTile) * ceil(k.n, productTile) * k.groups
	k.splits, k.length = 1, max(k.k, 1)
	if tiles >= wanted/2 || k.k <= 1024 {
		return
	}
	splits := min(ceil(wanted, tiles), ceil(k.k, 512))
	k.length = ceil(ceil(k.k, splits), productStep) * productStep
	k.splits = ceil(k.k, k.length)
}

// launches writes the kernel, and the one that finishes.
func (k *product) launches(m *making) ([]Launch, error) {
	k.split()
	for _, f := range []struct {
		name string
		v    int
	}{{"m", k.m}, {"n", k.n}, {"k", k.k}, {"length", k.length}, {"elements", k.out.dims.Len()}} {
		k.int(f.name, f.v)
	}
	across, down := ceil(k.n, productTile), ceil(k.m, productTile)
	k.quot("across", across)
	k.quot("down", down)
	k.quot("splits", k.splits)
	value := "acc[e][f]"
	var rest finish
	if k.splits > 1 {
		part := m.take(8 * k.splits * k.out.dims.Len())
		k.scratch("double", "out", part)
		rest.entries = []finishing{{part: part, squares: -1, out: k.out, kept: axes{[]int{k.out.dims.Len()}, []int{1}}, over: axes{[]int{k.splits}, []int{k.out.dims.Len()}}}}
		k.outText = "split * (idx)a.elements + " + k.outText
	} else {
		k.pointer(ctype(k.out.dtype), "out", k.out.value)
		value = stored(k.out.dtype, k.t, value)
	}
	k.line("KERNEL_SYNC(NAME, %d, struct NAME_args) {\n\tSHARED(%s, as, [%d][%d]);\n\tSHARED(%[2]s, bs, [%[3]d][%[4]d]);", Block, k.t, productStep, productTile+1)
	k.line(`	idx q = QUOT(BID, a.across);
	const idx n0 = (BID - q * (idx)a.across.d) * %d;
	idx b = q;
	q = QUOT(b, a.down);
	const idx m0 = (b - q * (idx)a.down.d) * %[1]d;
	b = q;
	const idx g = QUOT(b, a.splits), split = b - g * (idx)a.splits.d;
	const idx from = split * (idx)a.length, end = from + (idx)a.length < (idx)a.k ? from + (idx)a.length : (idx)a.k;
	%[2]s acc[4][4];
	UNROLL
	for (int e = 0; e < 4; e++) {
		UNROLL
		for (int f = 0; f < 4; f++)
			acc[e][f] = 0;
	}
	for (idx k0 = from; k0 < end; k0 += %[3]d) {`, productTile, k.t, productStep)
	k.fetch("as", "m", k.aAlongK, k.aText)
	k.fetch("bs", "n", k.bAlongK, k.bText)
	mul := "FMAF"
	if k.t == "double" {
		mul = "FMA"
	}
	k.line(`		SYNC();
		UNROLL
		for (int k = 0; k < %d; k++) {
			UNROLL
			for (int e = 0; e < 4; e++) {
				UNROLL
				for (int f = 0; f < 4; f++)
					acc[e][f] = %s(as[k][TID / 16 + 16 * e], bs[k][TID %% 16 + 16 * f], acc[e][f]);
			}
		}
		SYNC();
	}
	UNROLL
	for (int e = 0; e < 4; e++) {
		UNROLL
		for (int f = 0; f < 4; f++) {
			const idx m = m0 + TID / 16 + 16 * e, n = n0 + TID %% 16 + 16 * f;
			if (m < (idx)a.m && n < (idx)a.n)
				a.out[%s] = %s;
		}
	}
}`, productStep, mul, k.outText, value)
	l, err := k.launch("product", across*down*k.splits*k.groups)
	if err != nil {
		return nil, err
	}
	more, err := rest.launches()
	return append([]Launch{l}, more...), err
}

// fetch writes the lines that bring 16×64 elements of an operand to shared memory: a
// thread four of them, so that neighbours in the warp are neighbours in memory.
func (k *product) fetch(to, axis string, alongK bool, text string) {
	kk, other := "TID / 64 + 4 * e", "TID % 64"
	if alongK {
		kk, other = "TID % 16", "TID / 16 + 16 * e"
	}
	k.line(`		UNROLL
		for (int e = 0; e < 4; e++) {
			const int kk = %s, other = %s;
			const idx k = k0 + kk, %s = %[3]s0 + other;
			%[4]s v = 0;
			if (k < end && %[3]s < (idx)a.%[3]s) {
				%[5]s
			}
			%[6]s[kk][other] = v;
		}`, kk, other, axis, k.t, text, to)
}

// matmul is x·y, each transposed first if asked.
func (m *making) matmul(op graph.MatMul) ([]Launch, error) {
	in, out := m.operands(m.s.In), m.operands(m.s.Out)[0]
	k := m.newProduct(in[0], in[1], out)
	k.m, k.n = out.dims.At(0), out.dims.At(1)
	k.k = in[0].dims.At(1)
	k.int("lx", in[0].dims.At(1))
	k.int("ly", in[1].dims.At(1))
	at := func(name, i, j string, d graph.DType) string {
		return fmt.Sprintf("v = %s;", loaded(d, k.t, fmt.Sprintf("a.%s[%s * (idx)a.l%[1]s + %[3]s]", name, i, j)))
	}
	k.aText, k.aAlongK = at("x", "m", "k", in[0].dtype), true
	if op.TransX {
		k.k = in[0].dims.At(0)
		k.aText, k.aAlongK = at("x", "k", "m", in[0].dtype), false
	}
	k.bText = at("y", "k", "n", in[1].dtype)
	if op.TransY {
		k.bText, k.bAlongK = at("y", "n", "k", in[1].dtype), true
	}
	k.outText = "m * (idx)a.n + n"
	return k.launches(m)
}
