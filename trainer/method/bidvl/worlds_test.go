package bidvl

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
	"ebtrain/trainer/model/nets"
	"ebtrain/trainer/model/nn"
)

// virtualShards is what train --deterministic cuts a batch into.
const virtualShards = 8

// With virtual shards there is no distance between worlds: two steps of every
// variant and of every preset's networks leave the same bytes of report and
// variables on 1, 2, 4 and 8 ranks. Each rank is a goroutine with a backend of
// its own, as in a job.
func TestDeterministicWorlds(t *testing.T) {
	for name, r := range worldRigs(t) {
		if testing.Short() && name != "undecoupled" {
			continue // one variant is enough
		}
		t.Run(name, func(t *testing.T) {
			images := r.pictures(virtualShards)
			want := r.deterministic(t, 1, images)
			for _, world := range []int{2, 4, virtualShards} {
				got := r.deterministic(t, world, images)
				for name, w := range want {
					if !bytes.Equal(got[name], w) {
						t.Errorf("%d ranks: %s is not that of one rank", world, name)
					}
				}
			}
		})
	}
}

// worldRigs are every variant on small convolutional networks, and every
// preset's networks at a small width.
func worldRigs(t *testing.T) map[string]rig {
	rigs := map[string]rig{}
	small := nets.Conv{Size: 16, Channels: 3, Width: 4, Latent: 4}
	for _, v := range append(variants(), variant{"lower level first", func(c *Config) { c.Order = LowerFirst }}) {
		c := CIFAR10().Config
		c.Net.Size, c.Net.Latent = small.Size, small.Latent
		v.change(&c)
		rigs[v.name] = rig{cfg: c, net: small, dtype: graph.F32}
	}
	add := func(name string, c Config, width int) {
		c.Net.Width, c.Net.Latent = width, 4
		rigs[name] = rig{cfg: c, net: built(t, c), dtype: graph.F32}
	}
	add("conv32", CIFAR10().Config, 8)
	add("conv64", CelebA64().Config, 4)
	add("resnet32", CIFAR10ResNet().Config, 1)
	add("resnet128", CelebA128().Config, 1)
	plain := CIFAR10ResNet().Config
	plain.Net.PlainShortcut = true
	add("resnet32, plain shortcut", plain, 1)
	return rigs
}

// deterministic trains two steps on world ranks that share the virtual shards,
// and returns the bytes of the report and of every variable, after comparing
// the ranks'.
func (r rig) deterministic(t *testing.T, world int, images []float64) map[string][]byte {
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
	shard := len(images) / virtualShards
	step := r.step(virtualShards, shard/(r.cfg.Net.Channels*r.cfg.Net.Size*r.cfg.Net.Size))
	g, err := step.Commit()
	if err != nil {
		t.Fatal(err)
	}
	g, err = ddp.Virtualise(g, ddp.Shards{Virtual: virtualShards, World: world, Batch: step.Batch(step.v),
		Split: map[string]bool{algo.InputImages: true}, Key: algo.InputKey})
	if err != nil {
		t.Fatal(err)
	}
	results := make([]map[string][]byte, world)
	err = ddptest.Each(world, func(rank int, _ collective.Comm) (err error) {
		if results[rank], err = twoSteps(t.Context(), g, step.Variables(), comms[rank], func(i int) ddptest.Values {
			share := len(images) / world
			return r.inputs(i, rank*step.Batch(step.v)*virtualShards/world, images[rank*share:(rank+1)*share])
		}); err != nil && world > 1 {
			comms[rank].Abort(err)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for rank, vars := range results {
		for name, want := range results[0] {
			if !bytes.Equal(vars[name], want) {
				t.Errorf("%d ranks: %s of rank %d is not that of rank 0", world, name, rank)
			}
		}
	}
	return results[0]
}

// twoSteps runs g twice on one rank and returns the bytes of the report and of
// every variable.
func twoSteps(ctx context.Context, g *graph.Graph, specs []nn.Variable, comm collective.Comm, inputs func(step int) ddptest.Values) (out map[string][]byte, err error) {
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
		for name, x := range inputs(i) {
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
