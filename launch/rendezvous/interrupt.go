package rendezvous

import (
	"fmt"
	"syscall"
	"time"
)

// Interrupt handles a signal sent to the launcher: the first asks the ranks of
// all nodes to stop, the second kills them. A SIGHUP is never the second: when
// a terminal goes away the kernel and the shell each send one. Nor is a batch system's
// SIGTERM, which may come several times within a moment, and kills by itself.
func (n *Node) Interrupt(signal string, number int) []Effect {
	if n.stops > 0 && (signal == "SIGHUP" || signal == "SIGTERM" && n.cfg.Batch) {
		return nil
	}
	n.stops++
	stopped := &Cause{Kind: CauseStopped, Rank: -1, Node: n.self, Signal: signal, SignalNumber: number}
	if n.stops == 1 {
		n.stopped = stopped
	}
	switch {
	case n.phase == ended:
	case n.stops == 1:
		n.send(Message{Kind: KindStop, Text: signal, Code: number})
		if n.phase == working {
			n.askToStop(signal, number, 0)
			break
		}
		stopped.Text = "stopped by " + signal + " before the ranks were started"
		if n.phase == aborting {
			n.stayStopped()
			break
		}
		n.failure = stopped
		n.timer(TimerAnswer, n.cfg.StopWait)
	case n.phase == working:
		stopped.Text = "killed by a second " + signal
		n.send(Message{Kind: KindFail, Cause: stopped})
		n.end(stopped, false)
		n.kill()
	case n.phase == aborting:
		n.kill()
	default:
		stopped.Text = "stopped by a second " + signal
		n.finish(stopped.Code(), stopped)
	}
	return n.flush()
}

// stayStopped has the ranks, which are being ended to be started again, not be started again:
// this launcher has been stopped. That is then why the job ends, as it is for the other
// launchers, which the coordinator tells: the failure was to be made good.
func (n *Node) stayStopped() {
	if n.restart {
		n.stopped.Text = "stopped by " + n.stopped.Signal + " before the ranks were started again"
		n.stayEnded(n.stopped)
	}
}

// stayEnded has ranks that are being ended to be started again not be started again: the job
// ends by c.
func (n *Node) stayEnded(c *Cause) {
	n.emit(Note{"not started again: " + n.cause.Error()})
	n.cause, n.restart = c, false
}

// Ending handles the news that the job's time ends when left has passed: the ranks
// of all nodes are asked to stop, and have until then. It counts as no interrupt:
// the first one that comes does not kill.
func (n *Node) Ending(left time.Duration) []Effect {
	if n.phase != ended {
		n.send(Message{Kind: KindStop, Text: "SIGTERM", Code: int(syscall.SIGTERM), Grace: left})
	}
	return n.flush()
}

// askToStop passes a request to stop on to the local ranks, once. They have as long as the
// configuration says, or grace if that is longer.
func (n *Node) askToStop(signal string, number int, grace time.Duration) {
	if n.stop != "" {
		return
	}
	n.stop, n.stopNum, n.grace = signal, number, max(n.cfg.Grace, grace)
	n.ask(Message{Kind: KindStop, Text: signal, Code: number}, n.grace)
	n.emit(Note{fmt.Sprintf("%s: the ranks are asked to stop and have %v; a second signal kills them", signal, shown(n.grace))})
	n.timer(TimerGrace, n.grace)
}

// askToRegroup asks the local ranks to stop, to be started again. The coordinator knows
// how long that may take.
func (n *Node) askToRegroup(why string) {
	n.regroup = true
	n.ask(Message{Kind: KindStop, Text: why}, n.cfg.Grace)
}

// ask tells the ranks, which have so long, to stop: by a message those that have joined or
// soon do, by a signal those that do not, as they are programs of another kind. One that has
// only just been started does not hear signals yet: it would die of it, and the job with it,
// or miss it.
func (n *Node) ask(m Message, grace time.Duration) {
	n.toJoined(m)
	if len(n.strangers()) > 0 {
		n.timer(TimerStrangers, min(n.cfg.StrangerWait, grace/2))
	}
}

// shown is d as people want it: no fractions of what takes seconds.
func shown(d time.Duration) time.Duration {
	if d > 2*time.Second {
		return d.Round(time.Second)
	}
	return d
}
