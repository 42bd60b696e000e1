package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"ebtrain/collective"
	"ebtrain/data/loader"
	"ebtrain/ddp/exec"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/run/ckpt"
)

// checkpoint is one that was read, here or on another rank.
type checkpoint struct {
	from   string // where it is, for messages
	state  ckpt.State
	groups map[string][]ckpt.Named
}

// Steps of the newest checkpoint of a rank that has no whole one.
const (
	noStep      = -1 // none at all
	damagedStep = -2 // all are damaged
)

// restore sets every variable, the loader and the step from the newest checkpoint
// that any rank sees. Where all see one of that step each takes its own; else the first
// rank that does sends it to all: hosts may have disks of their own, and one be new to
// the job, or have lost its last; Run has those that lack it keep it. A host whose
// checkpoints are all damaged is one of those; only if no rank has a whole one is that
// an error. Without any checkpoint the run begins at its beginning, and the result is false.
// What was skipped is told once all ranks have looked: of those that say the same a launcher
// shows one line.
func (t *Trainer) restore(ctx context.Context) (bool, error) {
	var skipped []error
	c, err := newest(t.cfg.CkptDir, func(err error) { skipped = append(skipped, err) })
	if c != nil {
		t.own, t.saved = c.state.Step, c.state.Step
	}
	_, damaged := errors.AsType[*ckpt.DamagedError](err)
	var steps []int64 // of all ranks
	if t.parts.Comm != nil && (err == nil || damaged) {
		t.tell(0, "look for the newest checkpoint")
		var failed error
		if steps, failed = t.steps(ctx, damaged); failed != nil {
			err = failed
		}
	}
	for _, s := range skipped {
		ckpt.WarnSkipped(t.parts.Log, s)
	}
	if steps != nil {
		c, err = t.share(ctx, steps, c, err)
	}
	if err != nil {
		return false, err
	}
	if c == nil {
		t.parts.Log.Warn("no checkpoint to resume from", "dir", t.cfg.CkptDir)
		return false, nil
	}
	return true, t.set(c)
}

// newest is the newest whole checkpoint in dir, nil if there is none.
func newest(dir string, skipped func(error)) (*checkpoint, error) {
	path, state, groups, err := ckpt.ReadNewest(dir, skipped)
	switch {
	case errors.Is(err, ckpt.ErrNone):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &checkpoint{path, state, groups}, nil
}

// steps are those of all ranks' newest checkpoints.
func (t *Trainer) steps(ctx context.Context, damaged bool) ([]int64, error) {
	steps := make([]int64, t.world())
	steps[t.rank()] = t.own
	if damaged {
		steps[t.rank()] = damagedStep
	}
	if err := collective.Do(ctx, t.parts.Comm, collective.Request{Kind: collective.AllGather, Vec: collective.VecOf(steps), Label: "steps of checkpoints"}); err != nil {
		return nil, err
	}
	return steps, nil
}

// share is mine, if all ranks have one of the same step, and else the newest of any
// rank, sent by the first that has it; nil if none has any. damage is why none of this
// rank's can be used, and then its error if no rank has another.
func (t *Trainer) share(ctx context.Context, steps []int64, mine *checkpoint, damage error) (*checkpoint, error) {
	last := slices.Max(steps)
	if r := slices.Index(steps, damagedStep); r >= 0 && last < 0 {
		if damage == nil {
			damage = fmt.Errorf("the checkpoints on the host of rank %d are all damaged, and no rank has another: put a copy of one there, or begin anew with another --out", r)
		}
		return nil, damage
	}
	if slices.Min(steps) == last {
		return mine, nil
	}
	t.saved = noStep
	root := slices.Index(steps, last)
	switch {
	case damage != nil:
		t.parts.Log.Warn("no checkpoint of this host can be used, so another rank sends the job's", "dir", t.cfg.CkptDir, "step", last, "rank", root)
	case t.own != last:
		t.parts.Log.Warn("this host's newest checkpoint is not the job's, which another rank sends", "dir", t.cfg.CkptDir, "step", last, "own", t.own, "rank", root)
	}
	return t.send(ctx, root, mine)
}

// send is the checkpoint of rank root, on all ranks.
func (t *Trainer) send(ctx context.Context, root int, mine *checkpoint) (*checkpoint, error) {
	broadcast := func(v collective.Vec) error {
		return collective.Do(ctx, t.parts.Comm, collective.Request{Kind: collective.Broadcast, Root: root, Vec: v, Label: "checkpoint"})
	}
	if t.rank() == root {
		return mine, t.give(mine, broadcast)
	}
	return t.take(fmt.Sprintf("the checkpoint of rank %d", root), broadcast)
}

// give sends a checkpoint: the size of its state, the state as JSON, and the replicated
// variables, one after another.
func (t *Trainer) give(c *checkpoint, broadcast func(collective.Vec) error) error {
	state, err := json.Marshal(c.state)
	if err != nil {
		return err
	}
	if err := broadcast(collective.VecOf([]int64{int64(len(state))})); err != nil {
		return err
	}
	if err := broadcast(collective.VecOf(state)); err != nil {
		return err
	}
	tensors, err := c.tensors(t.specs)
	if err != nil {
		return err
	}
	for _, v := range tensors {
		if err := broadcast(collective.VecOf(v.Bytes())); err != nil {
			return err
		}
	}
	return nil
}

// take receives what another rank gives.
func (t *Trainer) take(from string, broadcast func(collective.Vec) error) (*checkpoint, error) {
	c := &checkpoint{from: from}
	var size [1]int64
	if err := broadcast(collective.VecOf(size[:])); err != nil {
		return nil, err
	}
	state := make([]byte, size[0])
	if err := broadcast(collective.VecOf(state)); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(state, &c.state); err != nil {
		return nil, fmt.Errorf("%s: %w", c.from, err)
	}
	var all []ckpt.Named
	for _, v := range nn.Replicated(t.specs) {
		value := exec.NewTensor(v.Type)
		if err := broadcast(collective.VecOf(value.Bytes())); err != nil {
			return nil, err
		}
		all = append(all, ckpt.Named{Name: v.Name, Tensor: value})
	}
	c.groups = map[string][]ckpt.Named{"": all} // tensors looks in all groups
	return c, nil
}

// set goes on from c.
func (t *Trainer) set(c *checkpoint) error {
	state := c.state
	if state.ConfigDigest != t.cfg.Digest || state.Seed != t.cfg.Seed {
		return fmt.Errorf("%s was made with other settings (digest %.12s, seed %d; now %.12s, seed %d): use the flags in config.json of its run, or another --out",
			c.from, state.ConfigDigest, state.Seed, t.cfg.Digest, t.cfg.Seed)
	}
	var pos loader.State
	if err := json.Unmarshal(state.Loader, &pos); err != nil {
		return fmt.Errorf("%s: state of the loader: %w", c.from, err)
	}
	if err := t.parts.Loader.Restore(pos); err != nil {
		return fmt.Errorf("%s: %w", c.from, err)
	}
	if err := c.set(t.specs, t.setOwn); err != nil {
		return err
	}
	t.next = state.Step
	return nil
}

// SetVariables sets the variables listed in specs from the groups of a
// checkpoint, by name; from is its path. A missing one or one of another type
// is an error. Scratch variables are in no checkpoint and are left alone.
func SetVariables(vars exec.Vars, specs []nn.Variable, groups map[string][]ckpt.Named, from string) error {
	return (&checkpoint{from: from, groups: groups}).set(specs, vars.Set)
}

// set hands the value of each replicated variable of specs to setOne.
func (c *checkpoint) set(specs []nn.Variable, setOne func(name string, value *exec.Tensor) error) error {
	tensors, err := c.tensors(specs)
	if err != nil {
		return err
	}
	for i, v := range nn.Replicated(specs) {
		if err := setOne(v.Name, tensors[i]); err != nil {
			return err
		}
	}
	return nil
}

// tensors are the values of the replicated variables of specs, in that order.
func (c *checkpoint) tensors(specs []nn.Variable) ([]*exec.Tensor, error) {
	byName := map[string]*exec.Tensor{}
	for group, g := range c.groups {
		for _, n := range g {
			byName[nameOf(group, n.Name)] = n.Tensor
		}
	}
	var all []*exec.Tensor
	for _, v := range nn.Replicated(specs) {
		value, ok := byName[v.Name]
		switch {
		case !ok:
			return nil, fmt.Errorf("%s has no tensor %s, which the model needs: was it made with another --net or --algo?", c.from, v.Name)
		case value.Type != v.Type:
			return nil, fmt.Errorf("%s: %s is %v, the model wants %v: was it made with another --width or --latent?", c.from, v.Name, value.Type, v.Type)
		}
		all = append(all, value)
	}
	return all, nil
}
