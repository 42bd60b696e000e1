package plan

import (
	"math/rand/v2"
	"testing"
)

// With Options.Deterministic nothing shares a step with a reduction, and a
// collective of one rank is still there.
func TestDeterministic(t *testing.T) {
	sums := 0
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 2))
		g, err := random(r, 40)
		if err != nil {
			t.Fatal(err)
		}
		p := New(g, Options{Name: "random", World: 1 + int(seed%2), Deterministic: true})
		p.Allocate()
		replay(t, p)
		for i, s := range p.Steps {
			f, ok := s.Op.(*Fused)
			if !ok || len(f.Sums) == 0 {
				continue
			}
			sums++
			if len(f.Sums)+len(f.Loads)+len(f.Consts) > 2 || len(f.Code)+len(f.Stores) > 0 {
				t.Fatalf("seed %d, step %d: the reduction is not alone in\n%s", seed, i, dump(t, p))
			}
		}
	}
	if sums == 0 {
		t.Error("no reductions in any graph")
	}
}

func TestDeterministicBoundary(t *testing.T) {
	for _, deterministic := range []bool{false, true} {
		p := New(step(t), Options{Name: "step", World: 1, Deterministic: deterministic})
		p.Allocate()
		want := map[string]int{"centred_squares": 1, "= copy": 1} // of the loss
		if deterministic {
			want = map[string]int{"centred_squares": 0, "= copy": 9} // and of every part of a collective
		}
		mustCount(t, string(dump(t, p)), want)
	}
}
