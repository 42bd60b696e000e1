package rendezvous

import (
	"fmt"
	"slices"
	"syscall"

	"ebtrain/launch/exitcode"
)

// report tells the coordinator of a failure and expects a decision.
func (n *Node) report(c *Cause) {
	if n.failure == nil {
		n.failure = c
		n.timer(TimerAnswer, n.cfg.AnswerWait)
	}
	n.send(Message{Kind: KindFail, Cause: c})
}

// Lost handles the news that the launcher with the coordinator is dead,
// unreachable, or has left, and how it was lost. Of the other launchers the coordinator
// judges.
func (n *Node) Lost(how Loss) []Effect {
	switch n.phase {
	case joining:
		c := n.failure // it was stopped
		if c == nil {
			c = n.gone("before all nodes had joined")
			if n.elastic() && (n.waiting || n.epoch > 0) {
				c = n.gone("while this node waited for it")
				c.ExitCode = exitcode.Requeue
			}
		}
		n.finish(c.Code(), c)
	case working, assigned:
		c := &Cause{Kind: CauseNode, Rank: -1, Node: 0, Host: n.nodes[0].Host,
			Text: lostText(rankRange(0, n.nodes[0].Nproc)+" and the coordinator", how)}
		if n.elastic() {
			c.ExitCode = exitcode.Requeue // from its checkpoint it goes on like after any other loss
		}
		n.alone = true
		n.end(c, false)
	case aborting:
		if n.restart { // which nobody is left to bring about
			n.restart, n.cause = false, n.gone("before the ranks were started again")
			if n.elastic() {
				n.cause.ExitCode = exitcode.Requeue
			}
		}
	}
	return n.flush()
}

// gone is that node 0 is, at a time when this node waits for it.
func (n *Node) gone(when string) *Cause {
	return refused(fmt.Sprintf("node 0 at %s is gone %s: its launcher has ended, or its host is dead or unreachable", n.cfg.Join, when))
}

// Alone handles the news that this host is cut off from all others. Where node 0 is, the
// coordinator decides.
func (n *Node) Alone() []Effect {
	switch {
	case n.phase == joining: // the others are not known, but that node 0 is to be waited for
		return n.Lost(Unreachable)
	case n.phase == working || n.phase == assigned:
		n.alone = true
		n.end(cutOff(n.nodes, n.self), false)
	case n.phase == aborting && n.restart: // which this node has no part in
		n.alone = true
		n.stayEnded(cutOff(n.nodes, n.self))
	}
	return n.flush()
}

// end begins to end the epoch: ranks are told why, and killed if they do not
// go by themselves.
func (n *Node) end(c *Cause, restart bool) {
	explain := n.phase == working && tellsMuch(c)
	n.phase, n.cause, n.restart = aborting, c, restart
	n.toAlive(Message{Kind: KindAbort, Cause: c}, int(syscall.SIGTERM))
	if explain { // the ranks need longer to hear of it
		n.emit(TakeFlight{n.epoch, n.flight})
	}
	if l := c.Rank - Base(n.nodes, n.self); c.Kind == CauseStuck && c.Signal != "" && l >= 0 && l < len(n.ranks) && n.ranks[l].alive {
		n.emit(Signal{[]int{l}, int(syscall.SIGKILL)}) // it hears nothing
	}
	n.timer(TimerKill, n.cfg.KillWait)
	if n.stops > 0 {
		n.stayStopped()
	}
	n.conclude()
}

// toAlive sends m to the ranks that have joined and a signal to the others.
func (n *Node) toAlive(m Message, number int) {
	n.toJoined(m)
	n.signalStrangers(number)
}

// toJoined sends m to the ranks that have joined.
func (n *Node) toJoined(m Message) {
	for _, l := range n.alive() {
		if n.ranks[l].joined {
			n.tell(l, m)
		}
	}
}

// strangers are the ranks that live and have not joined.
func (n *Node) strangers() []int {
	return slices.DeleteFunc(n.alive(), func(l int) bool { return n.ranks[l].joined })
}

// signalStrangers sends them a signal.
func (n *Node) signalStrangers(number int) {
	if all := n.strangers(); len(all) > 0 {
		n.emit(Signal{all, number})
	}
}

// kill kills the ranks that live.
func (n *Node) kill() {
	if live := n.alive(); live != nil {
		n.emit(Signal{live, int(syscall.SIGKILL)})
	}
}

// abandon leaves the ranks behind that do not end though they were killed: they stand in
// the kernel, for a file system or a driver that does not answer, and hold what they
// hold. So nothing is started beside them: the launcher ends.
func (n *Node) abandon() {
	if live := n.alive(); live != nil {
		n.emit(Abandon{live})
		n.finish(n.code(), n.cause)
	}
}

// conclude leaves the epoch once all its ranks are gone.
func (n *Node) conclude() {
	if len(n.alive()) > 0 {
		return
	}
	if !n.restart {
		n.finish(n.code(), n.cause)
		return
	}
	what := "restart"
	if n.elastic() {
		what = "epoch"
	}
	n.emit(Note{fmt.Sprintf("%s %d: %s", what, n.epoch+1, n.cause.Error())})
	n.reset()
	n.epoch++
	n.register()
	n.timer(TimerCommit, n.cfg.JoinWait)
}

// code is the launcher's exit code. A rank that raised the abort says more
// with its own exit code.
func (n *Node) code() int {
	if c := n.cause; (c.Kind == CauseRaised || c.Kind == CauseUnfit) && c.Node == n.self && n.nodes != nil {
		if l := c.Rank - Base(n.nodes, n.self); l >= 0 && l < len(n.ranks) {
			if e := n.ranks[l].exit; e.Signal == "" && e.Code > 0 && e.Code != exitcode.Requeue {
				return e.Code
			}
		}
	}
	return n.cause.Code()
}

// finish ends the launcher.
func (n *Node) finish(code int, c *Cause) {
	n.phase = ended
	n.emit(Finish{code, c})
}
