package kernel

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

var update = flag.Bool("update", false, "write testdata/*.golden")

// planOf is an allocated plan of a graph.
func planOf(t testing.TB, o plan.Options, build func(b *graph.Builder)) *plan.Plan {
	t.Helper()
	var b graph.Builder
	build(&b)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p := plan.New(g, o)
	for i := range p.Steps {
		p.Steps[i].Scratch = Scratch(p, i)
	}
	p.Allocate()
	return p
}

// batchNorm is the statistics of images and their use.
func batchNorm(b *graph.Builder, images graph.Type) {
	x := b.Conv2D(b.Input("x", images), b.Input("w", graph.T(graph.F32, images.Shape.At(1), images.Shape.At(1), 1, 1)), graph.NewConv(1, 1, 0))
	mean := b.MeanKeep(x, 0, 2, 3)
	centred := b.Sub(x, mean)
	variance := b.MeanKeep(b.Square(centred), 0, 2, 3)
	b.Output("y", b.LeakyRelu(b.Mul(centred, b.Pow(b.Shift(variance, 1e-5), -0.5)), 0.2))
}

// TestGoldens shows the text of some kernels, without the dialect and their names.
func TestGoldens(t *testing.T) {
	for _, c := range []struct {
		name string
		o    plan.Options
		g    func(b *graph.Builder)
	}{
		{"pointwise", plan.Options{}, func(b *graph.Builder) {
			x := b.Input("x", graph.T(graph.F32, 8, 64))
			b.Output("y", b.Softplus(b.Add(b.Scale(x, 2), b.Input("row", graph.T(graph.F32, 8, 1)))))
		}},
		{"batchnorm", plan.Options{WeightsLast: true, BF16Images: true}, func(b *graph.Builder) { batchNorm(b, graph.T(graph.F32, 8, 16, 8, 8)) }},
		{"sums", plan.Options{}, func(b *graph.Builder) {
			x := b.Square(b.Input("x", graph.T(graph.F32, 40000, 24)))
			b.Output("columns", b.SumKeep(x, 0))
			b.Output("all", b.Sum(x))
		}},
		{"transpose", plan.Options{}, func(b *graph.Builder) {
			b.Output("y", b.Transpose(b.Input("x", graph.T(graph.F32, 40, 70)), 1, 0))
		}},
		{"draw", plan.Options{}, func(b *graph.Builder) {
			b.Output("y", b.Draw(b.Input("key", graph.KeyType), graph.Normal, 2, 1, graph.T(graph.F32, 3, 5)))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := planOf(t, c.o, c.g)
			var text strings.Builder
			for i := range p.Steps {
				launches, err := For(p, i)
				if err != nil {
					t.Fatal(err)
				}
				for _, l := range launches {
					fmt.Fprintf(&text, "// step %d, %v: %d blocks\n%s\n", i, p.Steps[i].Op, l.Grid, strings.ReplaceAll(l.Source[len(dialect):], l.Entry, "NAME"))
				}
			}
			golden(t, c.name, text.String())
		})
	}
	t.Run("columns", func(t *testing.T) {
		var text strings.Builder
		for _, c := range someColumns()[:3] {
			l, err := c.making(t, false).step()
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&text, "// %v: %d blocks\n%s\n", c.op, l[0].Grid, strings.ReplaceAll(l[0].Source[len(dialect):], l[0].Entry, "NAME"))
		}
		golden(t, "columns", text.String())
	})
	t.Run("few", func(t *testing.T) {
		var text strings.Builder
		c := someFew()[0]
		for _, op := range c.ops() {
			list, err := c.making(t, op, false).step()
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range list {
				fmt.Fprintf(&text, "// %v: %d blocks\n%s\n", op, l.Grid, strings.ReplaceAll(l.Source[len(dialect):], l.Entry, "NAME"))
			}
		}
		golden(t, "few", text.String())
	})
}

// golden holds a text to testdata/NAME.golden.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		got, all := strings.Split(text, "\n"), strings.Split(string(want), "\n")
		at := 0
		for at < min(len(got), len(all)) && got[at] == all[at] {
			at++
		}
		t.Errorf("the text of %s is not that of %s from line %d on: run with -update and read the difference", name, path, at+1)
	}
}

// TestTextsAreShared: extents and constants are arguments, so other extents and
// numbers make the same kernels, and other ops others.
func TestTextsAreShared(t *testing.T) {
	entries := func(n, c int, scale float64, fn func(b *graph.Builder, x graph.ID) graph.ID) (all string) {
		p := planOf(t, plan.Options{}, func(b *graph.Builder) {
			x := b.Input("x", graph.T(graph.F32, n, c))
			y := b.Scale(fn(b, b.Add(x, b.Input("row", graph.T(graph.F32, 1, c)))), scale)
			b.Output("y", y)
			b.Output("s", b.SumKeep(y, 0))
		})
		for _, l := range launchesOf(t, p) {
			all += l.Entry + " "
		}
		return all
	}
	tanh := func(b *graph.Builder, x graph.ID) graph.ID { return b.Tanh(x) }
	exp := func(b *graph.Builder, x graph.ID) graph.ID { return b.Exp(x) }
	one := entries(100, 64, 0.5, tanh)
	if other := entries(40, 128, 3, tanh); one != other {
		t.Errorf("%s and %s differ", one, other)
	}
	if other := entries(100, 64, 0.5, exp); one == other {
		t.Errorf("tanh and exp are both %s", one)
	}
}

// TestWide: arrays of 2^31 elements and more have 64-bit indices, and their grids fit; those
// of a little fewer, too, as the last threads of a grid count past the end.
func TestWide(t *testing.T) {
	for _, c := range []struct {
		rows int
		wide bool
	}{{1 << 10, false}, {1<<21 - 1<<15, false}, {1<<21 - 1, true}, {1 << 21, true}, {1 << 24, true}} {
		p := planOf(t, plan.Options{}, func(b *graph.Builder) {
			x := b.Input("x", graph.T(graph.U8, c.rows, 1<<10))
			y := b.Add(x, x)
			b.Output("y", y)
			b.Output("s", b.SumKeep(y, 1))
			b.Output("t", b.Transpose(x, 1, 0))
			b.Output("p", b.Pad(x, 1, 3, 2))
			b.Output("u", b.Slice(x, 0, 1, c.rows, 3))
			b.Output("i", b.Iota(graph.T(graph.U8, c.rows, 1<<10), 0))
		})
		seen := false
		for i, s := range p.Steps {
			want := false
			for _, v := range append(s.In, s.Out...) {
				want = want || p.Values[v].Dims.Len() > 1<<31-1<<16
			}
			launches, err := For(p, i)
			if err != nil {
				t.Fatal(err)
			}
			if wide := strings.Contains(launches[0].Source, "typedef i64 idx;"); wide != want {
				t.Errorf("%d rows: %s has wide indices: %v, want %v", c.rows, launches[0].Entry, wide, want)
			}
			seen = seen || want
		}
		if seen != c.wide {
			t.Errorf("%d rows: a step has large arrays: %v", c.rows, seen)
		}
	}
}

// TestGridsHaveBounds: what no grid covers is an error.
func TestGridsHaveBounds(t *testing.T) {
	p := planOf(t, plan.Options{}, func(b *graph.Builder) {
		b.Output("y", b.Iota(graph.T(graph.U8, 1<<40), 0))
	})
	for i, s := range p.Steps {
		if s.Kind() != plan.KindIota {
			continue
		}
		if _, err := For(p, i); err == nil || !strings.Contains(err.Error(), "no device takes a grid of") {
			t.Errorf("got %v, want an error about the grid", err)
		}
	}
}

// TestQuot divides by products and shifts.
func TestQuot(t *testing.T) {
	for d := 1; d < 1<<31; d += d/3 + 1 {
		for _, d := range []int{d, d + 1, min(2*d-1, 1<<31-1)} {
			var p params
			p.addQuot(d)
			m, s := p.fields[1].bits, p.fields[2].bits
			for _, n := range []int{0, 1, d - 1, d, d + 1, 2*d - 1, 7*d + 3, 1<<31 - 1} {
				if n >= 1<<31 {
					continue
				}
				if q := uint32(m*uint64(n)>>32+uint64(n)) >> s; int(q) != n/d {
					t.Fatalf("%d / %d: got %d, want %d", n, d, q, n/d)
				}
			}
		}
	}
}

// TestNoKernels: collectives are no kernels, and empty results take none.
func TestNoKernels(t *testing.T) {
	p := planOf(t, plan.Options{World: 2}, func(b *graph.Builder) {
		x := b.Input("x", graph.T(graph.F32, 0, 3))
		b.Output("y", b.Neg(x))
		b.Output("z", b.AllReduce(1, "z", b.Neg(b.Input("w", graph.T(graph.F32, 4))))[0])
	})
	for i, s := range p.Steps {
		launches, err := For(p, i)
		switch s.Op.(type) {
		case plan.Start, plan.Wait:
			if err == nil || !strings.Contains(err.Error(), "there is no kernel") {
				t.Errorf("%v: got %v, want an error", s.Op, err)
			}
		default:
			if empty := p.Values[s.Out[0]].Dims.Len() == 0; err != nil || empty != (len(launches) == 0) {
				t.Errorf("%v: %d kernels, %v", s.Op, len(launches), err)
			}
		}
	}
}

// TestSharedHasBounds: however many sums a group has, of columns, rows, both or all, its
// kernels take no more shared memory than the 48 KiB that every device gives a block, less
// the word by which blocks are counted: ptxas refuses more.
func TestSharedHasBounds(t *testing.T) {
	shared := regexp.MustCompile(`SHARED\((\w+), \w+, \[(\d+)\]\);`)
	for name, axes := range map[string][]int{"columns": {0, 1}, "columns and images": {1}, "rows": {2}, "all": {0, 1, 2}} {
		most := 0
		for _, n := range []int{1, 8, 10, 11, 12, 13, 16, 20, 2 * maxAccumulators} {
			p := planOf(t, plan.Options{}, func(b *graph.Builder) {
				x := b.Input("x", graph.T(graph.F32, 4, 4096, 96))
				for i := range n {
					b.Output(fmt.Sprint(i), b.Sum(b.Tanh(b.Scale(x, float64(i+1))), axes...))
				}
			})
			for i, s := range p.Steps {
				f, ok := s.Op.(*plan.Fused)
				if !ok {
					continue
				}
				most = max(most, len(f.Sums))
				list, err := For(p, i)
				if err != nil {
					t.Fatalf("%d sums of %s: %v", n, name, err)
				}
				for _, l := range list {
					bytes := 4
					for _, m := range shared.FindAllStringSubmatch(l.Source, -1) {
						numbers, _ := strconv.Atoi(m[2]) // digits
						bytes += numbers * map[string]int{"double": 8, "i64": 8, "float": 4}[m[1]]
					}
					if bytes > 48<<10 {
						t.Errorf("%d sums of %s: %s takes %d bytes of shared memory", n, name, l.Entry, bytes)
					}
				}
			}
		}
		if most < maxAccumulators {
			t.Errorf("%s: at most %d sums are in a group: the test has lost its subject", name, most)
		}
	}
}

// TestCountersAreCounted: the counters by which a step's blocks meet are within what the step
// says that it needs, where a second launch finishes its sums, too; beyond lie another step's.
func TestCountersAreCounted(t *testing.T) {
	p := planOf(t, plan.Options{}, func(b *graph.Builder) {
		x := b.Input("x", graph.T(graph.F32, 8, 3, 1<<15))
		for i := range 2 * mostWithin {
			b.Output(fmt.Sprint(i), b.Sum(b.Tanh(b.Scale(x, float64(i+1))), 0, 2))
		}
	})
	met := 0
	for i := range p.Steps {
		list, err := For(p, i)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range list {
			for _, f := range l.args.fields {
				if f.kind != counterField {
					continue
				}
				if int(f.bits) >= Counters(list) {
					t.Errorf("a counter at %d of %d bytes, in %d launches", f.bits, Counters(list), len(list))
				}
				if len(list) > 1 {
					met++
				}
			}
		}
	}
	if met == 0 {
		t.Error("no blocks meet before a second launch: the test has lost its subject")
	}
}

// TestArgumentsHaveBounds: an argument that no kernel takes is an error.
func TestArgumentsHaveBounds(t *testing.T) {
	p := planOf(t, plan.Options{}, func(b *graph.Builder) {
		y := b.Input("x", graph.T(graph.F32, 64))
		for i := range 600 {
			y = b.Tanh(b.Add(y, b.Input(fmt.Sprint(i), graph.T(graph.F32, 64))))
		}
		b.Output("y", y)
	})
	for i := range p.Steps {
		if _, ok := p.Steps[i].Op.(*plan.Fused); !ok {
			continue
		}
		if _, err := For(p, i); err == nil || !strings.Contains(err.Error(), "and a kernel takes 4096") {
			t.Errorf("got %v, want an error about the argument", err)
		}
		if Batches(p, i) {
			t.Error("a group without a kernel can be in a batch")
		}
	}
}
