package choose

import (
	"cmp"
	"fmt"
	"iter"

	"ebtrain/ddp/exec/cuda/linalg"
)

// most is the number of candidates that are timed for a problem. untimed is how many are
// prepared where nothing is: one to take, and one for where that does not run.
const most, untimed = 24, 2

// besides is how many more are timed that make products of columns; columnBytes is what
// these may take for columns at most.
const (
	besides     = 4
	columnBytes = 256 << 20
)

// few is a number of candidates below which a problem is also asked for in another way:
// what has to be compiled for it may be slower than what is there with casts.
const few = 3

// quick is how many flops a plain kernel is timed for, since that takes no time.
const quick = 1 << 30

// The names of libraries in choices.
const (
	byConvolutions = "cudnn"
	byProducts     = "cublaslt"
	byColumns      = "columns" // products of columns
	byPlain        = "plain"
	byFew          = "few" // the caller's kernels for images of few channels
)

// ways are how libraries may be asked for a problem, in groups.
func (c *Chooser) ways(p linalg.Problem) (groups [][]adapted) {
	for _, group := range variants(p) {
		var ways []adapted
		for _, t := range group {
			for _, a := range c.as(p, t) {
				if !a.casts || c.o.Cast != nil {
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
			ways = append(ways, c.adapt(p, q, false, byProducts, columns{}))
		}
	case linalg.Conv:
		if m, swap, ok := q.Product(); ok && c.o.Products != nil {
			ways = append(ways, c.adapt(p, m, swap, byProducts, columns{}))
		}
		if c.o.Convolutions != nil {
			ways = append(ways, c.adapt(p, q, false, byConvolutions, columns{}))
		}
	}
	return ways
}

// columnWays is how cublasLt may be asked for a convolution as a product of columns, in the
// types of the first group: none where nothing is timed.
func (c *Chooser) columnWays(p linalg.Problem) (ways []adapted) {
	conv, ok := p.(linalg.Conv)
	if !ok || c.o.Untimed || c.o.Products == nil || c.o.Move == nil {
		return nil
	}
	for _, t := range variants(p)[0] {
		q, ok := conv.Columns(t)
		if !ok {
			continue
		}
		a := c.adapt(p, q.Product, q.Swap, byColumns, columns{q.Dst, q.A, q.B})
		if a.start <= columnBytes && (!a.casts || c.o.Cast != nil) {
			ways = append(ways, a)
		}
	}
	return ways
}

func (c *Chooser) library(by string) linalg.Library {
	if by == byProducts || by == byColumns {
		return c.o.Products
	}
	return c.o.Convolutions
}

// candidates are those for a problem, in lists: the next is wanted where none of the one
// before works. A list is of a group of ways, or of several where one has few; products
// of columns, a kernel for few channels and a plain one stand behind the first that is to be
// timed, and the plain one alone at the end. Who takes a list closes it; after an error none is left.
func (c *Chooser) candidates(p linalg.Problem) iter.Seq2[[]*adapted, error] {
	return func(yield func([]*adapted, error) bool) {
		n := most
		if c.o.Untimed {
			n = untimed
		}
		groups, behind := c.ways(p), c.extras(p)
		var list []*adapted
		for i, group := range groups {
			var err error
			list, err = c.ask(list, group, n)
			if last := i+1 == len(groups); err == nil && !last && c.wantsMore(list) {
				continue
			}
			if err == nil {
				list, err = behind.add(list)
			}
			if err != nil {
				yield(nil, cmp.Or(err, closeAll(list)))
				return
			}
			if len(list) == 0 {
				continue
			}
			if !yield(list, nil) {
				return
			}
			list = nil
		}
		if behind.plain {
			k, err := c.plain(p)
			yield([]*adapted{k}, err)
		}
	}
}

// wantsMore says whether the next group is asked, too, before a list is timed.
func (c *Chooser) wantsMore(list []*adapted) bool {
	return len(list) == 0 || !c.o.Untimed && len(list) < few
}

// extras are the candidates for a problem that stand behind those of a group of ways, each
// in one list only.
type extras struct {
	c       *Chooser
	p       linalg.Problem
	columns []adapted // ways
	few     bool      // the kernel for few channels is still to come
	plain   bool      // so is the plain one
}

func (c *Chooser) extras(p linalg.Problem) *extras {
	return &extras{c: c, p: p, columns: c.columnWays(p), few: c.o.Few != nil && !c.o.Untimed, plain: c.o.Plain != nil}
}

// add adds what is still to come to a list: the plain kernel only if it is quick, and is not
// the only one. The list is good with an error, too.
func (e *extras) add(list []*adapted) ([]*adapted, error) {
	list, err := e.c.ask(list, e.columns, len(list)+besides)
	e.columns = nil
	if err == nil && e.few {
		e.few = false
		list, err = e.c.addFew(list, e.p)
	}
	if err != nil || len(list) == 0 || !e.plain || e.c.o.Untimed || e.p.Flops() > quick {
		return list, err
	}
	e.plain = false
	k, err := e.c.plain(e.p)
	if err != nil {
		return list, err
	}
	return append(list, k), nil
}

// ask adds what libraries have for a problem, asked in a group of ways, to a list of
// candidates, up to n in all. The list is good with an error, too.
func (c *Chooser) ask(list []*adapted, group []adapted, n int) ([]*adapted, error) {
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

// addFew adds the caller's kernel for few channels, if there is one for the problem.
func (c *Chooser) addFew(list []*adapted, p linalg.Problem) ([]*adapted, error) {
	k, err := c.o.Few(p)
	if err == nil && k != nil {
		list = append(list, c.own(p, k, byFew))
	}
	return list, err
}

// own is a candidate of the caller's as one for the problem.
func (c *Chooser) own(p linalg.Problem, k linalg.Candidate, by string) *adapted {
	a := c.adapt(p, p, false, by, columns{})
	a.Candidate = k
	return &a
}

// plain is the caller's kernel.
func (c *Chooser) plain(p linalg.Problem) (*adapted, error) {
	if c.o.Plain == nil {
		return nil, fmt.Errorf("there is no plain kernel for %v", p)
	}
	k, err := c.o.Plain(p)
	if err != nil {
		return nil, err
	}
	return c.own(p, k, byPlain), nil
}

// restore makes the kernel of a choice.
func (c *Chooser) restore(p linalg.Problem, ch choice) (*adapted, error) {
	switch {
	case ch.By == byPlain:
		return c.plain(p)
	case ch.By == byFew && c.o.Few != nil:
		list, err := c.addFew(nil, p)
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			return list[0], nil
		}
	}
	for _, group := range append(c.ways(p), c.columnWays(p)) {
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
