package kernel

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
)

// handWritten is a kernel of a line of text, whose argument is a pointer to 64 floats.
func handWritten(t *testing.T, head, body string) Launch {
	t.Helper()
	s := &source{}
	s.pointer("float", "x", 0)
	s.line("%s(NAME, 64, struct NAME_args) {\n%s\n}", head, body)
	l, err := s.launch("test", 2)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestShimFinds: what the dialect forbids ends the process with a sentence.
func TestShimFinds(t *testing.T) {
	for _, c := range []struct {
		name, head, body, want string
		block                  int
	}{
		{"a barrier that one thread misses", "KERNEL_SYNC", "if (TID != 3)\n\tSYNC();", "threads part: ", 0},
		{"barriers at different lines", "KERNEL_SYNC", "if (TID < 32)\n\tSYNC();\nelse\n\tSYNC();", "threads part: the first thread is at line", 0},
		{"a barrier where none is", "KERNEL", "SYNC();", "it must be a KERNEL_SYNC", 0},
		{"a counter that does not begin at 0", "KERNEL_SYNC", "LAST((u32 *)a.x, 2);", "a counter of blocks was not 0", 0},
		{"half a warp that multiplies", "KERNEL_SYNC", "float c[4] = {0, 0, 0, 0};\n\tMMA(c, 0, 0, 0, 0, 0, 0);", "not whole warps", 16},
		{"a product that one warp misses", "KERNEL_SYNC", "float c[4] = {0, 0, 0, 0};\n\tif (TID < 32)\n\t\tMMA(c, 0, 0, 0, 0, 0, 0);", "threads part: ", 0},
		{"memory that is not aligned", "KERNEL", "ALIGNED((char *)a.x + 4, 16);", "is not aligned", 0},
		{"a block that is too large", "KERNEL", "", "no such grid or block", 65},
		{"a load beyond an array", "KERNEL", "if (a.x[TID + 1] == 1)\n\ta.x[0] = 2;", "loads 4 bytes where it may not: at 256 of 256", 0},
		{"a vector beyond an array", "KERNEL", "const uint2 *v = (const uint2 *)(a.x + 64 - TID % 2 * 2);\n\tif (v->x + v->y == 1)\n\t\ta.x[0] = 2;", "loads 4 bytes where it may not: at 256 of 256", 0},
		{"a store before an array", "KERNEL", "a.x[TID - 1] = 0;", "stores 4 bytes where it may not: at -4 of 256", 0},
		{"a load beyond shared memory", "KERNEL_SYNC", "SHARED(float, sh, [16]);\n\tif (TID < 20)\n\t\ta.x[0] = sh[TID];", "loads 4 bytes at 64 of memory of a block, which has 64", 0},
		{"a store before shared memory", "KERNEL_SYNC", "SHARED(float, sh, [64]);\n\tfloat *last = sh + TID - 1;\n\t*last = 1;", "stores 4 bytes at -4 of memory of a block", 0},
		{"a vector at an odd address", "KERNEL", "const uint2 v = *(const uint2 *)(a.x + 1);\n\tif (v.x == 1)\n\t\ta.x[0] = 2;", "illegal instruction", 0},
		{"an array of a thread that is too short", "KERNEL", "float v[8];\n\tv[TID % 16] = a.x[TID];\n\ta.x[TID] = v[TID % 8];", "illegal instruction", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDevice(t)
			l := handWritten(t, c.head, c.body)
			mem := d.alloc(256)
			at := uint64(deviceBase + mem)
			d.within = []piece{{mem, 256, true}}
			if d.block = c.block; d.block == 0 {
				d.block = 64
			}
			err := d.run(&l, Memory{Value: func(int) uint64 { return at }})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestShimFindsStores: what a kernel may only read it may not store to.
func TestShimFindsStores(t *testing.T) {
	l := handWritten(t, "KERNEL", "a.x[TID] = 1;")
	for _, writable := range []bool{true, false} {
		d := newDevice(t)
		at := d.alloc(256)
		d.block, d.within = 64, []piece{{at, 256, writable}}
		err := d.run(&l, Memory{Value: func(int) uint64 { return deviceBase + uint64(at) }})
		if writable != (err == nil) || err != nil && !strings.Contains(err.Error(), "stores 4 bytes where it may not") {
			t.Errorf("writable %v: got %v", writable, err)
		}
	}
}

// TestShimRuns: shuffles reach the rest of the warp, shared memory begins as NaN in
// every block, and threads of a block meet.
func TestShimRuns(t *testing.T) {
	l := handWritten(t, "KERNEL_SYNC", `	SHARED(float, sh, [64]);
	const float before = sh[TID];
	const float next = SHFL_DOWN((float)TID, 1);
	SYNC();
	sh[TID] = next;
	SYNC();
	if (BID == 1)
		a.x[TID] = before == before ? -1 : sh[63 - TID];`)
	for order := range 2 {
		d := newDevice(t)
		d.order, d.block = order, 64
		at := d.alloc(256)
		if err := d.run(&l, Memory{Value: func(int) uint64 { return deviceBase + uint64(at) }}); err != nil {
			t.Fatal(err)
		}
		for i := range 64 {
			from := 63 - i
			want := float32(from + 1)
			if from%32 == 31 { // the last of its warp
				want = float32(from)
			}
			if got := math.Float32frombits(binary.LittleEndian.Uint32(d.memory[at+4*i:])); got != want {
				t.Fatalf("order %d, element %d: got %v, want %v", order, i, got, want)
			}
		}
	}
}

// TestShimWarps: at a product of matrices the threads of a warp meet, and not those of a block:
// of what other warps write the first sees nothing behind it, but behind a SYNC.
func TestShimWarps(t *testing.T) {
	for between, want := range map[string]float32{"": 32, "SYNC();": 64} {
		l := handWritten(t, "KERNEL_SYNC", `	SHARED(float, sh, [64]);
	float c[4] = {0, 0, 0, 0}, written = 0;
	sh[TID] = 1;
	MMA(c, 0, 0, 0, 0, 0, 0);
	`+between+`
	for (int k = 0; k < 64; k++)
		written += sh[k] == 1;
	a.x[TID] = written;`)
		for order := range 2 {
			d := newDevice(t)
			d.order, d.block = order, 64
			at := d.alloc(256)
			if err := d.run(&l, Memory{Value: func(int) uint64 { return deviceBase + uint64(at) }}); err != nil {
				t.Fatal(err)
			}
			for i := range 64 {
				want := want
				if i/32 != order { // the warp that is the last
					want = 64
				}
				if got := math.Float32frombits(binary.LittleEndian.Uint32(d.memory[at+4*i:])); got != want {
					t.Fatalf("%q, order %d: thread %d sees what %v threads have written, want %v", between, order, i, got, want)
				}
			}
		}
	}
}

// TestShimLast: of the blocks that come to a counter one is the last, run after run, and
// it sees what the other has stored.
func TestShimLast(t *testing.T) {
	l := handWritten(t, "KERNEL_SYNC", `	a.x[1 + BID] = 7 + BID;
	if (!LAST((u32 *)a.x, 2))
		return;
	a.x[3 + TID] = a.x[1] + a.x[2] + BID;`)
	for order := range 2 {
		d := newDevice(t)
		d.order, d.block = order, 32
		at := d.alloc(256)
		clear(d.memory[at:][:4])
		for range 3 {
			spoil(d.memory[at+4:][:252])
			if err := d.run(&l, Memory{Value: func(int) uint64 { return deviceBase + uint64(at) }}); err != nil {
				t.Fatal(err)
			}
			if left := binary.LittleEndian.Uint32(d.memory[at:]); left != 0 {
				t.Errorf("order %d: the counter is left at %d", order, left)
			}
			if got, want := math.Float32frombits(binary.LittleEndian.Uint32(d.memory[at+4*(3+31):])), float32(16-order); got != want {
				t.Errorf("order %d: got %v, want %v", order, got, want)
			}
		}
	}
}

// TestShimMMA: what a warp's fragments hold is multiplied as matrices are, each warp its
// own. Integers, so sums are exact in any order.
func TestShimMMA(t *testing.T) {
	const rows, columns, depth, warps = 16, 8, 16, 2
	const perWarp = rows*depth + depth*columns + rows*columns
	l := handWritten(t, "KERNEL_SYNC", `	float *m = a.x + TID / 32 * 512, *n = m + 256, *p = n + 128;
	const int g = TID % 32 / 4, t = TID % 4;
	u32 x[4], y[2];
	for (int i = 0; i < 4; i++) {
		const float *at = m + (g + i % 2 * 8) * 16 + 2 * t + i / 2 * 8;
		x[i] = BF16X2(at[0], at[1]);
	}
	for (int i = 0; i < 2; i++)
		y[i] = BF16X2(n[(2 * t + i * 8) * 8 + g], n[(2 * t + i * 8 + 1) * 8 + g]);
	float c[4] = {p[g * 8 + 2 * t], p[g * 8 + 2 * t + 1], p[(g + 8) * 8 + 2 * t], p[(g + 8) * 8 + 2 * t + 1]};
	MMA(c, x[0], x[1], x[2], x[3], y[0], y[1]);
	for (int i = 0; i < 4; i++)
		p[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = c[i];`)
	for order := range 2 {
		d := newDevice(t)
		d.order, d.block = order, 32*warps
		l.Grid = 1
		at := d.alloc(4 * perWarp * warps)
		r := rand.New(rand.NewPCG(3, 7))
		numbers := make([]float32, perWarp*warps)
		for i := range numbers {
			numbers[i] = float32(r.IntN(100) - 50)
			binary.LittleEndian.PutUint32(d.memory[at+4*i:], math.Float32bits(numbers[i]))
		}
		if err := d.run(&l, Memory{Value: func(int) uint64 { return deviceBase + uint64(at) }}); err != nil {
			t.Fatal(err)
		}
		for w := range warps {
			m := numbers[w*perWarp:]
			n, p := m[rows*depth:], m[rows*depth+depth*columns:]
			for i := range rows {
				for j := range columns {
					want := p[i*columns+j]
					for k := range depth {
						want += m[i*depth+k] * n[k*columns+j]
					}
					if got := math.Float32frombits(binary.LittleEndian.Uint32(d.memory[at+4*(w*perWarp+384+i*columns+j):])); got != want {
						t.Fatalf("order %d, warp %d, row %d, column %d: got %v, want %v", order, w, i, j, got, want)
					}
				}
			}
		}
	}
}

// TestDraws: draws have the bits of package philox, also of a late step and of samples beyond
// 16 bits.
func TestDraws(t *testing.T) {
	key := exectest.Arg{Shape: graph.D(3), DType: graph.I64, Fixed: true, Fill: exectest.List(1<<40+77, 1<<31+5, 1<<20+100)}
	c := exectest.Case{Name: "draws", Args: []exectest.Arg{key}, Build: func(b *graph.Builder, x []graph.ID) []graph.ID {
		draw := func(d graph.Dist) graph.ID { return b.Draw(x[0], d, philox.Latent, 3, graph.T(graph.F64, 3, 1001)) }
		return []graph.ID{draw(graph.Normal), draw(graph.Uniform), draw(graph.Rademacher)}
	}}
	out := results(t, &backend{device: newDevice(t)}, c)
	for row := range 3 {
		name := philox.Name{Seed: 1<<40 + 77, Step: 1<<31 + 5, Sample: uint32(1<<20 + 100 + row), Purpose: philox.Latent, Sub: 3}
		normal, uniform := make([]float64, 1001), make([]float64, 1001)
		name.Normal(normal)
		name.Uniform(uniform)
		for i := range 1001 {
			sign := 2*float64(name.Uint32(i)&1) - 1
			for k, want := range []float64{normal[i], uniform[i], sign} {
				if got := at(out, k, row*1001+i); math.Float64bits(got) != math.Float64bits(want) {
					t.Fatalf("draw %d, row %d, element %d: got %v, want %v", k, row, i, got, want)
				}
			}
		}
	}
}

// TestSplitProducts: products whose k is cut into parts have all of it, also where the last part
// is shorter: rows of ones sum up y's columns.
func TestSplitProducts(t *testing.T) {
	const m, n = 3, 5
	d := newDevice(t)
	for _, k := range []int{1025, 1100, 1536, 5000} {
		ones := exectest.Arg{Shape: graph.D(m, k), Fixed: true, Fill: exectest.Between(1, 1)}
		y := exectest.Arg{Shape: graph.D(k, n), Fixed: true, Fill: func(dst []float64, _ philox.Name) {
			for i := range dst {
				dst[i] = float64(i % 7)
			}
		}}
		c := exectest.Case{Name: "product", Args: []exectest.Arg{ones, y}, Build: func(b *graph.Builder, x []graph.ID) []graph.ID {
			return []graph.ID{b.MatMul(x[0], x[1], false, false)}
		}}
		out := results(t, &backend{device: d}, c)
		for i := range m * n {
			want := 0.0
			for row := range k {
				want += float64((row*n + i%n) % 7)
			}
			if got := out["y0"].At(i); got != want {
				t.Errorf("%d terms, element %d: got %v, want %v", k, i, got, want)
			}
		}
	}
}

func at(out map[string]*exec.Tensor, k, i int) float64 {
	return out[[]string{"y0", "y1", "y2"}[k]].F64()[i]
}
