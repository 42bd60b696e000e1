// Package hypercheck verifies the gradient of a bi-level model: that of the upper
// loss J(θ, φᴺ(θ)) through the unrolled lower level [ALGORITHMS.md §2.1]. In
// float64, on one batch, it compares
//
//   - the gradient of n ranks with that of one process on the whole batch,
//   - it with central differences of the one process's J in random directions,
//   - and, to show what the first comparison can see, one process with two wrong
//     ways to unroll on n ranks: without the adjoints of the inner all-reduces,
//     and with inner steps on local gradients.
//
// Variables are grouped by the first part of their names: the networks. A process
// that is alone plays two ranks, with a goroutine each.
//
// Every rank of a job calls Run with equal arguments but for Comm, computes the
// one process's gradient itself, and gets the same Table: the largest differences
// over all ranks. Directions are named by the seed, a number and the variable, so
// they are the same for any number of ranks, which share them.
package hypercheck

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"ebtrain/collective"
	"ebtrain/collective/host"
	"ebtrain/ddp/exec"
	"ebtrain/trainer/algo"
)

// Check says what is verified, and on what.
type Check struct {
	Model   algo.Model                   // an algo.Bilevel
	Backend func() (exec.Backend, error) // makes one that computes in F64 for each rank that lives here
	Comm    collective.Comm              // nil in a world of one

	Images []float32 // the whole batch (Batch, C, H, W), the same on all ranks
	Batch  int       // over all ranks
	First  int64     // the number of its first sample
	Step   int64     // names the draws, and feeds the model's own inputs
	Epoch  int
	Seed   uint64 // of the initial values, the draws and the directions

	// Warm is the number of training steps on the batch, from Step on, before the
	// check, which then is of the step after them. One process does them all, in
	// the precision of training. An unrolled optimiser that begins without moments,
	// as Adam, divides each gradient by its own size: its step jumps where a
	// gradient changes its sign, and central differences of many variables see
	// nothing but jumps. After a few steps it is smooth.
	Warm int
	// Directions is the number of random directions for each network; 0 means 3.
	Directions int
}

// alone is the number of ranks that a process alone plays.
const alone = 2

// Run verifies. An error says that the check could not be done; what the check
// found is in the Table. After an error the Comm is of no more use: the caller
// aborts it.
func Run(ctx context.Context, c Check) (*Table, error) {
	model, ok := c.Model.(algo.Bilevel)
	if !ok {
		return nil, errors.New("hypercheck: the model has no lower level that is unrolled: choose a bi-level method")
	}
	n := alone
	if c.Comm != nil && c.Comm.Size() > 1 {
		n = c.Comm.Size()
	}
	if err := c.check(n); err != nil {
		return nil, err
	}
	if c.Directions == 0 {
		c.Directions = 3
	}
	if c.Comm != nil && c.Comm.Size() > 1 {
		return c.rank(ctx, model, c.Comm)
	}
	t, err := c.simulate(ctx, model, n)
	if err == nil {
		t.Simulated = true
	}
	return t, err
}

func (c *Check) check(n int) error {
	shape := c.Model.Takes().Shape
	switch {
	case c.Batch < 1 || c.Batch%n != 0:
		return fmt.Errorf("hypercheck: a batch of %d cannot be shared evenly by %d ranks: take a multiple of %d", c.Batch, n, n)
	case len(c.Images) != c.Batch*shape.Len():
		return fmt.Errorf("hypercheck: %d values, expected %d: %d samples of %v", len(c.Images), c.Batch*shape.Len(), c.Batch, shape)
	case c.Directions < 0 || c.Warm < 0:
		return fmt.Errorf("hypercheck: %d directions after %d steps, expected 1 or more directions, or 0 for the default, after 0 steps or more", c.Directions, c.Warm)
	}
	return nil
}

// simulate is n ranks as goroutines.
func (c *Check) simulate(ctx context.Context, model algo.Bilevel, n int) (*Table, error) {
	comms, err := host.NewLocal(ctx, n)
	if err != nil {
		return nil, err
	}
	tables, errs := make([]*Table, n), make([]error, n)
	var wg sync.WaitGroup
	for r, comm := range comms {
		wg.Go(func() {
			if tables[r], errs[r] = c.rank(ctx, model, comm); errs[r] != nil {
				comm.Abort(errs[r])
			}
		})
	}
	wg.Wait()
	for _, comm := range comms {
		errs = append(errs, comm.Close())
	}
	if err := first(errs); err != nil {
		return nil, err
	}
	return tables[0], nil
}

// first is the first cause: the error that is not of an aborted group, if there
// is one.
func first(errs []error) error {
	for _, err := range errs {
		if err != nil && !errors.Is(err, collective.ErrAborted) {
			return err
		}
	}
	return errors.Join(errs...)
}

// rank is the check on one rank of several.
func (c *Check) rank(ctx context.Context, model algo.Bilevel, comm collective.Comm) (t *Table, err error) {
	b, err := c.Backend()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	m := &machine{check: c, model: model, backend: b}
	if err := m.warm(ctx); err != nil {
		return nil, err
	}
	if err := m.agree(ctx, comm); err != nil {
		return nil, err
	}
	reduced, err := b.Connect(ctx, comm)
	if err != nil {
		return nil, err
	}
	whole, err := m.compile(part{ranks: 1, inner: algo.AllReduced})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, whole.close()) }()
	want, err := whole.run(ctx)
	if err != nil {
		return nil, err
	}
	t = newTable(want, comm.Size())
	var got gradient
	for inner := algo.AllReduced; inner <= algo.Local; inner++ {
		g, err := m.once(ctx, part{ranks: comm.Size(), rank: comm.Rank(), comm: reduced, inner: inner})
		if err != nil {
			return nil, err
		}
		t.compare(inner, g, want)
		if inner == algo.AllReduced {
			got = g
		}
	}
	if err := whole.differences(ctx, t, got, comm); err != nil {
		return nil, err
	}
	return t, t.merge(ctx, comm)
}
