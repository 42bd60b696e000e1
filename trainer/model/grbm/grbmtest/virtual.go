package grbmtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"

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

// Virtual takes steps with the global batch cut into so many virtual shards, as
// train --deterministic does, on world ranks with a one-threaded backend each. It
// returns the bytes of every variable, after checking that all ranks have the
// same.
func (r Rig) Virtual(ctx context.Context, virtual, world, steps int) (map[string][]byte, error) {
	comms := make([]collective.Comm, world)
	if world > 1 {
		group, err := host.NewLocal(ctx, world)
		if err != nil {
			return nil, err
		}
		for i, c := range group {
			comms[i] = c
		}
	}
	c, g, err := r.graph(virtual)
	if err != nil {
		return nil, err
	}
	g, err = ddp.Virtualise(g, ddp.Shards{Virtual: virtual, World: world, Batch: r.Batch / virtual,
		Split: map[string]bool{algo.InputImages: true}, Key: algo.InputKey})
	if err != nil {
		return nil, err
	}
	all := make([]map[string][]byte, world)
	err = ddptest.Each(world, func(rank int, _ collective.Comm) (err error) {
		all[rank], err = r.shards(ctx, g, c.Variables(), comms[rank], world, rank, steps)
		if comms[rank] == nil {
			return err
		}
		if err != nil {
			comms[rank].Abort(err)
		}
		return errors.Join(err, comms[rank].Close())
	})
	if err != nil {
		return nil, err
	}
	for rank, vars := range all {
		for name, want := range all[0] {
			if !bytes.Equal(vars[name], want) {
				return nil, fmt.Errorf("%s of rank %d is not that of rank 0", name, rank)
			}
		}
	}
	return all[0], nil
}

// shards is one rank of Virtual.
func (r Rig) shards(ctx context.Context, g *graph.Graph, specs []nn.Variable, comm collective.Comm, world, rank, steps int) (out map[string][]byte, err error) {
	backend, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, backend.Close()) }()
	vars := backend.NewVars()
	if err := nn.Initialise(vars, specs, Seed); err != nil {
		return nil, err
	}
	p, err := backend.Compile(g, exec.Options{Name: "step", Vars: vars, Comm: comm, Deterministic: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	feed := r.Feeder(p)
	for step := range steps {
		if err := r.step(ctx, p, feed, step, world, rank); err != nil {
			return nil, err
		}
	}
	out = map[string][]byte{}
	for _, name := range vars.Names() {
		x, err := vars.Get(name)
		if err != nil {
			return nil, err
		}
		out[name] = x.Bytes()
	}
	return out, nil
}
