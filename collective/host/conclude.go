package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ebtrain/collective"
)

// patience is how long a rank that finds a broken connection or an abort
// without its record waits to be told why.
const patience = time.Second

// barrierError is a barrier that this rank did not pass.
type barrierError struct {
	outcome outcome
	peer    int // local rank that deserted
}

func (e *barrierError) Error() string { return "barrier not passed" }

// barrier waits for all ranks of this host.
func (c *Comm) barrier(ctx context.Context) error { return c.pass(ctx, c.arena.enter()) }

// pass waits for all ranks of this host to enter the gate. If ctx ends first,
// the group does; the collective may be complete all the same.
func (c *Comm) pass(ctx context.Context, g gate) error {
	out, peer := c.arena.await(g, ctx.Done())
	if out == interrupted {
		c.Abort(context.Cause(ctx))
		out, peer = c.arena.await(g, nil)
	}
	if out != passed {
		return &barrierError{out, peer}
	}
	return nil
}

// conclude ends the group because of err, unless it has ended already, and is
// the group's failure.
func (c *Comm) conclude(err error) error {
	var barrier *barrierError
	var link *linkError
	var mismatch *mismatchError
	switch {
	case errors.As(err, &barrier) && barrier.outcome == deserted:
		c.lost(c.topo.locals()[barrier.peer], "it has closed its communicator", nil)
	case errors.As(err, &barrier):
		c.learn()
	case errors.As(err, &link):
		c.ask(link)
	case errors.As(err, &mismatch):
		c.fail(&failure{record: record{code: codeMismatch, rank: c.rank, peer: mismatch.rank, text: mismatch.text}})
	default:
		c.fail(abortedBy(c.rank, err))
	}
	if f := c.failure(); f != nil {
		return f
	}
	return fmt.Errorf("%w: %w", collective.ErrAborted, err)
}

// learn takes over the failure that another rank of this host has recorded.
func (c *Comm) learn() {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if c.failure() != nil {
			return
		}
		if r, ok := c.arena.why(); ok {
			c.fail(&failure{record: r, remote: r.rank != c.rank})
			return
		}
		time.Sleep(100 * time.Microsecond)
	}
	c.fail(&failure{record: record{code: codeAborted, rank: c.rank, peer: -1, text: "a rank of this host ended the group and died before it said why"}})
}

// ask waits for the control connection to say why data broke off.
func (c *Comm) ask(trouble *linkError) {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		select {
		case <-c.failing:
			return
		case <-time.After(time.Millisecond):
		}
		if c.mesh.hasLeft(trouble.rank) {
			c.lost(trouble.rank, "it has closed its communicator", nil)
			return
		}
	}
	c.lost(trouble.rank, "its connection broke", trouble.err)
}
