package loop

import (
	"context"
	"encoding/json"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/run/ckpt"
)

// groupOf is the checkpoint file that holds variables of a role.
var groupOf = map[nn.Role]string{nn.Weight: ckpt.Weights, nn.Moment: ckpt.Optimizer, nn.Average: ckpt.Averages, nn.Buffer: ckpt.Buffers}

// save writes a checkpoint of the steps done so far, unless there is one. Rank
// 0 writes, and who keeps checkpoints for hosts with a disk of their own, but for
// who has resumed from it; all wait until it is in place.
func (t *Trainer) save(ctx context.Context) error {
	if t.cfg.CkptDir == "" || t.saved == t.next {
		return nil
	}
	t.tell(t.next, "checkpoint")
	err := t.shareDamage(ctx)
	if err != nil {
		return err
	}
	if err := t.refresh(ctx); err != nil {
		return err
	}
	writes := t.keeps() && t.own != t.next
	wholes, err := t.gather(ctx, writes, nn.Moment, nn.Average)
	if err != nil {
		return err
	}
	if writes {
		err = t.write(wholes)
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

// write writes a checkpoint, with wholes in the place of this rank's parts.
func (t *Trainer) write(wholes map[string]*exec.Tensor) error {
	if t.parts.Observer != nil {
		if err := t.parts.Observer.Saving(t.next); err != nil {
			return err
		}
	}
	groups := map[string][]ckpt.Named{}
	for _, v := range nn.Replicated(t.specs) {
		value, gathered := wholes[v.Name]
		if !gathered {
			var err error
			if value, err = t.vars.Get(v.Name); err != nil {
				return err
			}
		}
		g := groupOf[v.Role]
		groups[g] = append(groups[g], ckpt.Named{Name: inFile(v), Tensor: value})
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
	if t.parts.Observer != nil {
		if err := t.parts.Observer.Saved(t.next); err != nil {
			return err
		}
	}
	t.prune()
	return nil
}

// keeps says whether this rank writes checkpoints.
func (t *Trainer) keeps() bool {
	return t.cfg.CkptDir != "" && (t.rank() == 0 || t.parts.Observer != nil)
}

// prune removes the checkpoints that are no longer kept, now that there is one of the
// steps done.
func (t *Trainer) prune() {
	if err := ckpt.Prune(t.cfg.CkptDir, t.cfg.CkptKeep, t.next); err != nil {
		t.parts.Log.Warn("the checkpoint is in place, but an old one could not be removed: the run goes on, and its disk may fill", "problem", err.Error())
	}
}
