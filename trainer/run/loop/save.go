package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"ebtrain/collective"
	"ebtrain/data/loader"
	"ebtrain/ddp/exec"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/run/ckpt"
)

// groupOf is the checkpoint file that holds variables of a role.
var groupOf = map[nn.Role]string{nn.Weight: ckpt.Weights, nn.Moment: ckpt.Optimizer, nn.Buffer: ckpt.Buffers}

// save writes a checkpoint of the steps done so far, unless there is one. Rank
// 0 writes, and who keeps checkpoints for hosts with a disk of their own; all
// wait until it is in place.
func (t *Trainer) save(ctx context.Context) error {
	if t.cfg.CkptDir == "" || t.saved == t.next {
		return nil
	}
	t.tell(t.next, "checkpoint")
	err := t.shareDamage(ctx)
	if err != nil {
		return err
	}
	if t.rank() == 0 || t.parts.Observer != nil {
		err = t.write()
	}
	if t.parts.Comm != nil {
		if err != nil {
			t.parts.Comm.Abort(err)
			return err
		}
		err = collective.Do(ctx, t.parts.Comm, collective.Request{Kind: collective.Barrier, Label: "checkpoint"})
	}
	t.saved = t.next
	return err
}

func (t *Trainer) write() error {
	if t.parts.Observer != nil {
		if err := t.parts.Observer.Saving(t.next); err != nil {
			return err
		}
	}
	groups := map[string][]ckpt.Named{}
	for _, v := range nn.Replicated(t.specs) {
		value, err := t.vars.Get(v.Name)
		if err != nil {
			return err
		}
		g := groupOf[v.Role]
		groups[g] = append(groups[g], ckpt.Named{Name: v.Name, Tensor: value})
	}
	pos := t.parts.Loader.State()
	state, err := json.Marshal(pos)
	if err != nil {
		return err
	}
	_, err = ckpt.Write(t.cfg.CkptDir, ckpt.State{
		Step: t.next, Epoch: pos.Epoch, Samples: t.next * int64(t.cfg.Batch), Seed: t.cfg.Seed,
		World: t.world(), ConfigDigest: t.cfg.Digest, Loader: state,
	}, groups)
	if err != nil {
		return err
	}
	return ckpt.Prune(t.cfg.CkptDir, t.cfg.CkptKeep)
}

// restore sets every variable, the loader and the step from the newest
// checkpoint. Without any checkpoint the run begins at its beginning.
func (t *Trainer) restore() error {
	path, err := ckpt.Latest(t.cfg.CkptDir, t.parts.Log)
	if errors.Is(err, ckpt.ErrNone) {
		t.parts.Log.Warn("no checkpoint to resume from, starting at step 0", "dir", t.cfg.CkptDir)
		return nil
	}
	if err != nil {
		return err
	}
	state, groups, err := ckpt.Read(path)
	if err != nil {
		return err
	}
	if state.ConfigDigest != t.cfg.Digest || state.Seed != t.cfg.Seed {
		return fmt.Errorf("%s was made with other settings (digest %.12s, seed %d; now %.12s, seed %d): use the flags in config.json of its run, or another --out",
			path, state.ConfigDigest, state.Seed, t.cfg.Digest, t.cfg.Seed)
	}
	var pos loader.State
	if err := json.Unmarshal(state.Loader, &pos); err != nil {
		return fmt.Errorf("%s: state of the loader: %w", path, err)
	}
	if err := t.parts.Loader.Restore(pos); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := SetVariables(t.vars, t.specs, groups, path); err != nil {
		return err
	}
	t.next, t.saved = state.Step, state.Step
	return nil
}

// SetVariables sets the variables listed in specs from the groups of a
// checkpoint, by name; from is its path. A missing one or one of another type
// is an error. Scratch variables are in no checkpoint and are left alone.
func SetVariables(vars exec.Vars, specs []nn.Variable, groups map[string][]ckpt.Named, from string) error {
	tensors := map[string]*exec.Tensor{}
	for _, g := range groups {
		for _, n := range g {
			tensors[n.Name] = n.Tensor
		}
	}
	for _, v := range nn.Replicated(specs) {
		value, ok := tensors[v.Name]
		switch {
		case !ok:
			return fmt.Errorf("%s has no tensor %s, which the model needs: was it made with another --net or --algo?", from, v.Name)
		case value.Type != v.Type:
			return fmt.Errorf("%s: %s is %v, the model wants %v: was it made with another --width or --latent?", from, v.Name, value.Type, v.Type)
		}
		if err := vars.Set(v.Name, value); err != nil {
			return err
		}
	}
	return nil
}
