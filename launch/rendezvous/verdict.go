package rendezvous

import (
	"maps"
	"slices"
	"time"
)

// How the coordinator ends an epoch, or the job.

// fail takes the report of a failure. A crash, or a death by signal, is acted on at once;
// another cause waits a moment, because whoever noticed a death may be heard
// before the death itself.
func (c *Coordinator) fail(cause *Cause) {
	switch {
	case c.phase == gathering:
	case cause.Kind == CauseUnfit:
		c.unfit(cause)
	case cause.Kind == CauseSignal || cause.Kind == CauseCrash || cause.Kind == CauseStopped:
		c.abort(cause)
	case c.settling == nil:
		c.settling = cause
		c.timer(TimerSettle, c.cfg.Settle)
	}
}

// finished takes note that all ranks of a node have ended well, with that exit code. With the
// last node the job is over, unless its ranks have stopped to be started again.
func (c *Coordinator) finished(from string, code int) {
	if c.phase != running {
		return
	}
	c.done[from] = code
	if len(c.done) < len(c.nodes) {
		c.checkDone()
		return
	}
	worst := 0
	for _, n := range c.nodes {
		worst = max(worst, c.done[n.Name])
	}
	if c.regrouping != nil && c.stop == "" && worst != 0 {
		c.formAgain(c.regrouping)
		return
	}
	c.phase = over
	c.dismissLate(Message{Kind: KindEnd, Code: worst}, "the job has ended")
	c.sendAll(Message{Kind: KindEnd, Code: worst})
}

// stopBy handles a request to stop of the launcher called from. That of a member, of this epoch
// or of the last one, as it may have been sent when that ended, is for all. Who only waits to
// be taken in leaves, which concerns nobody else.
func (c *Coordinator) stopBy(from string, m Message) {
	_, waits := c.late[from]
	if c.index(from) >= 0 || c.last[from] && !waits {
		c.stopAll(m.Text, m.Code, m.Grace)
		return
	}
	c.forget(from)
	if c.phase == gathering {
		c.gathered()
	}
}

// forget has nobody wait for a launcher that is gone, or about to go.
func (c *Coordinator) forget(name string) {
	delete(c.earlier, name)
	delete(c.last, name)
	delete(c.late, name)
}

// stopAll passes a request to stop on to every rank. A job whose ranks do not
// run yet ends at once.
func (c *Coordinator) stopAll(signal string, number int, grace time.Duration) {
	if c.stop != "" || c.phase == over {
		return
	}
	c.stop = signal
	if c.phase == running {
		c.sendAll(Message{Kind: KindStop, Text: signal, Code: number, Grace: grace})
		return
	}
	c.abort(&Cause{Kind: CauseStopped, Rank: -1, Node: -1, Signal: signal, SignalNumber: number, Text: "stopped by " + signal + " before the ranks were started"})
}

// abort ends the epoch, and the job unless it may be formed again.
func (c *Coordinator) abort(cause *Cause) {
	if c.mayFormAgain() && c.phase == running && cause.Kind != CauseStopped && cause.Kind != CauseCut {
		if !cause.mistake() {
			c.restarts++
			c.formAgain(cause)
			return
		}
		c.out = append(c.out, Note{"the ranks are not started again: an exit status of 2 is a mistake on the command line"})
	}
	c.expectFlight(cause)
	c.sendAll(Message{Kind: KindAbort, Cause: cause, Seq: c.table()})
	if c.phase == gathering {
		c.sendAway(Message{Kind: KindAbort, Cause: cause})
	}
	c.phase, c.verdict = over, cause
	c.dismissLate(Message{Kind: KindAbort, Cause: cause}, cause.Error())
}

// formAgain ends the epoch and begins the next.
func (c *Coordinator) formAgain(cause *Cause) {
	c.expectFlight(cause)
	c.sendAll(Message{Kind: KindAbort, Cause: cause, Restart: true, Seq: c.table()})
	c.last = map[string]bool{}
	for _, n := range c.nodes {
		if !c.lost[n.Name] {
			c.earlier[n.Name], c.last[n.Name] = n.Want, true
		}
	}
	c.await()
	c.epoch++
	c.reset()
	c.expect()
}

// sendAway sends m to those who are expected from an earlier epoch and have not come for this
// one yet: most still end their ranks.
func (c *Coordinator) sendAway(m Message) {
	for _, name := range slices.Sorted(maps.Keys(c.earlier)) {
		if c.index(name) < 0 {
			c.send(name, m)
		}
	}
}
