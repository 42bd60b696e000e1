package bism

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"ebtrain/collective"
	"ebtrain/collective/host"
	"ebtrain/ddp"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// virtualShards are what a batch is cut into.
const virtualShards = 4

// With virtual shards there is no distance between worlds: two steps leave the
// same bytes of report and variables on 1, 2 and 4 ranks, unrolled inner steps
// and their adjoints included.
func TestDeterministicWorlds(t *testing.T) {
	for _, r := range []rig{
		newRig(tinyUnits(func(c *Config) { c.Unroll, c.LowerSteps = 2, 2 }), 8),
		newRig(tinyUnits(func(c *Config) { c.Objective, c.Unroll, c.LowerSteps = SSM, 1, 1 }), 8),
		newRig(tinyNetworks(func(c *Config) { c.Unroll, c.LowerSteps = 1, 1 }), 8),
	} {
		t.Run(label(r.cfg), func(t *testing.T) {
			want := r.deterministic(t, 1)
			for _, world := range []int{2, 4} {
				got := r.deterministic(t, world)
				for name, w := range want {
					if !bytes.Equal(got[name], w) {
						t.Errorf("%d ranks: %s is not that of one rank", world, name)
					}
				}
			}
		})
	}
}

// deterministic trains two steps on world ranks that share the virtual shards,
// and returns the bytes of the report and of every variable of rank 0.
func (r rig) deterministic(t *testing.T, world int) (result map[string][]byte) {
	t.Helper()
	comms := make([]collective.Comm, world)
	if world > 1 {
		group, err := host.NewLocal(t.Context(), world)
		if err != nil {
			t.Fatal(err)
		}
		for i, comm := range group {
			comms[i] = comm
			t.Cleanup(func() {
				if err := comm.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
	g, specs, err := r.cfg.Model().Step(virtualShards, r.batch/virtualShards)
	if err != nil {
		t.Fatal(err)
	}
	g, err = ddp.Virtualise(g, ddp.Shards{Virtual: virtualShards, World: world, Batch: r.batch / virtualShards,
		Split: map[string]bool{algo.InputImages: true}, Key: algo.InputKey})
	if err != nil {
		t.Fatal(err)
	}
	err = ddptest.Each(world, func(rank int, _ collective.Comm) error {
		out, err := r.twoSteps(t.Context(), g, specs, rank, world, comms[rank])
		if err != nil && world > 1 {
			comms[rank].Abort(err)
		}
		if rank == 0 {
			result = out
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// twoSteps runs g twice on one rank and returns the bytes of the report and of
// every variable.
func (r rig) twoSteps(ctx context.Context, g *graph.Graph, specs []nn.Variable, rank, world int, comm collective.Comm) (out map[string][]byte, err error) {
	backend, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, backend.Close()) }()
	vars := backend.NewVars()
	if err := nn.Initialise(vars, specs, testSeed); err != nil {
		return nil, err
	}
	p, err := backend.Compile(g, exec.Options{Name: "step", Vars: vars, Comm: comm, Deterministic: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	for i := range 2 {
		r.step = int64(i)
		for name, x := range r.inputs(rank, world) {
			if in := p.Input(name); in != nil {
				copy(in.Bytes(), ddptest.Tensor(in.Type, x).Bytes())
			}
		}
		if err := exec.Run(ctx, p); err != nil {
			return nil, err
		}
	}
	out = map[string][]byte{"the report": slices.Clone(p.Output(algo.OutputReport).Bytes())}
	for _, name := range vars.Names() {
		x, err := vars.Get(name)
		if err != nil {
			return nil, err
		}
		out[name] = x.Bytes()
	}
	return out, nil
}
