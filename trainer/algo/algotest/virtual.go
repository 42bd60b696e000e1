package algotest

import (
	"bytes"
	"errors"
	"fmt"

	"ebtrain/collective"
	"ebtrain/collective/host"
	"ebtrain/ddp"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// sameBits: with the batch cut into virtual shards, as train --deterministic
// does, 1, 2, 4 and 8 ranks leave the same bytes, in float32 on the cpu.
func (r rig) sameBits() error {
	want, err := r.virtual(1)
	if err != nil {
		return err
	}
	for _, world := range briefly(2, 4, shards) {
		got, err := r.virtual(world)
		if err != nil {
			return fmt.Errorf("%d ranks: %w", world, err)
		}
		for name := range want {
			if !bytes.Equal(got[name], want[name]) {
				return fmt.Errorf("%d ranks: %s is not that of one rank", world, name)
			}
		}
	}
	return nil
}

// virtual takes steps of virtual shards on world ranks, and returns what is left,
// by name, after comparing the ranks'.
func (r rig) virtual(world int) (map[string][]byte, error) {
	comms := make([]collective.Comm, world)
	if world > 1 {
		group, err := host.NewLocal(r.ctx, world)
		if err != nil {
			return nil, err
		}
		for i, c := range group {
			comms[i] = c
		}
	}
	g, specs, err := r.model.Step(shards, r.batch()/shards)
	if err != nil {
		return nil, err
	}
	cut := func(g *graph.Graph) (*graph.Graph, error) {
		s := ddp.Shards{Virtual: shards, World: world, Batch: r.batch() / shards, Split: algo.Split(specs), Key: algo.InputKey}
		return ddp.Virtualise(g, s.Of(g))
	}
	if g, err = cut(g); err != nil {
		return nil, err
	}
	stages, err := r.stages(shards, r.batch()/shards, cut)
	if err != nil {
		return nil, err
	}
	own := algo.OfShards(specs, shards/world)
	all := make([]map[string][]byte, world)
	err = ddptest.Each(world, func(rank int, _ collective.Comm) error {
		all[rank] = map[string][]byte{}
		err := r.onCPU(g, stages, own, comms[rank], place{rank, world, r.batch()}, func(name string, x []byte) { all[rank][name] = x })
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
	for rank := range all {
		for name, want := range all[0] {
			if !bytes.Equal(all[rank][name], want) {
				return nil, fmt.Errorf("%s of rank %d is not that of rank 0", name, rank)
			}
		}
	}
	return all[0], nil
}

// onCPU takes two steps of one rank, on a backend of its own, and tells keep the
// last report and the replicated variables.
func (r rig) onCPU(g *graph.Graph, stages []chain.Stage, specs []nn.Variable, comm collective.Comm, at place, keep func(name string, x []byte)) (err error) {
	backend, err := oneThread()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backend.Close()) }()
	vars := backend.NewVars()
	if err := nn.Initialise(vars, specs, seed); err != nil {
		return err
	}
	o := exec.Options{Vars: vars, Comm: comm, Deterministic: true}
	return compiled(backend, g, stages, o, func(p exec.Program) error {
		if _, err := r.steps(p, at, 0, 2); err != nil {
			return err
		}
		keep("the report", bytes.Clone(p.Output(algo.OutputReport).Bytes()))
		for _, v := range nn.Replicated(specs) {
			x, err := vars.Get(v.Name)
			if err != nil {
				return err
			}
			keep(v.Name, x.Bytes())
		}
		return nil
	})
}
