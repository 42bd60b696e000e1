package host

import (
	"context"
	"fmt"
	"strings"
	"time"

	"ebtrain/collective"
)

// Failed is closed when the group has failed, by whatever cause, on this rank.
func (c *Comm) Failed() <-chan struct{} { return c.alarm.raised }

// Failure is why the group has failed, nil while it has not. It wraps
// ErrAborted and the more specific sentinel.
func (c *Comm) Failure() error {
	if f := c.alarm.failure(); f != nil {
		return f
	}
	return nil
}

// Drain waits until everything that was started is over, and is how it ended.
func (c *Comm) Drain(ctx context.Context) error { return c.runner.drain(ctx) }

// Deserter is a rank that has closed its Comm, as far as this rank can know, or -1.
// It is not called after Close.
func (c *Comm) Deserter() int {
	p := c.peers
	if p.arena != nil {
		if l := p.arena.whoLeft(); l >= 0 {
			return p.topo.locals()[l]
		}
	}
	if p.mesh == nil {
		return -1
	}
	for _, o := range p.mesh.others {
		if l := p.mesh.links[o]; l.left.Load() {
			return l.rank
		}
	}
	return -1
}

// Miss ends the group because of a rank that has closed its Comm although the others
// still need it; why says what for.
func (c *Comm) Miss(deserter int, why error) { c.alarm.raise(c.alarm.gone(deserter, closed, why)) }

// Recorder is the flight recorder, for what goes past the queue.
func (c *Comm) Recorder() *collective.Recorder { return c.recorder }

// Missing are the ranks that have not come to the collective that this rank
// waits in, as far as it can know: those of its host, and, for the first rank of
// a host, the first ranks of others from which it hears directly.
func (c *Comm) Missing() []int {
	t, p := c.peers.topo, c.peers
	if p.arena == nil {
		return nil
	}
	var missing []int
	for l, r := range t.locals() {
		if int32(p.arena.slot(l).came.Load()-p.arena.slot(t.local).came.Load()) < 0 {
			missing = append(missing, r)
		}
	}
	if p.mesh == nil || len(missing) > 0 { // hosts meet when their ranks have met
		return missing
	}
	for _, o := range p.mesh.others {
		if l := p.mesh.links[o]; int32(l.came.Load()-l.due.Load()) < 0 {
			missing = append(missing, l.rank)
		}
	}
	return missing
}

// NotCome is a sentence about those who have not come to req within limit.
func (c *Comm) NotCome(req collective.Request, limit time.Duration) error {
	who := "a rank of another host has"
	switch m := c.Missing(); len(m) {
	case 0:
	case 1:
		who = fmt.Sprintf("rank %d has", m[0])
	default:
		who = "ranks " + strings.Trim(strings.ReplaceAll(fmt.Sprint(m), " ", ", "), "[]") + " have"
	}
	what := req.String()
	if req.Label != "" {
		what += fmt.Sprintf(" %q", req.Label)
	}
	return fmt.Errorf("%s not come to %s within %v", who, what, limit)
}
