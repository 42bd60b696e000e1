package cpu

import (
	"bytes"
	"math"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/graph"
)

// lean is a backend whose programs compute again what they need not keep.
type lean struct {
	exec.Backend
	keep bool  // do not, after all
	peak int64 // bytes of the last program
}

func (l *lean) Compile(g *graph.Graph, o exec.Options) (exec.Program, error) {
	o.Remat = !l.keep
	p, err := l.Backend.Compile(g, o)
	if err == nil {
		l.peak = p.Stats().PeakBytes
	}
	return p, err
}

// TestRematOfFunctions computes functions again in groups whose blocks end
// elsewhere: next to a sum over the channels, and alone.
func TestRematOfFunctions(t *testing.T) {
	be := open(t, Config{Threads: 1})
	for fn := graph.UnaryFn(1); fn < graph.NumUnaryFn; fn++ {
		var b graph.Builder
		x := b.Input("x", graph.T(graph.F32, 4, 48, 3, 9))
		b.Output("y0", b.Add(x, b.SumKeep(x, 0, 1)))
		y := b.Apply(graph.Unary{Fn: fn, Bits: parameter(fn)}, b.Shift(b.Square(x), 1))[0]
		b.Output("y1", y)
		b.Output("y2", b.Cos(y))
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		var out [2][]byte
		for i, keep := range []bool{true, false} {
			p, err := (&lean{Backend: be, keep: keep}).Compile(g, exec.Options{Name: "functions"})
			if err != nil {
				t.Fatal(err)
			}
			in := p.Input("x").F32()
			for k := range in {
				in[k] = float32(math.Sin(float64(k)))
			}
			if err := exec.Run(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"y1", "y2"} {
				out[i] = append(out[i], p.Output(name).Bytes()...)
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(out[0], out[1]) {
			t.Errorf("%v has other bits", fn)
		}
	}
}

// parameter is one for functions that have it.
func parameter(fn graph.UnaryFn) uint64 {
	if fn.HasParam() {
		return math.Float64bits(0.3)
	}
	return 0
}

// TestRematStep trains two steps of BiDVL with and without, of so many samples that the
// largest images are not joined.
func TestRematStep(t *testing.T) {
	const batch = 144
	for _, threads := range []int{1, 2} {
		if exectest.Race && threads == 1 {
			continue // nothing is shared
		}
		be := open(t, Config{Threads: threads})
		less := &lean{Backend: be}
		got, err := train(less, nil, batch)
		if err != nil {
			t.Fatal(err)
		}
		plain := &lean{Backend: be, keep: true}
		want, err := train(plain, nil, batch)
		if err != nil {
			t.Fatal(err)
		}
		for name := range want {
			if !bytes.Equal(got[name].Bytes(), want[name].Bytes()) {
				t.Errorf("%d threads: %s has other bits", threads, name)
			}
		}
		t.Logf("peak %d bytes, without %d", less.peak, plain.peak)
		if less.peak >= plain.peak*9/10 {
			t.Errorf("the peak is %d bytes, without %d", less.peak, plain.peak)
		}
	}
}
