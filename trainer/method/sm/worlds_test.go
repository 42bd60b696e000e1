package sm

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"ebtrain/collective"
	"ebtrain/collective/host"
	"ebtrain/ddp"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// Three steps of each loss leave on 2 and 4 ranks what they leave on one.
func TestWorldsAgree(t *testing.T) {
	const batch, steps = 8, 3
	for name, c := range cases() {
		t.Run(name, func(t *testing.T) {
			x := samples(c, batch)
			want, vars := train(t, c, 1, steps, x)
			for _, world := range []int{2, 4} {
				got, others := train(t, c, world, steps, x)
				for i := range want {
					near(t, "report", got[i], want[i], 1e-6) // the report is F32
				}
				for _, v := range vars.Names() {
					near(t, v, numbers(t, others, v), numbers(t, vars, v), 1e-11)
				}
			}
			if want[0][0] == want[1][0] {
				t.Errorf("the loss is %v before and after a step: the test sees nothing", want[0][0])
			}
		})
	}
}

// Samples of one batch that change places change their noise, and with it the
// loss: noise belongs to the place.
func TestNoiseBelongsToThePlace(t *testing.T) {
	c := cases()["mdsm"]
	x := samples(c, 4)
	n := len(x) / 4
	turned := append(append([]float64(nil), x[n:]...), x[:n]...)
	a, _ := train(t, c, 1, 1, x)
	b, _ := train(t, c, 1, 1, turned)
	if a[0][0] == b[0][0] {
		t.Errorf("the loss is %v whatever the order of the samples", a[0][0])
	}
}

// With virtual shards the bits are the same on 1, 2, 4 and 8 ranks: two steps of
// each loss leave equal reports and variables.
func TestDeterministicWorlds(t *testing.T) {
	const shards = 8
	for name, c := range cases() {
		t.Run(name, func(t *testing.T) {
			x := samples(c, shards)
			want := deterministic(t, c, 1, shards, x)
			for _, world := range []int{2, 4, 8} {
				got := deterministic(t, c, world, shards, x)
				for name, w := range want {
					if !bytes.Equal(got[name], w) {
						t.Errorf("%d ranks: %s is not that of one rank", world, name)
					}
				}
			}
		})
	}
}

// deterministic takes two steps of shards virtual ranks on world ranks, in F32,
// and returns the bytes of rank 0's report and variables.
func deterministic(t *testing.T, c *Config, world, shards int, x []float64) map[string][]byte {
	t.Helper()
	g, specs, err := c.Model().Step(shards, 1)
	if err != nil {
		t.Fatal(err)
	}
	g, err = ddp.Virtualise(g, ddp.Shards{Virtual: shards, World: world, Batch: 1,
		Split: map[string]bool{algo.InputImages: true}, Key: algo.InputKey})
	if err != nil {
		t.Fatal(err)
	}
	group, err := host.NewLocal(t.Context(), world)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	err = ddptest.Each(world, func(rank int, _ collective.Comm) (err error) {
		comm := group[rank]
		defer func() {
			if err != nil {
				comm.Abort(err)
			}
			err = errors.Join(err, comm.Close())
		}()
		backend, err := cpu.New(cpu.Config{Threads: 1})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, backend.Close()) }()
		vars := backend.NewVars()
		if err := nn.Initialise(vars, specs, testSeed); err != nil {
			return err
		}
		p, err := backend.Compile(g, exec.Options{Name: "step", Vars: vars, Comm: comm, Deterministic: true})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, p.Close()) }()
		share := len(x) / world
		for i := range 2 {
			for name, v := range inputs(c, i, rank*shards/world, x[rank*share:(rank+1)*share]) {
				if in := p.Input(name); in != nil {
					copy(in.Bytes(), ddptest.Tensor(in.Type, v).Bytes())
				}
			}
			if err := exec.Run(t.Context(), p); err != nil {
				return err
			}
		}
		if rank > 0 {
			return nil
		}
		out["the report"] = slices.Clone(p.Output(algo.OutputReport).Bytes())
		for _, name := range vars.Names() {
			v, err := vars.Get(name)
			if err != nil {
				return err
			}
			out[name] = v.Bytes()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
