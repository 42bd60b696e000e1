package choose

import (
	"cmp"
	"fmt"
	"iter"

	"ebtrain/ddp/exec/cuda/linalg"
)

// most is the number of candidates that are timed for a problem. untimed is how many are
// prepared where nothing is: one to take, and one for where that does not run.
const most, untimed = 8, 2

// few is a number of candidates below which a problem is also asked for in another way:
// what has to be compiled for it may be slower than what is there with casts.
const few = 3

// quick is how many flops a plain kernel is timed for, since that takes no time.
const quick = 1 << 30

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

// candidates are those for a problem, in lists: the next is wanted where none of the one
// before works. A list is of a group of ways, or of several where one has few; a plain
// kernel stands behind the first that is to be timed, and alone at the end. Who takes a
// list closes it; after an error none is left.
func (c *Chooser) candidates(p linalg.Problem) iter.Seq2[[]*adapted, error] {
	return func(yield func([]*adapted, error) bool) {
		groups, plain := c.ways(p), c.o.Plain != nil
		var list []*adapted
		for i, group := range groups {
			var err error
			if list, err = c.ask(list, group); err != nil {
				yield(nil, cmp.Or(err, closeAll(list)))
				return
			}
			if len(list) == 0 || !c.o.Untimed && len(list) < few && i+1 < len(groups) {
				continue
			}
			if plain && !c.o.Untimed && p.Flops() <= quick {
				plain = false
				k, err := c.plain(p)
				if err != nil {
					yield(nil, cmp.Or(err, closeAll(list)))
					return
				}
				list = append(list, k)
			}
			if !yield(list, nil) {
				return
			}
			list = nil
		}
		if plain {
			k, err := c.plain(p)
			yield([]*adapted{k}, err)
		}
	}
}

// ask adds what libraries have for a problem, asked in a group of ways, to a list of
// candidates. The list is good with an error, too.
func (c *Chooser) ask(list []*adapted, group []adapted) ([]*adapted, error) {
	n := most
	if c.o.Untimed {
		n = untimed
	}
	for i, a := range group {
		if len(list) == n {
			break
		}
		more, err := c.library(a.by).Prepare(a.q, share(n-len(list), len(group)-i))
		for _, m := range more {
			made := a
			made.Candidate = m
			list = append(list, &made)
		}
		if err != nil {
			return list, err
		}
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
