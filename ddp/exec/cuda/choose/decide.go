package choose

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"ebtrain/ddp/exec/cuda/linalg"
)

// decide chooses for problems, on rank 0, and leaves their kernels in c.kernels. After an
// error it leaves none of them: the other ranks have none either, and what has a kernel is
// not told again.
func (c *Chooser) decide(problems []linalg.Problem) (told map[string]choice, err error) {
	t := &timer{c: c, failing: map[string]bool{}}
	told = map[string]choice{}
	whole := map[string]choice{} // what was chosen among all candidates
	defer func() {
		if err = cmp.Or(err, t.close()); err != nil {
			err, told = cmp.Or(err, c.drop(told)), nil
		}
	}()
	for _, p := range problems {
		key := p.String()
		k, ch := c.known(p)
		if k == nil {
			if k, ch, err = c.best(t, p); err != nil {
				return told, err
			}
			if !t.failing[key] {
				whole[key] = ch
			}
		}
		c.kernels[key], told[key] = k, ch
	}
	if c.o.Untimed {
		return told, nil
	}
	if !contains(c.kept, told) {
		maps.Copy(c.kept, told)
		c.write(c.o.File, c.kept, "the choices of kernels are not kept, so a resumed run chooses anew and its numbers may differ in their last digits")
	}
	if len(whole) > 0 {
		maps.Copy(c.cached, whole)
		c.write(c.o.Cache, c.cached, "the choices of kernels are not kept for other runs, which choose anew")
	}
	return told, nil
}

// drop closes the kernels of choices.
func (c *Chooser) drop(told map[string]choice) error {
	var errs []error
	for key := range told {
		errs = append(errs, c.kernels[key].Close())
		delete(c.kernels, key)
	}
	return cmp.Or(errs...)
}

// contains says whether all has each of some.
func contains(all, some map[string]choice) bool {
	for key, ch := range some {
		if had, ok := all[key]; !ok || !bytes.Equal(had.Saved, ch.Saved) || had.By != ch.By || had.Types != ch.Types {
			return false
		}
	}
	return true
}

// known is the kernel that a file says, nil if none does or it cannot be had.
func (c *Chooser) known(p linalg.Problem) (*adapted, choice) {
	ch, ok := c.kept[p.String()]
	if !ok {
		if ch, ok = c.cached[p.String()]; !ok {
			return nil, choice{}
		}
	}
	k, err := c.restore(p, ch)
	if err != nil {
		c.o.Say(fmt.Sprintf("the kernel that was chosen for %v cannot be had any more and another is chosen, so numbers may differ in their last digits: %v", p, err))
		return nil, choice{}
	}
	return k, ch
}

// best is the fastest kernel for a problem, or, where nothing is timed, the first that
// runs: a plan that could be built may still fail.
func (c *Chooser) best(t *timer, p linalg.Problem) (*adapted, choice, error) {
	failed := errors.New("no library has one")
	for list, err := range c.candidates(p) {
		if err != nil {
			return nil, choice{}, fmt.Errorf("kernels for %v: %w", p, err)
		}
		k, took, err := c.pick(t, p, list)
		var none noneWorksError
		switch {
		case err == nil:
			ch := choice{By: k.by, Types: k.q.Types().String(), Name: k.Candidate.String(), Milliseconds: float64(took) / 1e6}
			if k.by != byPlain && k.by != byFew {
				ch.Saved = k.Saved()
			}
			return k, ch, nil
		case !errors.As(err, &none):
			return nil, choice{}, err
		}
		failed = err
	}
	return nil, choice{}, fmt.Errorf("there is no kernel for %v: %w", p, failed)
}

// pick is the best of a list, and how long it takes if that is known. All others are
// closed.
func (c *Chooser) pick(t *timer, p linalg.Problem, list []*adapted) (k *adapted, took time.Duration, err error) {
	best := 0
	switch {
	case len(list) == 1 && list[0].by == byPlain: // there is nothing else
	case c.o.Untimed, len(list) == 1:
		best, err = t.first(p, list)
	default:
		best, took, err = t.fastest(p, list)
	}
	if err != nil {
		return nil, 0, cmp.Or(fmt.Errorf("timing kernels for %v: %w", p, err), closeAll(list))
	}
	k = list[best]
	if err := closeAll(slices.Delete(list, best, best+1)); err != nil {
		return nil, 0, cmp.Or(err, k.Close())
	}
	return k, took, nil
}
