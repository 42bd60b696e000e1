package golden

import (
	"errors"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu"
	"ebtrain/ddp/exec/ref"
)

// Check holds s to the file of a peer: in F64 on one and two ranks to eight digits, and
// as stepbench runs it, in F32 on the CPU backend, to three.
func (s Step) Check(t *testing.T, file string) {
	want, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, world := range map[string]int{"one rank": 1, "two ranks": 2} {
		t.Run(name, func(t *testing.T) {
			err := ddptest.Each(world, func(rank int, comm collective.Comm) error {
				return s.near(want, ref.New(), true, rank, world, comm, 1e-8)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("cpu", func(t *testing.T) {
		backend, err := cpu.New(cpu.Config{Threads: 2})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.near(want, backend, false, 0, 1, nil, 1e-3), backend.Close()); err != nil {
			t.Error(err)
		}
	})
}

func (s Step) near(want File, b exec.Backend, wide bool, rank, world int, comm collective.Comm, tol float64) error {
	losses, vars, err := s.run(b, want.Order, wide, rank, world, comm)
	if err != nil {
		return err
	}
	return want.near(losses, vars, tol)
}
