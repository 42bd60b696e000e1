package grbmtest

import (
	"bytes"
	"fmt"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu"
	"ebtrain/ddp/graph"
)

// The contracts that every method keeps, as tests. A rig's batch is a multiple of
// 8 for them; tolerances are relative to 1 + |value|.

// First takes the first steps on so many ranks.
func (r Rig) First(t *testing.T, world, steps int) (reports [][]float64, sets []exec.Vars) {
	t.Helper()
	sets, err := r.Start(world)
	if err != nil {
		t.Fatal(err)
	}
	reports, err = r.Run(t.Context(), sets, 0, steps)
	if err != nil {
		t.Fatal(err)
	}
	return reports, sets
}

// RanksAgree tests that 1, 2 and 4 ranks have equal reports and variables, to
// 1e-12 in float64.
func (r Rig) RanksAgree(t *testing.T) {
	t.Helper()
	const steps = 4
	want, one := r.First(t, 1, steps)
	for _, world := range []int{2, 4} {
		reports, sets := r.First(t, world, steps)
		for i := range want {
			if err := ddptest.Near(reports[i], want[i], 1e-12); err != nil {
				t.Errorf("%d ranks, step %d: %v", world, i, err)
			}
		}
		for rank, vars := range sets {
			same(t, fmt.Sprintf("rank %d of %d", rank, world), vars, one[0], 1e-12)
		}
	}
}

// Resumes tests that a run that is resumed from its variables, on one or two
// ranks, is the run that was not interrupted; on one, to the last bit.
func (r Rig) Resumes(t *testing.T) {
	t.Helper()
	const steps, half = 4, 2
	want, whole := r.First(t, 1, steps)
	_, left := r.First(t, 1, half)
	for _, world := range []int{1, 2} {
		sets := make([]exec.Vars, world)
		for i := range sets {
			sets[i] = r.copy(t, left[0])
		}
		reports, err := r.Run(t.Context(), sets, half, steps)
		if err != nil {
			t.Fatal(err)
		}
		tol := 1e-12 * float64(world-1)
		for i, report := range reports {
			if err := ddptest.Near(report, want[half+i], tol); err != nil {
				t.Errorf("%d ranks, step %d: %v", world, half+i, err)
			}
		}
		same(t, fmt.Sprintf("%d ranks", world), sets[0], whole[0], tol)
	}
}

func (r Rig) copy(t *testing.T, from exec.Vars) exec.Vars {
	t.Helper()
	to := r.Backend.NewVars()
	for _, name := range from.Names() {
		x, err := from.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := to.Set(name, x); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// same compares all variables.
func same(t *testing.T, where string, got, want exec.Vars, tol float64) {
	t.Helper()
	g, w := Variables(t, got), Variables(t, want)
	if len(g) != len(w) {
		t.Errorf("%s: %d variables, want %d", where, len(g), len(w))
	}
	for name := range w {
		if err := ddptest.Near(g[name], w[name], tol); err != nil {
			t.Errorf("%s: %s: %v", where, name, err)
		}
	}
}

// Variables are all variables of a set, by name.
func Variables(t *testing.T, vars exec.Vars) ddptest.Values {
	t.Helper()
	all := ddptest.Values{}
	for _, name := range vars.Names() {
		x, err := vars.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = ddptest.Numbers(x)
	}
	return all
}

// SameBits tests that with virtual shards, in float32 on the cpu, 1, 2, 4 and 8
// ranks leave the same bytes in every variable.
func (r Rig) SameBits(t *testing.T) {
	t.Helper()
	const shards, steps = 8, 3
	r.DType = graph.F32
	want, err := r.Virtual(t.Context(), shards, 1, steps)
	if err != nil {
		t.Fatal(err)
	}
	for _, world := range []int{2, 4, shards} {
		got, err := r.Virtual(t.Context(), shards, world, steps)
		if err != nil {
			t.Fatal(err)
		}
		for name, w := range want {
			if !bytes.Equal(got[name], w) {
				t.Errorf("%d ranks: %s is not that of one rank", world, name)
			}
		}
	}
}

// LearnsTheBoard takes so many steps on points of the checkerboard, in float32 on
// the cpu, and tests that the exact log-likelihood of other points is then above
// what a machine without couplings can have, two Gaussians of variance 1/12. It
// returns the variables and log Z.
func (r Rig) LearnsTheBoard(t *testing.T, m Machine, steps int) (vars ddptest.Values, logz float64) {
	t.Helper()
	backend, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := backend.Close(); err != nil {
			t.Error(err)
		}
	}()
	r.Backend, r.DType = backend, graph.F32
	r.Data = func(step int) []float64 { return Board(step, r.Batch) }
	_, sets := r.First(t, 1, steps)
	const n = 1000
	ll, logz, err := LogLikelihood(t.Context(), backend, sets[0], m, n, Board(1<<30, n))
	if err != nil {
		t.Fatal(err)
	}
	if !(ll > Independent+0.02) {
		t.Errorf("the log-likelihood after %d steps is %v, and %v is had without couplings", steps, ll, Independent)
	}
	return Variables(t, sets[0]), logz
}
