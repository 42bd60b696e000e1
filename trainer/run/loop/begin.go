package loop

import (
	"errors"
	"fmt"
	"os"

	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/run/ckpt"
)

// begin sets the weights to those of cfg.From, and the state of layers to what is there:
// persistent chains of another batch, say, are not, and begin anew, as optimisers do, and as
// networks do that are not in cfg.FromNetworks. Every rank reads the checkpoint, as it reads
// the data; agree compares what came of it.
func (t *Trainer) begin() error {
	t.tell(0, "read the weights to begin with")
	digest, err := ckpt.LearnedDigest(t.cfg.From)
	if err != nil {
		return unread(t.cfg.From, err)
	}
	if digest != t.cfg.FromDigest {
		return fmt.Errorf("%s is not the checkpoint that this run began with (its digest is %.15s, that one's %.15s): put that one there, or begin again with another --out", t.cfg.From, digest, t.cfg.FromDigest)
	}
	_, groups, err := ckpt.Read(t.cfg.From)
	if err != nil {
		return unread(t.cfg.From, err)
	}
	weights := nn.OfNetworks(nn.Only(t.specs, nn.Weight), t.cfg.FromNetworks)
	c := &checkpoint{from: t.cfg.From, groups: map[string][]ckpt.Named{ckpt.Weights: groups[ckpt.Weights]}}
	if err := c.set(weights, t.setOwn); err != nil {
		return err
	}
	there := map[string]ckpt.Named{}
	for _, n := range groups[ckpt.Buffers] {
		there[n.Name] = n
	}
	for _, v := range nn.OfNetworks(nn.Only(t.specs, nn.Buffer), t.cfg.FromNetworks) {
		if n, ok := there[v.Name]; ok && n.Tensor.Type == v.Type {
			if err := t.setOwn(v.Name, n.Tensor); err != nil {
				return err
			}
		}
	}
	return nil
}

// unread is err, of reading the checkpoint at path, with what to do where it is damaged, which
// is not seen before it is read, and where there is none any more: its own run may train, and
// keeps the newest only.
func unread(path string, err error) error {
	if _, gone := os.Stat(path); !errors.Is(gone, os.ErrNotExist) {
		if _, damaged := errors.AsType[*ckpt.DamagedError](err); damaged {
			err = fmt.Errorf("%w: begin with another of its run, by --from-step", err)
		}
		return err
	}
	return fmt.Errorf("%w: it is the one that this run begins with, and was removed, as a run that trains removes all but the newest (--ckpt-keep): put it back, or begin again with another --from-step and --out", err)
}
