package loop

import (
	"context"
	"fmt"
	"slices"

	"github.com/dustin/go-humanize"

	"ebtrain/ddp"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// With a sharded optimiser each rank has a part of every moment, and between steps a part
// of the newest weights. Checkpoints know nothing of it: parts are gathered before they are
// written and cut after they are read, so any number of ranks goes on, sharded or not.

// shard has the step keep a rank's part of the optimisers' moments, and gather weights
// late. Those that another stage reads stay whole. If exact, sums of gradients that are
// reported have the bits that they have on one rank.
func (b *built) shard(world int, exact bool) (err error) {
	state, weights := nn.Named(b.specs, nn.Moment, nn.Average), nn.Named(b.specs, nn.Weight)
	for _, s := range b.stages {
		for _, n := range s.Graph.Nodes() {
			if leaf, ok := n.Op.(graph.Leaf); ok {
				delete(state, leaf.Name)
				delete(weights, leaf.Name)
			}
		}
	}
	b.step, b.shared, err = ddp.ShardOptimizer(b.step, ddp.Sharding{World: world, State: state, Exact: exact, Late: weights})
	if err == nil {
		b.whole, err = b.shared.Whole(world)
	}
	return err
}

// sameParts: a step keeps the parts that all do.
func sameParts(got, want ddp.Parts) error {
	if slices.Equal(got.State, want.State) && slices.Equal(got.Late, want.Late) {
		return nil
	}
	return fmt.Errorf("parts of %d moments and %d weights, and that of the longest keeps other parts, of %d and %d", len(got.State), len(got.Late), len(want.State), len(want.Late))
}

// refresh makes all weights as new as their parts are, before anything but the step reads
// them. All ranks call it after the same steps, while none is queued.
func (t *Trainer) refresh(ctx context.Context) error {
	if t.whole == nil || t.fresh == t.next {
		return nil
	}
	t.tell(t.next, "gather weights")
	t.fresh = t.next
	return exec.Run(ctx, t.whole)
}

// part says how the variable of that name is shared, nil if every rank has all of it.
func (t *Trainer) part(name string) *ddp.Sharded {
	i := slices.IndexFunc(t.shared.State, func(s ddp.Sharded) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &t.shared.State[i]
}

// setOwn sets a variable, or this rank's part of it.
func (t *Trainer) setOwn(name string, whole *exec.Tensor) error {
	if s := t.part(name); s != nil {
		whole = s.PartOf(whole, t.rank())
	}
	return t.vars.Set(name, whole)
}

// gather is the variables of some roles of which each rank has a part. All ranks call it;
// those that do not keep them get nothing.
func (t *Trainer) gather(ctx context.Context, keep bool, roles ...nn.Role) (map[string]*exec.Tensor, error) {
	wholes, wanted := map[string]*exec.Tensor{}, nn.Named(t.specs, roles...)
	for _, s := range t.shared.State {
		if !wanted[s.Name] {
			continue
		}
		mine, err := t.vars.Get(s.Name)
		if err != nil {
			return nil, err
		}
		whole, err := s.Gather(ctx, t.parts.Comm, mine)
		if err != nil {
			return nil, err
		}
		if keep {
			wholes[s.Name] = whole
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
		return a.Announce("--shard-optimizer does nothing on one rank, which keeps all of the optimisers' state")
	}
	if len(t.shared.State) == 0 {
		return a.Announce("--shard-optimizer does nothing here: the optimisers keep no state, or one that is differentiated through")
	}
	own := nn.OfRank(t.specs, t.shared.State)
	all, mine := nn.RoleBytes(t.specs, nn.Moment, nn.Average), nn.RoleBytes(own, nn.Moment, nn.Average)
	late := 0
	for _, s := range t.shared.Late {
		late += s.Part.Bytes()
	}
	return a.Announce(fmt.Sprintf("--shard-optimizer: each of %d ranks keeps %s of the optimisers' %s of state, and %s of parts of weights",
		t.world(), humanize.IBytes(uint64(mine)), humanize.IBytes(uint64(all)), humanize.IBytes(uint64(late))))
}
