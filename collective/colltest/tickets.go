package colltest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"ebtrain/collective"
)

// tickets waits for collectives again and again: later ones, the end of the
// group and Close change nothing about how one ended.
func (f Factory) tickets(t *testing.T) {
	n := min(3, f.MaxRanks)
	comms := f.New(t, n)
	kept := make([][]collective.Pending, n)
	each(comms, func(c collective.Comm) error {
		mine := &kept[c.Rank()]
		for k := range 200 {
			req := collective.Request{Kind: collective.Barrier, Label: fmt.Sprint(k)}
			if k%2 == 1 {
				var err error
				if req, err = f.sum(c, 100*k); err != nil {
					return err
				}
			}
			*mine = append(*mine, c.Start(req))
			if k%3 == 0 { // so that some run while others wait in the queue
				if err := wait((*mine)[k/2]); err != nil {
					return err
				}
			}
		}
		return again(*mine)
	}).ok(t)
	if n > 1 {
		each(comms, func(c collective.Comm) error {
			if c.Rank() == 0 { // the others do not come
				p := c.Start(collective.Request{Kind: collective.Barrier, Label: "fails"})
				c.Abort(errCause)
				for range 2 {
					if err := wait(p); !errors.Is(err, errCause) {
						return fmt.Errorf("after the abort: %w", err)
					}
				}
			}
			return again(kept[c.Rank()])
		}).ok(t)
	}
	each(comms, func(c collective.Comm) error { return c.Close() }).ok(t)
	each(comms, func(c collective.Comm) error { return again(kept[c.Rank()]) }).ok(t)
}

// again waits for collectives that are complete, last first, with a context
// that has ended.
func again(ps []collective.Pending) error {
	for i := range ps {
		k := len(ps) - 1 - i
		if err := wait(ps[k]); err != nil {
			return fmt.Errorf("collective %d: %w", k, err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := ps[k].Wait(ctx); err != nil {
			return fmt.Errorf("collective %d, again: %w", k, err)
		}
	}
	return nil
}
