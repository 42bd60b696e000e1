package rendezvous

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"syscall"

	"ebtrain/launch/exitcode"
)

// Started handles the start of a local rank's process.
func (n *Node) Started(local, pid int) []Effect {
	n.ranks[local].pid, n.ranks[local].alive = pid, true
	if n.phase == aborting { // the cause came while it was being started
		n.emit(Signal{[]int{local}, int(syscall.SIGKILL)})
	}
	return n.flush()
}

// StartFailed handles a local rank that could not be started.
func (n *Node) StartFailed(local int, why error) []Effect {
	n.report(n.blame(local, Cause{Kind: CauseRaised, Text: why.Error()}))
	return n.flush()
}

// FromWorker handles a message of a local rank.
func (n *Node) FromWorker(local int, m Message) []Effect {
	r := &n.ranks[local]
	switch m.Kind {
	case KindHello:
		n.hello(local, m)
	case KindExchange:
		if n.phase == working && len(m.Blobs) == 1 {
			n.exchange(local, m)
		}
	case KindFail:
		if n.phase == working && m.Cause != nil {
			kind := CauseRaised
			if m.Cause.Kind == CauseUnfit {
				kind = CauseUnfit
			}
			n.report(n.blame(local, Cause{Kind: kind, Text: m.Cause.Text}))
		}
	case KindStop:
		if n.phase == working {
			n.send(Message{Kind: KindStop, Text: m.Text, Code: m.Code})
		}
	case KindShare:
		if n.phase == working {
			n.send(Message{Kind: KindShare, Code: m.Code})
		}
	case KindFlight:
		n.askFlight()
	case KindRecords:
		n.records = m.Text
	case KindBye:
		r.left = true
		n.checkGone()
	}
	return n.flush()
}

// hello welcomes a process as a rank, or refuses it.
func (n *Node) hello(local int, m Message) {
	r := &n.ranks[local]
	switch {
	case m.Text != n.job:
		n.tell(local, Message{Kind: KindRefuse, Cause: refused(fmt.Sprintf("this process belongs to group %q, its launcher runs %q", m.Text, n.job))})
		return
	case r.joined:
		n.tell(local, Message{Kind: KindRefuse, Cause: refused(fmt.Sprintf("another process has already joined as rank %d", n.rankOf(local)))})
		return
	}
	r.joined = true
	mac := hmac.New(sha256.New, n.cfg.Key)
	mac.Write([]byte(n.job))
	n.tell(local, Message{Kind: KindWelcome, Nodes: n.nodes, Job: n.job, Key: mac.Sum(nil), Ports: n.cfg.Ports, Restart: n.elastic()})
	if n.stop != "" || n.regroup {
		n.tell(local, Message{Kind: KindStop, Text: n.stop, Code: n.stopNum})
	}
	if n.phase == aborting {
		n.tell(local, Message{Kind: KindAbort, Cause: n.cause})
	}
}

// exchange takes a rank's blob, and sends those of all ranks of this node on together.
func (n *Node) exchange(local int, m Message) {
	if m.Seq != n.seq {
		return
	}
	for other := range n.ranks {
		if p, ok := n.parts[other]; ok && p.Name != m.Name {
			n.report(n.blame(local, Cause{Kind: CauseRaised, Text: disagree(n.rankOf(local), m.Name, n.rankOf(other), p.Name, m.Seq)}))
			return
		}
	}
	n.parts[local] = m
	if len(n.parts) < len(n.ranks) {
		n.checkGone()
		return
	}
	blobs := make([][]byte, len(n.ranks))
	total := 0
	for i := range blobs {
		blobs[i] = n.parts[i].Blobs[0]
		total += len(blobs[i])
	}
	if total > MaxExchange { // it may be more than fits into a message
		n.report(n.blame(local, Cause{Kind: CauseRaised, Text: tooLarge(m.Name)}))
		return
	}
	n.send(Message{Kind: KindExchange, Seq: n.seq, Name: m.Name, Blobs: blobs})
}

// checkGone reports a rank that will never take part in an exchange for which
// others wait.
func (n *Node) checkGone() {
	if n.phase != working || len(n.parts) == 0 || n.failure != nil {
		return
	}
	waiting := slices.Min(slices.Collect(maps.Keys(n.parts)))
	for gone, r := range n.ranks {
		if _, ok := n.parts[gone]; ok || r.pid == 0 || r.alive && !r.left {
			continue
		}
		if n.regroup && n.stop == "" { // it was asked to, and those that wait cannot
			n.send(Message{Kind: KindRegroup})
			return
		}
		n.report(n.blame(gone, Cause{Kind: CauseRaised, Text: fmt.Sprintf("left the group while rank %d waits for it in exchange %q", n.rankOf(waiting), n.parts[waiting].Name)}))
		return
	}
}

// Exited handles the end of a local rank's process.
func (n *Node) Exited(local int, e Exit) []Effect {
	r := &n.ranks[local]
	r.alive, r.exit = false, e
	switch {
	case n.phase == aborting:
		n.conclude()
	case n.phase != working:
	case e.Signal != "" && !n.passedOn(e.SignalNumber):
		n.report(n.blame(local, Cause{Kind: CauseSignal, Signal: e.Signal, SignalNumber: e.SignalNumber, During: e.During, Text: e.Why}))
	case e.Crash != "":
		n.report(n.blame(local, Cause{Kind: CauseCrash, Text: e.Crash, During: e.During}))
	case e.Signal == "" && e.Code != 0 && e.Code != exitcode.Requeue && !n.passedOn(e.Code-exitcode.Signal):
		n.report(n.blame(local, Cause{Kind: CauseExit, ExitCode: e.Code, During: e.During}))
	default:
		n.checkGone()
		if n.failure == nil && n.allExited() {
			n.send(Message{Kind: KindDone, Code: n.worst()})
		}
	}
	return n.flush()
}

// passedOn says that ranks were asked to stop by that signal: those that have not joined
// die of it, and programs that keep nothing of what is half done end with its code.
func (n *Node) passedOn(number int) bool {
	return n.stop != "" && number == n.stopNum || n.regroup && number == int(syscall.SIGTERM)
}

// worst is the largest exit code of the ranks, none of which has failed.
func (n *Node) worst() int {
	worst := 0
	for _, r := range n.ranks {
		code := r.exit.Code
		if r.exit.Signal != "" { // by the signal we passed on
			code = exitcode.Signal + r.exit.SignalNumber
		}
		worst = max(worst, code)
	}
	return worst
}
