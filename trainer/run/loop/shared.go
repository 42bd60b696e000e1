package loop

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"ebtrain/ddp"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// With a sharded optimiser each rank has a part of every moment. Checkpoints know
// nothing of it: parts are gathered before they are written and cut after they are read,
// so any number of ranks goes on, sharded or not.

// shard has the step keep a rank's part of the optimisers' moments. Those that another
// stage reads stay whole.
func (b *built) shard(world int) error {
	moments := map[string]bool{}
	for _, v := range b.specs {
		if v.Role == nn.Moment {
			moments[v.Name] = true
		}
	}
	for _, s := range b.stages {
		for _, n := range s.Graph.Nodes() {
			if leaf, ok := n.Op.(graph.Leaf); ok && leaf.Kind == graph.Var {
				delete(moments, leaf.Name)
			}
		}
	}
	step, list, err := ddp.ShardOptimizer(b.step, world, moments)
	if err != nil {
		return err
	}
	b.step, b.shared = step, map[string]ddp.Sharded{}
	for _, s := range list {
		b.shared[s.Name] = s
	}
	return nil
}

// sameParts: a step keeps the parts that all do.
func sameParts(got, want map[string]ddp.Sharded) error {
	if maps.Equal(got, want) {
		return nil
	}
	return fmt.Errorf("parts of %d moments, and that of the longest keeps other parts, of %d", len(got), len(want))
}

// own are the variables as this rank has them.
func (t *Trainer) own() []nn.Variable {
	own := slices.Clone(t.specs)
	for i, v := range own {
		if s, ok := t.shared[v.Name]; ok {
			own[i].Type = s.Part
		}
	}
	return own
}

// setOwn sets a variable, or this rank's part of it.
func (t *Trainer) setOwn(name string, whole *exec.Tensor) error {
	if s, ok := t.shared[name]; ok {
		return t.vars.Set(name, s.PartOf(whole, t.rank()))
	}
	return t.vars.Set(name, whole)
}

// gather is the moments of which each rank has a part. All ranks call it; those that do
// not keep them get nothing.
func (t *Trainer) gather(ctx context.Context, keep bool) (map[string]*exec.Tensor, error) {
	wholes := map[string]*exec.Tensor{}
	for _, v := range t.specs {
		s, ok := t.shared[v.Name]
		if !ok {
			continue
		}
		mine, err := t.vars.Get(v.Name)
		if err != nil {
			return nil, err
		}
		whole, err := s.Gather(ctx, t.parts.Comm, mine)
		if err != nil {
			return nil, err
		}
		if keep {
			wholes[v.Name] = whole
		}
	}
	return wholes, nil
}

// announceMoments says, in a line, how much memory the optimisers' moments take.
func (t *Trainer) announceMoments() error {
	a, ok := t.parts.Observer.(Announcer)
	if !ok || !t.cfg.ShardOptimizer {
		return nil
	}
	if t.world() == 1 {
		return a.Announce("--shard-optimizer does nothing on one rank: it has all of the optimisers' state")
	}
	all, mine := 0, 0
	for i, v := range t.own() {
		if v.Role == nn.Moment {
			all, mine = all+t.specs[i].Type.Bytes(), mine+v.Type.Bytes()
		}
	}
	if all == mine {
		return a.Announce("--shard-optimizer: nothing is sharded, because the optimisers have no state, or one that is differentiated")
	}
	const mib = 1 << 20
	return a.Announce(fmt.Sprintf("--shard-optimizer: each of %d ranks keeps %.2f MiB of the optimisers' %.2f MiB of moments", t.world(), float64(mine)/mib, float64(all)/mib))
}
