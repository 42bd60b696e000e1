package kernel

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// fewCase is a convolution of images x and y, channels-last, with weights of a type.
type fewCase struct {
	c       graph.Conv
	n, h, w int // of x
	x, y    int // channels
	weights graph.DType
}

func (c fewCase) shapes() (x, w, y graph.Shape) {
	oh, ow := c.c.Out(c.h, c.w)
	return graph.D(c.n, c.h, c.w, c.x), graph.D(c.y, c.c.KH, c.c.KW, c.x), graph.D(c.n, oh, ow, c.y)
}

// ops are the three of the convolution.
func (c fewCase) ops() []graph.Op {
	return []graph.Op{graph.Conv2D{Conv: c.c}, graph.Conv2DGradX{Conv: c.c, H: c.h, W: c.w}, graph.Conv2DGradW{Conv: c.c}}
}

// plan is of one step, one of the three ops.
func (c fewCase) plan(op graph.Op) *plan.Plan {
	sx, sw, sy := c.shapes()
	x, w, y := plan.Value{DType: graph.BF16, Dims: sx}, plan.Value{DType: c.weights, Dims: sw}, plan.Value{DType: graph.BF16, Dims: sy}
	values := []plan.Value{x, w, y}
	switch op.(type) {
	case graph.Conv2DGradX:
		values = []plan.Value{w, y, x}
	case graph.Conv2DGradW:
		values = []plan.Value{x, y, w}
	}
	return oneStep(op, values...)
}

// making is of that plan, done by a Few.
func (c fewCase) making(t testing.TB, op graph.Op, wide bool) *making {
	t.Helper()
	p := c.plan(op)
	if !FitsFew(p, 0) {
		t.Fatalf("%v of %+v does not fit", op, c)
	}
	p.Steps[0].Op = Few{op}
	m := makingOf(t, p, wide)
	m.crowded = wide
	return m
}

// someFew are those of conv32 and resnet128 in small, and odd geometries.
func someFew() (list []fewCase) {
	pads := func(kh, kw, t, b, l, r int) graph.Conv {
		return graph.Conv{Groups: 1, Window: graph.Window{KH: kh, KW: kw, StrideH: 1, StrideW: 1, PadT: t, PadB: b, PadL: l, PadR: r, DilH: 1, DilW: 1}}
	}
	three := graph.NewConv(3, 1, 1)
	return []fewCase{
		{three, 1, 32, 32, 3, 48, graph.BF16},
		{three, 2, 16, 32, 3, 64, graph.F32},
		{three, 1, 9, 70, 3, 96, graph.BF16},
		{three, 1, 20, 40, 64, 3, graph.BF16},
		{three, 3, 5, 7, 96, 3, graph.F32},
		{three, 3, 5, 7, 3, 56, graph.BF16}, // channels that the splits of correlate do not divide
		{three, 1, 4, 4, 1, 64, graph.F32},
		{graph.NewConv(3, 1, 0), 3, 6, 8, 4, 40, graph.BF16},
		{graph.NewConv(3, 1, 2), 1, 5, 6, 2, 21, graph.BF16},
		{graph.NewConv(1, 1, 0), 3, 7, 5, 8, 40, graph.BF16},
		{graph.NewConv(1, 1, 1), 2, 7, 5, 56, 8, graph.F32},
		{pads(1, 3, 0, 0, 3, 0), 2, 5, 7, 8, 33, graph.F32}, // pads beyond the kernel, on the left,
		{pads(5, 5, 2, 2, 0, 5), 1, 8, 9, 2, 24, graph.F32}, // and on the right
		{pads(3, 2, 2, 0, 0, 1), 3, 5, 37, 5, 72, graph.BF16},
		{pads(2, 3, 0, 3, 2, 0), 1, 6, 33, 19, 7, graph.F32},
		{pads(4, 4, 4, 1, 5, 0), 1, 5, 6, 128, 4, graph.BF16},
		{pads(1, 1, 0, 0, 0, 0), 1, 3, 90, 1, 256, graph.F32},
		{pads(8, 8, 3, 4, 4, 3), 1, 9, 35, 1, 128, graph.F32},
		{three, 2, 6, 6, 7, 64, graph.BF16}, // a block has threads beyond a tile's last pixel,
		{three, 1, 20, 34, 3, 64, graph.BF16},
		{three, 2, 17, 17, 5, 64, graph.BF16},                     // which there would be one of the next tile
		{pads(1, 64, 0, 0, 0, 0), 1, 160, 64, 1, 128, graph.BF16}, // tiles that shared memory bounds
	}
}

// TestFew holds all three ops to loops in float64, forwards, backwards and, every other one,
// with 64-bit indices and several tiles a block: all bits are equal, but for sums of other
// blocks.
func TestFew(t *testing.T) {
	oneGoroutine(t)
	var launches []Launch
	made := map[string][2][]Launch{}
	for i, c := range someFew() {
		for _, op := range c.ops() {
			var ways [2][]Launch
			for k := range 2 - i%2 {
				l, err := c.making(t, op, k == 1).step()
				if err != nil {
					t.Fatal(err)
				}
				ways[k] = l
				launches = append(launches, l...)
			}
			made[fmt.Sprint(i, op)] = ways
		}
	}
	compiler.prepare(t, launches)
	d := newDevice(t)
	for i, c := range someFew() {
		for _, op := range c.ops() {
			if err := c.check(t, d, op, made[fmt.Sprint(i, op)]); err != nil {
				t.Errorf("%v of %+v: %v", op, c, err)
			}
			d.used = 0
		}
	}
}

var (
	enumerated = regexp.MustCompile(`\b([A-Z]+) = (\d+)`)
	sharedDims = regexp.MustCompile(`SHARED\((\w+), \w+, \[(.+)\]\);`)
)

// sharedBytes is how much memory a block of a kernel shares, by its text, whose constants may
// be in the extents.
func sharedBytes(t *testing.T, text string) (bytes int) {
	t.Helper()
	known := map[string]int{}
	for _, m := range enumerated.FindAllStringSubmatch(text, -1) {
		known[m[1]], _ = strconv.Atoi(m[2]) // digits
	}
	for _, m := range sharedDims.FindAllStringSubmatch(text, -1) {
		n := map[string]int{"bf16": 2, "float": 4, "u32": 4, "double": 8}[m[1]]
		for _, factor := range strings.Split(strings.ReplaceAll(m[2], "][", " * "), " * ") {
			v, err := strconv.Atoi(factor)
			if v = cmp.Or(v, known[factor]); v == 0 {
				t.Fatalf("%s: %v", m[0], err)
			}
			n *= v
		}
		bytes += n
	}
	return bytes
}

// TestFewShared: whatever geometry fits a Few, its kernels take no more shared memory than the
// 48 KiB that every device gives a block, as ptxas refuses more; and there are some blocks.
func TestFewShared(t *testing.T) {
	most, tried := 0, 0
	for _, k := range [][2]int{{1, 1}, {1, 8}, {8, 1}, {3, 3}, {4, 4}, {5, 5}, {8, 8}, {7, 9}, {64, 1}, {1, 64}} {
		for _, few := range []int{1, 3, 8} {
			for _, many := range []int{9, 48, 128, 170, 256} {
				for _, size := range [][2]int{{1, 1}, {3, 90}, {65, 65}, {300, k[1]}, {k[0], 300}} {
					w := graph.Window{KH: k[0], KW: k[1], StrideH: 1, StrideW: 1, PadT: k[0] - 1, PadB: k[0] - 1, PadL: k[1] - 1, PadR: k[1] - 1, DilH: 1, DilW: 1}
					if max(size[0], size[1]) == 300 { // tall or wide images without a border
						w.PadT, w.PadB, w.PadL, w.PadR = 0, 0, 0, 0
					}
					c := fewCase{graph.Conv{Window: w, Groups: 1}, 2, size[0], size[1], few, many, graph.BF16}
					for _, op := range c.ops() {
						if p := c.plan(op); !FitsFew(p, 0) {
							continue
						}
						list, err := c.making(t, op, false).step()
						if err != nil {
							t.Fatalf("%v of %+v: %v", op, c, err)
						}
						tried++
						for _, l := range list {
							bytes := sharedBytes(t, l.Source)
							if most = max(most, bytes); bytes > 48<<10 {
								t.Errorf("%v of %+v: %d bytes", op, c, bytes)
							}
						}
					}
				}
			}
		}
	}
	if tried < 200 || most < 40<<10 {
		t.Errorf("%d kernels, %d bytes at most: the test has lost its subject", tried, most)
	}
}

// TestFewRefuses: what the kernels for few channels do not do is refused, as another does it
// then.
func TestFewRefuses(t *testing.T) {
	good := fewCase{graph.NewConv(3, 1, 1), 2, 8, 8, 3, 48, graph.BF16}
	change := func(f func(*fewCase)) fewCase { c := good; f(&c); return c }
	for name, c := range map[string]fewCase{
		"a stride down":              change(func(c *fewCase) { c.c.StrideH = 2 }),
		"a stride across":            change(func(c *fewCase) { c.c.StrideW = 2 }),
		"a dilation":                 change(func(c *fewCase) { c.c.DilW = 2 }),
		"many channels on each side": change(func(c *fewCase) { c.x = 9 }),
		"few channels on each side":  change(func(c *fewCase) { c.y = 3 }),
		"too many channels":          change(func(c *fewCase) { c.y = 264 }),
		"too many taps":              change(func(c *fewCase) { c.c = graph.NewConv(5, 1, 2) }),
		"too many weights":           change(func(c *fewCase) { c.c, c.x, c.y = graph.NewConv(5, 1, 2), 2, 168 }),
		"weights in float64":         change(func(c *fewCase) { c.weights = graph.F64 }),
	} {
		for _, op := range c.ops() {
			if FitsFew(c.plan(op), 0) {
				t.Errorf("%s: %v fits", name, op)
			}
		}
	}
	for _, op := range good.ops() {
		for v := range 3 {
			for name, f := range map[string]func(v *plan.Value){
				"an odd address": func(v *plan.Value) { v.Off = 8 }, "channels first": func(v *plan.Value) { v.Last = false }, "a wide image": func(v *plan.Value) { v.DType = graph.F64 },
			} {
				p := good.plan(op)
				if f(&p.Values[v]); FitsFew(p, 0) {
					t.Errorf("%s of value %d: %v fits", name, v, op)
				}
			}
		}
		if !FitsFew(good.plan(op), 0) {
			t.Errorf("%v does not fit", op)
		}
	}
	grouped := graph.Conv2D{Conv: graph.Conv{Window: graph.SquareWindow(3, 1, 1), Groups: 3}}
	image := func(c int) plan.Value { return plan.Value{DType: graph.BF16, Dims: graph.D(2, 8, 8, c)} }
	if FitsFew(oneStep(grouped, image(3), plan.Value{DType: graph.BF16, Dims: graph.D(48, 3, 3, 1)}, image(48)), 0) {
		t.Error("groups fit")
	}
}

// each calls f with the places in x, w and y of each product.
func (c fewCase) each(f func(x, w, y int)) {
	sx, sw, sy := c.shapes()
	for row := range sy.With(3, 1).Len() {
		n, i, j := row/(sy.At(1)*sy.At(2)), row/sy.At(2)%sy.At(1), row%sy.At(2)
		for k := range sw.With(0, 1).Len() {
			tap, ch := k/c.x, k%c.x
			r, s := i+tap/c.c.KW-c.c.PadT, j+tap%c.c.KW-c.c.PadL
			if r < 0 || r >= sx.At(1) || s < 0 || s >= sx.At(2) {
				continue
			}
			for o := range c.y {
				f(((n*sx.At(1)+r)*sx.At(2)+s)*c.x+ch, o*sw.With(0, 1).Len()+k, row*c.y+o)
			}
		}
	}
}

func (c fewCase) check(t *testing.T, d *device, op graph.Op, ways [2][]Launch) error {
	m := c.making(t, op, false)
	if _, err := m.step(); err != nil {
		return err
	}
	var values [3]*exec.Tensor
	var at [3]int
	r := rand.New(rand.NewPCG(1, 8))
	for v := range values {
		values[v] = exec.NewTensor(graph.Type{DType: m.value(v).DType, Shape: m.value(v).Dims})
		for i := range values[v].Type.Shape.Len() {
			values[v].SetAt(i, r.NormFloat64())
		}
		at[v] = d.alloc(len(values[v].Bytes()))
		copy(d.memory[at[v]:], values[v].Bytes())
	}
	scratch := d.alloc(m.scratch)
	want, size := c.reference(op, values)
	d.within = []piece{{at[0], len(values[0].Bytes()), false}, {at[1], len(values[1].Bytes()), false}, {at[2], len(values[2].Bytes()), true}, {scratch, m.scratch, true}}
	defer func() { d.within = nil }()
	var first []byte
	for way := range 4 {
		if ways[way/2] == nil {
			break
		}
		d.order = way % 2
		got := d.memory[at[2]:][:len(values[2].Bytes())]
		spoil(got)
		spoil(d.memory[scratch:][:m.scratch])
		for _, l := range ways[way/2] {
			if err := d.run(&l, Memory{Value: func(v int) uint64 { return deviceBase + uint64(at[v]) }, Scratch: deviceBase + uint64(scratch)}); err != nil {
				return err
			}
		}
		if !d.intact(at[2], len(got)) || !d.intact(scratch, m.scratch) {
			return fmt.Errorf("it stores beside its result")
		}
		if _, sums := op.(graph.Conv2DGradW); first == nil || sums && way == 2 {
			first = bytes.Clone(got)
			copy(values[2].Bytes(), first)
			if err := rightTo(values[2], want, size); err != nil {
				return fmt.Errorf("way %d: %w", way, err)
			}
		}
		if !bytes.Equal(first, got) {
			return fmt.Errorf("way %d has other bits", way)
		}
	}
	return nil
}

// reference is the result in float64, and the sums of the magnitudes of what is added.
func (c fewCase) reference(op graph.Op, values [3]*exec.Tensor) (want, size []float64) {
	n := values[2].Type.Shape.Len()
	want, size = make([]float64, n), make([]float64, n)
	numbers := func(v int) []float64 {
		list := make([]float64, values[v].Type.Shape.Len())
		for i := range list {
			list[i] = nearestBF16(values[v].At(i))
		}
		return list
	}
	a, b := numbers(0), numbers(1)
	c.each(func(x, w, y int) {
		to, p := y, x
		q := w
		switch op.(type) {
		case graph.Conv2DGradX:
			to, p, q = x, w, y
		case graph.Conv2DGradW:
			to, p, q = w, x, y
		}
		v := a[p] * b[q]
		want[to] += v
		size[to] += math.Abs(v)
	})
	return want, size
}

// nearestBF16 is the nearest bfloat16.
func nearestBF16(x float64) float64 {
	t := exec.NewTensor(graph.T(graph.BF16, 1))
	t.SetAt(0, x)
	return t.At(0)
}

// rightTo says whether a result is right to roundings of sums of that size.
func rightTo(got *exec.Tensor, want, size []float64) error {
	for i, w := range want {
		bound := size[i] / (1 << 20)
		if got.Type.DType == graph.BF16 {
			bound += math.Abs(w) / (1 << 8)
		}
		if v := got.At(i); !(math.Abs(v-w) <= bound) {
			return fmt.Errorf("element %d of %d is %v, want %v", i, len(want), v, w)
		}
	}
	return nil
}
