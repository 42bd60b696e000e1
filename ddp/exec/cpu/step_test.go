package cpu

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/philox"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// compileStep compiles a BiDVL step with fresh inputs, and fresh variables in
// o.Vars or a set of its own.
func compileStep(t testing.TB, be exec.Backend, batch, c int, o exec.Options) exec.Program {
	t.Helper()
	m, g, err := bidvl(batch, c, false)
	if err != nil {
		t.Fatal(err)
	}
	o.Name = "step"
	if o.Vars == nil {
		o.Vars = be.NewVars()
	}
	if err := m.set(o.Vars); err != nil {
		t.Fatal(err)
	}
	p, err := be.Compile(g, o)
	if err != nil {
		t.Fatal(err)
	}
	closing(t, p)
	pixels := make([]float64, len(p.Input("v").F32()))
	philox.Name{Purpose: philox.Testing, Sub: 1}.Uniform(pixels)
	for i, x := range pixels {
		p.Input("v").F32()[i] = float32(2*x - 1)
	}
	p.Input("rate").SetAt(0, 1)
	return p
}

// BenchmarkStep is one BiDVL training step: go test -bench Step -benchtime 5x.
func BenchmarkStep(b *testing.B) {
	benchStep(b, func(b *testing.B) exec.Backend { return open(b, Config{Threads: 1}) })
}

// BenchmarkBF16Step is BenchmarkStep, multiplying as bfloat16.
func BenchmarkBF16Step(b *testing.B) {
	benchStep(b, func(b *testing.B) exec.Backend { return openBF16(b, 1) })
}

func benchStep(b *testing.B, open func(b *testing.B) exec.Backend) {
	for _, c := range []int{12, 16, 48} {
		b.Run(fmt.Sprintf("batch 64 width %d", c), func(b *testing.B) {
			be := open(b)
			p := compileStep(b, be, 64, c, exec.Options{Profile: true})
			ctx := context.Background()
			if err := exec.Run(ctx, p); err != nil {
				b.Fatal(err)
			}
			before := p.Stats()
			for b.Loop() {
				if err := exec.Run(ctx, p); err != nil {
					b.Fatal(err)
				}
			}
			after := p.Stats()
			b.Logf("%s, peak %d MiB, %d steps, upper %v lower %v", be.Name(), after.PeakBytes>>20, after.Steps, p.Output("upper").Scalar(), p.Output("lower").Scalar())
			runs := after.Runs - before.Runs
			for _, k := range sortedKeys(after.Ops) {
				d := (after.Ops[k].Time - before.Ops[k].Time) / time.Duration(runs)
				rate := float64(after.Ops[k].Flops-before.Ops[k].Flops) / float64(runs) / d.Seconds() / 1e9
				b.Logf("%-16s %5d calls %10v %5.1f%% %6.1f GFLOP/s", k, (after.Ops[k].Calls-before.Ops[k].Calls)/runs, d.Round(time.Microsecond),
					100*float64(d)/float64((after.RunTime-before.RunTime)/time.Duration(runs)), rate)
			}
		})
	}
}
