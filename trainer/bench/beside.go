package main

import (
	"context"
	"errors"
	"fmt"

	"ebtrain/collective/host"
)

// Beside is what sharing processors costs a rank: the groups that a case is fitted on
// have trained side by side, as many of them as there are in so many ranks. They had
// nothing to do with each other, but the processors.
type Beside struct {
	Ranks  int     `json:"ranks"`             // of all groups
	Group  int     `json:"ranks_of_each"`     // of a group
	Batch  int     `json:"batch"`             // of a group
	Step   float64 `json:"step_us,omitempty"` // median over turns of the mean over ranks
	Busy   float64 `json:"processor_us"`      // that a rank had in a step, also to look for what it waited for; median over steps and groups
	Others float64 `json:"others"`            // processors that were used by none of them
	Wake   float64 `json:"wake_us"`           // of a processor, what a wait costs more than where each rank has one
	Delay  float64 `json:"delay_us"`          // what it costs more without one
	turns  []float64
	busy   []float64
	used   float64
	lasted float64
}

// beside is this rank's part in one: a group of its own.
type beside struct {
	*Beside
	comm *host.Comm // nil if the rank is of the first group, whose comm and rig are those of its case, or of none
	rig  *rig
}

// prepareBeside plans and compiles what tells the costs of sharing, for each number of
// ranks that is to be predicted and has fewer processors, all on one machine.
func (b *bench) prepareBeside(ctx context.Context) error {
	r := b.r
	r.FitUpTo = b.o.fitted(r.Cases[len(r.Cases)-1].Ranks)
	base := r.widest()
	if !b.o.check || base < 0 {
		return nil
	}
	b.base = base
	group := r.Cases[base].Ranks
	made := map[int]bool{}
	for _, c := range r.Cases {
		if made[c.Ranks] || c.Ranks <= r.FitUpTo || !r.crowded(c) || r.together(c.Ranks) < len(c.OnHosts) {
			continue
		}
		made[c.Ranks] = true
		one := &beside{Beside: &Beside{Ranks: c.Ranks / group * group, Group: group, Batch: r.Cases[base].Batch}}
		for from := group; from < one.Ranks; from += group {
			comm, err := b.w.Part(ctx, from, group, fmt.Sprintf("ranks from %d of %d side by side", from, c.Ranks), false)
			if err != nil {
				return err
			}
			if comm != nil {
				one.comm = comm
			}
		}
		b.beside = append(b.beside, one)
		r.Beside = append(r.Beside, one.Beside)
	}
	return nil
}

// compileBeside compiles the steps of the groups beside the first.
func (b *bench) compileBeside(ctx context.Context) (err error) {
	for _, one := range b.beside {
		if one.rig = b.rigs[b.base]; one.comm != nil {
			if one.rig, err = b.rigOf(ctx, b.r.Cases[b.base], b.w.Rank()%one.Group, one.comm); err != nil {
				return err
			}
		}
	}
	return nil
}

// widest is the largest case that is fitted on and has a processor for each thread, of
// weak scaling if there is one; -1 if there is none.
func (r *Report) widest() int {
	best := -1
	for i, c := range r.Cases {
		if c.Ranks < 2 || c.Ranks > r.FitUpTo || r.crowded(c) {
			continue
		}
		if best < 0 || c.Ranks > r.Cases[best].Ranks || c.Weak && !r.Cases[best].Weak {
			best = i
		}
	}
	return best
}

// besideTurns has groups train side by side.
func (b *bench) besideTurns(ctx context.Context, n int64) error {
	for _, one := range b.beside {
		if err := b.besideTurn(ctx, one, n); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) besideTurn(ctx context.Context, one *beside, n int64) error {
	b.w.Tell(int64(b.r.Rounds), fmt.Sprintf("%d ranks in groups of %d", one.Ranks, one.Group))
	var mine part
	if one.rig != nil && b.w.Rank() < one.Ranks {
		var err error
		if mine, err = one.rig.measured(ctx, n); err != nil {
			return err
		}
		if err := one.rig.trainer.Advance(ctx, 1); err != nil { // others are still measuring
			return err
		}
	}
	all, err := gather(ctx, b.w.Comm, mine)
	if err != nil {
		return err
	}
	own, step := 0.0, 0.0
	for _, m := range all[:one.Ranks] {
		step += m.Step / float64(one.Ranks)
		for _, p := range m.Parts {
			one.busy = append(one.busy, p.Busy)
			own += p.Busy
		}
	}
	one.turns = append(one.turns, step)
	one.used, one.lasted = one.used+all[0].Used-own, one.lasted+all[0].Step*float64(n)
	return nil
}

// close ends the groups that are of nobody else.
func (o *beside) close() error {
	var errs []error
	if o.comm != nil {
		if o.rig != nil {
			errs = append(errs, o.rig.close())
		}
		errs = append(errs, o.comm.Close())
	}
	return errors.Join(errs...)
}

// summarise makes the numbers of a report; what a wait costs is fitted (waits.go).
func (o *Beside) summarise() {
	if len(o.turns) > 0 {
		o.Step, o.Busy, o.Others = medianOf(o.turns).Value, medianOf(o.busy).Value, round(max(0, o.used/o.lasted), 3)
	}
}
