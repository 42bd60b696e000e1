package cpu

import (
	"context"
	"fmt"
	"math"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
)

// The variance in one pass keeps every digit of a float32, far from 0 as well.
func TestVarianceFarFromZero(t *testing.T) {
	be := open(t, Config{Threads: 2})
	for _, cols := range []int{1, 3, 16, 96, 2304} {
		for _, mean := range []float64{0, 10, 4096} {
			t.Run(fmt.Sprintf("%d columns around %v", cols, mean), func(t *testing.T) {
				const rows = 1000
				var b graph.Builder
				x := b.Input("x", graph.T(graph.F32, rows, cols))
				b.Output("v", b.MeanKeep(b.Square(b.Sub(x, b.MeanKeep(x, 0))), 0))
				g, err := b.Build()
				if err != nil {
					t.Fatal(err)
				}
				p, err := be.Compile(g, exec.Options{Name: "variance"})
				if err != nil {
					t.Fatal(err)
				}
				closing(t, p)
				noise := make([]float64, rows*cols)
				philox.Name{Purpose: philox.Testing}.Normal(noise)
				in := p.Input("x").F32()
				for i, n := range noise {
					in[i] = float32(mean + n)
				}
				if err := exec.Run(context.Background(), p); err != nil {
					t.Fatal(err)
				}
				for c := range cols {
					if got, want := p.Output("v").At(c), columnVariance(in[c:], cols); !(math.Abs(got/want-1) <= 2e-7) {
						t.Fatalf("column %d: %v, want %v", c, got, want)
					}
				}
			})
		}
	}
}

// Numbers that are all the same have no variance, and never one below nought, of which the
// root that follows would be no number.
func TestVarianceOfOneNumber(t *testing.T) {
	const rows, cols = 3001, 64
	var b graph.Builder
	x := b.Input("x", graph.T(graph.F32, rows, cols))
	b.Output("v", b.MeanKeep(b.Square(b.Sub(x, b.MeanKeep(x, 0))), 0))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p, err := open(t, Config{Threads: 2}).Compile(g, exec.Options{Name: "variance"})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, p)
	in := p.Input("x").F32()
	for i := range in {
		in[i] = 1 / float32(i%cols+3)
	}
	if err := exec.Run(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	for c, v := range p.Output("v").F32() {
		if !(v >= 0 && v < 1e-15) {
			t.Errorf("the variance of %v is %v", in[c], v)
		}
	}
}

// columnVariance is the variance of every cols-th element of x, in two passes.
func columnVariance(x []float32, cols int) float64 {
	mean, v, n := 0.0, 0.0, 0.0
	for i := 0; i < len(x); i += cols {
		mean += float64(x[i])
		n++
	}
	mean /= n
	for i := 0; i < len(x); i += cols {
		v += (float64(x[i]) - mean) * (float64(x[i]) - mean)
	}
	return v / n
}

// A sum of differences keeps its digits where the sums of what they are the differences
// of are made, too: those are large, and rounded.
func TestSumsOfDifferences(t *testing.T) {
	const rows, cols = 4096, 4
	var b graph.Builder
	x, y := b.Input("x", graph.T(graph.F32, rows, cols)), b.Input("y", graph.T(graph.F32, rows, cols))
	about := b.Input("about", graph.T(graph.F32, 1, cols))
	for _, id := range []graph.ID{x, y} {
		b.Output(fmt.Sprint("sum of ", id), b.SumKeep(id, 0))
	}
	differences := map[string]graph.ID{"x − y": b.Sub(x, y), "x − c": b.Sub(x, about), "−x + y": b.Add(b.Neg(x), y), "2c − 2x": b.Sub(b.Scale(about, 2), b.Scale(x, 2))}
	for name, id := range differences {
		b.Output(name, id)
		b.Output("sum of "+name, b.SumKeep(id, 0))
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p, err := open(t, Config{Threads: 1}).Compile(g, exec.Options{Name: "differences"})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, p)
	noise := make([]float64, rows*cols)
	philox.Name{Purpose: philox.Testing}.Normal(noise)
	for i, n := range noise {
		p.Input("x").F32()[i] = float32(1000 + n)
		p.Input("y").F32()[i] = float32(1000 + noise[len(noise)-1-i])
		p.Input("about").F32()[i%cols] = 1000
	}
	if err := exec.Run(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	for name := range differences {
		d := p.Output(name).F32()
		for c := range cols {
			want := 0.0
			for i := c; i < len(d); i += cols {
				want += float64(d[i])
			}
			if got := p.Output("sum of " + name).At(c); !(math.Abs(got/want-1) <= 1e-6) {
				t.Errorf("column %d: the sum of %s is %v, want %v", c, name, got, want)
			}
		}
	}
}

// sums is what a program makes of x, of type f32[rows,cols], and c, f32[1,cols].
func sums(t *testing.T, x, c []float32, build func(b *graph.Builder, x, c graph.ID)) exec.Program {
	t.Helper()
	var b graph.Builder
	ct := graph.T(graph.F32, 1, len(c))
	ci := b.Input("c", ct) // the first leaf
	build(&b, b.Input("x", graph.T(graph.F32, len(x)/len(c), len(c))), ci)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p, err := open(t, Config{Threads: 1}).Compile(g, exec.Options{Name: "sums"})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, p)
	copy(p.Input("x").F32(), x)
	copy(p.Input("c").F32(), c)
	if err := exec.Run(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// What is taken from 2x is no mean of it, though it is divided by as many: no sum of 2x is
// made, and c, the first leaf, is none.
func TestSumsLessWhatIsNoMean(t *testing.T) {
	const rows, cols = 64, 128
	x, c := make([]float32, rows*cols), make([]float32, cols)
	noise := make([]float64, rows*cols)
	philox.Name{Purpose: philox.Testing}.Uniform(noise)
	for i, n := range noise {
		x[i], c[i%cols] = float32(1000+n), rows*2*1000.5
	}
	p := sums(t, x, c, func(b *graph.Builder, x, c graph.ID) {
		b.Output("x", b.SumKeep(x, 0))
		b.Output("rest", b.SumKeep(b.Sub(b.Scale(x, 2), b.Scale(c, 1.0/rows)), 0))
	})
	for k := range cols {
		want := 0.0
		for i := k; i < len(x); i += cols {
			want += 2*float64(x[i]) - float64(c[k])/rows
		}
		if got := p.Output("rest").At(k); !(math.Abs(got-want) <= 1e-4) {
			t.Fatalf("column %d: the sum of 2x − c/%d is %v, want %v", k, rows, got, want)
		}
	}
}

// The sum of a part of x is finite where that of x, which is made too, is not.
func TestSumsOfParts(t *testing.T) {
	const rows, cols = 64, 128
	x, c := make([]float32, rows*cols), make([]float32, cols)
	for i := range x {
		x[i] = 1e37
	}
	p := sums(t, x, c, func(b *graph.Builder, x, c graph.ID) {
		b.Output("x", b.SumKeep(x, 0))
		for _, a := range []float64{0, -0.25, 0.25} {
			b.Output(fmt.Sprint(a), b.SumKeep(b.Scale(x, a), 0))
		}
		b.Output("c", b.Neg(c))
	})
	for _, a := range []float64{0, -0.25, 0.25} {
		if got, want := p.Output(fmt.Sprint(a)).At(0), a*rows*1e37; !(math.Abs(got-want) <= 1e32) || math.IsNaN(got) {
			t.Errorf("the sum of %v·x is %v, want %v", a, got, want)
		}
	}
}
