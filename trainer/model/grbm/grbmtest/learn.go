package grbmtest

import (
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu"
	"ebtrain/ddp/graph"
)

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
