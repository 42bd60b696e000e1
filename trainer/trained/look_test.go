package trained

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// noisy gives each sample's first value with noise, and how often a stage before it has run.
func noisy(n int) (*graph.Graph, error) {
	ctx := nn.NewContext(nn.Eval, 1)
	x := ctx.Reshape(ctx.Input(algo.InputImages, graph.T(graph.F32, n, 1, 1, 1)), graph.D(n))
	eps := ctx.Draw(ctx.Input(algo.InputKey, graph.KeyType), graph.Normal, philox.Sampling, philox.SamplingLatents, graph.T(graph.F32, n))
	ctx.Output(algo.OutputScore, ctx.Add(x, eps))
	ctx.Output(algo.OutputCode, ctx.Var(runs(n).Name, runs(n).Type))
	return ctx.Commit()
}

func runs(n int) nn.Variable { return chain.Var(fmt.Sprint("runs ", n), graph.T(graph.F32)) }

// Draws of a sample are named by the seed and its number among all that are looked at, so
// it does not matter how they are cut into batches.
func TestLookNamesDraws(t *testing.T) {
	r, backend := toyRun(t, 1)
	looked := func(seed uint64, batches ...[]float32) (all []float64) {
		t.Helper()
		l := NewLook(r, backend, "noisy", noisy, seed)
		l.Before = func(n int) ([]chain.Stage, []nn.Variable, error) { return nil, []nn.Variable{runs(n)}, nil }
		for _, x := range batches {
			p, err := l.At(t.Context(), x, len(x), int64(len(all)))
			if err != nil {
				t.Fatal(err)
			}
			for i := range x {
				all = append(all, p.Output(algo.OutputScore).At(i))
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		return all
	}
	whole := looked(1, []float32{0, 1, 2, 3})
	for i, got := range whole {
		var eps [1]float64
		philox.Name{Seed: 1, Purpose: philox.Sampling, Sub: philox.SamplingLatents, Sample: uint32(i)}.Normal(eps[:])
		if err := ddptest.Near([]float64{got}, []float64{float64(i) + eps[0]}, 1e-6); err != nil {
			t.Errorf("sample %d: %v", i, err)
		}
	}
	if parts := looked(1, []float32{0, 1}, []float32{2}, []float32{3}); !slices.Equal(parts, whole) {
		t.Errorf("in parts %v, in one batch %v", parts, whole)
	}
	if other := looked(2, []float32{0, 1, 2, 3}); other[0] == whole[0] || other[3] == whole[3] {
		t.Errorf("another seed gives %v, too", other)
	}
}

// What runs before a look does so as often as it says, at each look; and samples that are
// too many or too few are told.
func TestLookBefore(t *testing.T) {
	r, backend := toyRun(t, 1)
	l := NewLook(r, backend, "noisy", noisy, 1)
	l.Before = func(n int) ([]chain.Stage, []nn.Variable, error) {
		ctx := nn.NewContext(nn.Eval, 1)
		v := runs(n)
		ctx.Assign(ctx.Var(v.Name, v.Type), ctx.Shift(ctx.Var(v.Name, v.Type), 1))
		g, err := ctx.Commit()
		return []chain.Stage{{Name: "count", Graph: g, Times: 3}}, []nn.Variable{v}, err
	}
	for want := 3.0; want < 10; want += 3 {
		p, err := l.At(t.Context(), []float32{0, 1}, 2, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Output(algo.OutputCode).Scalar(); got != want {
			t.Errorf("it has run %v times, want %v", got, want)
		}
	}
	for _, x := range [][]float32{{0}, {0, 1, 2}} {
		if _, err := l.At(t.Context(), x, 2, 0); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("noisy: %d values are not 2 samples", len(x))) {
			t.Errorf("%d values of 2 samples: %v", len(x), err)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
