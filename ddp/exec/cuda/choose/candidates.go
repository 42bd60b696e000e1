package choose

import (
	"cmp"
	"fmt"

	"ebtrain/ddp/exec/cuda/linalg"
)

// most is the number of candidates that are timed for a problem.
const most = 8

// The names of libraries in choices.
const (
	byConvolutions = "cudnn"
	byProducts     = "cublaslt"
	byPlain        = "plain"
)

// ways are how libraries may be asked for a problem, in groups.
func (c *Chooser) ways(p linalg.Problem) (groups [][]adapted) {
	for _, group := range variants(p.Types()) {
		var ways []adapted
		for _, t := range group {
			for _, a := range c.as(p, t) {
				if a.start == 0 || c.o.Cast != nil {
					ways = append(ways, a)
				}
			}
		}
		groups = append(groups, ways)
	}
	return groups
}

// as is how libraries may be asked for a problem in types t.
func (c *Chooser) as(p linalg.Problem, t linalg.Types) (ways []adapted) {
	q := p.With(t)
	switch q := q.(type) {
	case linalg.Product:
		if c.o.Products != nil {
			ways = append(ways, adapt(p, q, false, byProducts, c.o.Cast))
		}
	case linalg.Conv:
		if m, swap, ok := q.Product(); ok && c.o.Products != nil {
			ways = append(ways, adapt(p, m, swap, byProducts, c.o.Cast))
		}
		if c.o.Convolutions != nil {
			ways = append(ways, adapt(p, q, false, byConvolutions, c.o.Cast))
		}
	}
	return ways
}

func (c *Chooser) library(by string) linalg.Library {
	if by == byProducts {
		return c.o.Products
	}
	return c.o.Convolutions
}

// candidates are at most n candidates for a problem, of the first group of ways that
// has any; a plain kernel behind those that are to be timed, where that takes no time,
// and where there is nothing else. After an error none is left.
func (c *Chooser) candidates(p linalg.Problem, n int) (list []*adapted, err error) {
	defer func() {
		if err != nil {
			err = cmp.Or(err, closeAll(list))
			list = nil
		}
	}()
	for _, group := range c.ways(p) {
		for i, a := range group {
			more, err := c.library(a.by).Prepare(a.q, share(n-len(list), len(group)-i))
			for _, m := range more {
				made := a
				made.Candidate = m
				list = append(list, &made)
			}
			if err != nil || len(list) == n {
				return list, err
			}
		}
		if len(list) > 0 {
			break
		}
	}
	const quick = 1 << 30 // flops
	if c.o.Plain != nil && (len(list) == 0 || n > 1 && p.Flops() <= quick) {
		k, err := c.plain(p)
		if err != nil {
			return list, err
		}
		return append(list, k), nil
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no library has a kernel for %v", p)
	}
	return list, nil
}

// share is a fair part of n for one of k, at least 1.
func share(n, k int) int { return max(1, (n+k-1)/k) }

// plain is the caller's kernel.
func (c *Chooser) plain(p linalg.Problem) (*adapted, error) {
	if c.o.Plain == nil {
		return nil, fmt.Errorf("there is no plain kernel for %v", p)
	}
	k, err := c.o.Plain(p)
	if err != nil {
		return nil, err
	}
	a := adapt(p, p, false, byPlain, nil)
	a.Candidate = k
	return &a, nil
}

// restore makes the kernel of a choice.
func (c *Chooser) restore(p linalg.Problem, ch choice) (*adapted, error) {
	if ch.By == byPlain {
		return c.plain(p)
	}
	for _, group := range c.ways(p) {
		for _, a := range group {
			if a.by != ch.By || a.q.Types().String() != ch.Types {
				continue
			}
			k, err := c.library(a.by).Restore(a.q, ch.Saved)
			if err != nil {
				return nil, err
			}
			a.Candidate = k
			return &a, nil
		}
	}
	return nil, fmt.Errorf("there is no %s kernel in %s", ch.By, ch.Types)
}

func closeAll(list []*adapted) error {
	var errs []error
	for _, a := range list {
		errs = append(errs, a.Close())
	}
	return cmp.Or(errs...)
}
