package choose

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ebtrain/ddp/exec/cuda/linalg"
)

// decide chooses for problems, on rank 0, and leaves their kernels in c.kernels.
func (c *Chooser) decide(problems []linalg.Problem) (told map[string]choice, err error) {
	t := &timer{c: c}
	defer func() { err = cmp.Or(err, t.close()) }()
	told = map[string]choice{}
	found := false
	for _, p := range problems {
		key := p.String()
		ch, known := c.choices[key]
		if known {
			k, err := c.restore(p, ch)
			if err == nil {
				c.kernels[key], told[key] = k, ch
				continue
			}
			c.o.Say(fmt.Sprintf("the kernel that was chosen for %v cannot be had any more and another is chosen, so numbers may differ in their last digits: %v", p, err))
		}
		k, ch, err := c.best(t, p)
		if err != nil {
			return nil, err
		}
		c.kernels[key], c.choices[key], told[key], found = k, ch, ch, true
	}
	if found && !c.o.Untimed {
		c.write(c.o.File)
		c.write(c.o.Cache)
	}
	return told, nil
}

// best is the fastest kernel for a problem, or the first where nothing is timed.
func (c *Chooser) best(t *timer, p linalg.Problem) (*adapted, choice, error) {
	n := most
	if c.o.Untimed {
		n = 1
	}
	list, err := c.candidates(p, n)
	if err != nil {
		return nil, choice{}, fmt.Errorf("kernels for %v: %w", p, err)
	}
	best, took := 0, time.Duration(0)
	if len(list) > 1 {
		if best, took, err = t.fastest(p, list); err != nil {
			return nil, choice{}, cmp.Or(fmt.Errorf("timing kernels for %v: %w", p, err), closeAll(list))
		}
	}
	k := list[best]
	if err := closeAll(slices.Delete(list, best, best+1)); err != nil {
		return nil, choice{}, cmp.Or(err, k.Close())
	}
	ch := choice{By: k.by, Types: k.q.Types().String(), Name: k.Candidate.String(), Milliseconds: float64(took) / 1e6}
	if k.by != byPlain {
		ch.Saved = k.Saved()
	}
	return k, ch, nil
}
