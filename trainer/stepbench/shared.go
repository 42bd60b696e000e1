package main

import (
	"context"
	"errors"
	"slices"

	"ebtrain/ddp"
	"ebtrain/ddp/exec"
	"ebtrain/trainer/model/nn"
)

// shard has the step share out the optimisers' state and gather weights late, as
// train --shard-optimizer does.
func (b *bench) shard() (err error) {
	b.graph, b.parts, err = ddp.ShardOptimizer(b.graph, ddp.Sharding{
		World: b.world, State: nn.Named(b.specs, nn.Moment), Late: nn.Named(b.specs, nn.Weight),
	})
	if err == nil {
		b.wholes, err = b.parts.Whole(b.world)
	}
	return err
}

// checkReplicas compares the weights of all ranks, bit for bit, after those that the step
// has left in parts are gathered.
func (b *bench) checkReplicas(ctx context.Context) error {
	if b.comm == nil {
		return nil
	}
	if b.whole != nil {
		if err := exec.Run(ctx, b.whole); err != nil {
			return err
		}
	}
	var names []string
	for _, v := range nn.Replicated(b.specs) {
		if !slices.ContainsFunc(b.parts.State, func(p ddp.Sharded) bool { return p.Name == v.Name }) {
			names = append(names, v.Name)
		}
	}
	return ddp.NewReplicas(b.comm, b.vars, names).Compare(ctx)
}

// close releases the programs.
func (b *bench) close() error {
	err := b.step.Close()
	if b.whole != nil {
		err = errors.Join(err, b.whole.Close())
	}
	return err
}
