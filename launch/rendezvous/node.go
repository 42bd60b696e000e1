package rendezvous

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"
)

// NodeConfig describes one launcher.
type NodeConfig struct {
	Info NodeInfo
	Run  Command
	Key  []byte // the job's key; ranks get one derived from it and the epoch
	Join string // where the coordinator is looked for; only for messages

	Ports Ports // that ranks may listen on

	Again      time.Duration // between registrations until the job is committed
	JoinWait   time.Duration // how long to wait for the commit
	AnswerWait time.Duration // how long the coordinator may take to decide on a failure
	StopWait   time.Duration // and on a stop before there are ranks
	KillWait   time.Duration // how long ranks may live on after an abort
	GoneWait   time.Duration // how long they may take to be gone once they are killed
	// StrangerWait is how long ranks that have not joined may take to, before a request
	// to stop reaches them as a signal.
	StrangerWait time.Duration
	Grace        time.Duration // how long ranks may live on after a request to stop
	Batch        bool          // a batch system asks, see env.InBatchJob
}

// Exit is how a rank's process ended: Code, or Signal and SignalNumber.
type Exit struct {
	Code         int
	Signal       string // "SIGKILL"; "" if it was not killed
	SignalNumber int
	During       string // its last progress
	Why          string // why it was killed, if that is known
	Crash        string // what the runtime of its language said of a crash that is no signal
}

type nodePhase int

const (
	joining  nodePhase = iota // registering
	assigned                  // acknowledged, waiting for the commit
	working                   // ranks have been started
	aborting                  // ranks are being ended
	ended
)

// rank is one local rank of the current epoch.
type rank struct {
	pid    int
	alive  bool
	joined bool // it has called Join
	left   bool // it needs the group no more
	exit   Exit // valid if started and not alive
}

// Node is the state of one launcher: pure, see the package comment.
type Node struct {
	cfg     NodeConfig
	phase   nodePhase
	epoch   int
	nodes   []NodeInfo
	self    int
	job     string
	ranks   []rank
	seq     uint64 // exchange under way
	parts   map[int]Message
	failure *Cause // first failure reported to the coordinator
	cause   *Cause // why the epoch is being ended
	restart bool
	flight  uint64 // number of the table of that
	alone   bool   // there is no coordinator, or it does not answer
	stops   int    // interrupts so far
	stopped *Cause // the first of them; nil if there was none
	waiting bool   // it has come, and is not needed yet
	regroup bool   // its ranks have been asked to stop, to be started again
	records string // folder of what is written of the job; "" if no rank has named one
	stop    string // signal of the request to stop, once there is one
	stopNum int
	grace   time.Duration // that ranks have been given to stop
	out     []Effect
}

// NewNode makes a launcher's state.
func NewNode(cfg NodeConfig) *Node {
	n := &Node{cfg: cfg}
	n.reset()
	return n
}

// reset forgets the epoch that was, so that this node can register for the next.
func (n *Node) reset() {
	n.phase, n.nodes, n.ranks, n.seq = joining, nil, nil, 0
	n.parts, n.failure, n.cause, n.restart = map[int]Message{}, nil, nil, false
	n.waiting, n.regroup, n.self = false, false, 0
}

// Start registers with the coordinator.
func (n *Node) Start() []Effect {
	n.register()
	n.timer(TimerCommit, n.cfg.JoinWait)
	return n.flush()
}

// register says that this node is there, and will again if that is lost.
func (n *Node) register() {
	info, run := n.cfg.Info, n.cfg.Run
	n.send(Message{Kind: KindRegister, Node: &info, Command: &run})
	n.timer(TimerRegister, n.cfg.Again)
}

// elastic says that the group may be formed again of fewer or more nodes.
func (n *Node) elastic() bool { return n.cfg.Info.Least > 0 && n.cfg.Info.Least < n.cfg.Info.Nodes }

// Receive handles a message of the coordinator. What does not belong to the phase or to the
// epoch has no effect.
func (n *Node) Receive(m Message) []Effect {
	switch n.phase {
	case joining:
		n.receiveJoining(m)
	case assigned:
		n.receiveAssigned(m)
	case working:
		n.receiveWorking(m)
	case aborting:
		if m.Kind == KindAbort && n.restart && m.Epoch > n.epoch && !m.Restart { // there will be no next epoch
			n.stayEnded(m.Cause)
		}
	}
	return n.flush()
}

func (n *Node) receiveJoining(m Message) {
	switch m.Kind {
	case KindAssign:
		if m.Epoch >= n.epoch && n.failure == nil { // else it has been stopped, and leaves
			n.assign(m)
		}
	case KindRefuse:
		n.finish(m.Cause.Code(), m.Cause)
	case KindAbort:
		if m.Epoch >= n.epoch && !m.Restart { // else it may be formed again with this node
			n.finish(m.Cause.Code(), m.Cause)
		}
	case KindWait:
		if !n.waiting {
			n.emit(Note{m.Text})
		}
		n.waiting = true
	case KindEnd:
		if n.waiting { // as for those that took part
			n.finish(m.Code, nil)
		}
	}
}

func (n *Node) receiveAssigned(m Message) {
	if m.Epoch != n.epoch {
		return
	}
	switch m.Kind {
	case KindAssign: // the answer may be lost
		n.assign(m)
	case KindCommit:
		n.commit()
	case KindAbort:
		n.flight = m.Seq
		n.end(m.Cause, m.Restart)
	}
}

func (n *Node) receiveWorking(m Message) {
	if m.Epoch != n.epoch {
		return
	}
	switch m.Kind {
	case KindGathered:
		if m.Seq == n.seq {
			n.seq++
			clear(n.parts)
			n.tell(-1, m)
		}
	case KindFlight:
		n.tell(-1, m)
		n.emit(TakeFlight{n.epoch, m.Seq})
	case KindFlown:
		n.emit(ShowFlight{Ranks: m.Flown})
	case KindAbort:
		n.flight = m.Seq
		n.end(m.Cause, m.Restart)
	case KindStop:
		n.askToStop(m.Text, m.Code, m.Grace)
	case KindRegroup:
		if !n.regroup && n.stop == "" {
			n.askToRegroup(m.Text)
		}
	case KindEnd:
		n.finish(m.Code, nil)
	}
}

// assign takes this node's place in an epoch, and acknowledges it.
func (n *Node) assign(m Message) {
	self := slices.IndexFunc(m.Nodes, func(i NodeInfo) bool { return i.Name == n.cfg.Info.Name })
	if self < 0 {
		return
	}
	n.phase, n.epoch, n.nodes, n.self, n.job = assigned, m.Epoch, m.Nodes, self, m.Job
	n.send(Message{Kind: KindAck})
}

// commit starts this node's ranks.
func (n *Node) commit() {
	n.phase = working
	if n.stops > 0 { // while this was under way: the coordinator stops them as any others
		n.failure = nil
	}
	n.ranks = make([]rank, n.cfg.Info.Nproc)
	n.emit(StartWorkers{Epoch: n.epoch, Job: n.job, Nodes: n.nodes, Self: n.self})
}

// Expired handles the expiry of a timer.
func (n *Node) Expired(t Timer) []Effect {
	switch {
	case n.phase == ended || t.Epoch != n.epoch && t.Kind != TimerRegister:
	case t.Kind == TimerRegister && n.phase == joining && n.failure == nil: // else it has been stopped, and leaves
		n.register()
	case t.Kind == TimerRegister && n.phase == assigned: // the commit may be lost, or this was
		n.send(Message{Kind: KindAck})
		n.timer(TimerRegister, n.cfg.Again)
	case t.Kind == TimerCommit && n.phase == joining && !n.waiting:
		c := refused(fmt.Sprintf("no coordinator answered at %s within %v: check the address, that EBTRAIN_KEY and --rdzv-id are the same on all nodes, and that node 0 runs", n.cfg.Join, n.cfg.JoinWait))
		n.finish(c.Code(), c)
	case t.Kind == TimerAnswer && n.failure != nil && n.phase != aborting:
		n.alone = true
		n.end(n.failure, false)
	case t.Kind == TimerKill && n.phase == aborting:
		if n.kill(); len(n.alive()) > 0 {
			n.timer(TimerGone, n.cfg.GoneWait)
		}
	case t.Kind == TimerGone && n.phase == aborting:
		n.abandon()
	case t.Kind == TimerStrangers && n.phase == working:
		n.signalStrangers(cmp.Or(n.stopNum, int(syscall.SIGTERM))) // that is for those to be started again
	case t.Kind == TimerGrace && n.phase == working && len(n.alive()) > 0:
		n.endLate()
	}
	return n.flush()
}

// endLate kills the ranks that have been asked to stop and have not.
func (n *Node) endLate() {
	var late []string
	for _, l := range n.alive() {
		late = append(late, fmt.Sprint(n.rankOf(l)))
	}
	c := &Cause{Kind: CauseStopped, Rank: -1, Node: n.self, Signal: n.stop, SignalNumber: n.stopNum,
		Text: fmt.Sprintf("killed: still running %v after %s: rank %s", shown(n.grace), n.stop, strings.Join(late, ", "))}
	n.send(Message{Kind: KindFail, Cause: c})
	n.end(c, false)
	n.kill()
}

// blame fills in which rank c is about.
func (n *Node) blame(local int, c Cause) *Cause {
	c.Rank, c.Node, c.Host, c.Pid = n.rankOf(local), n.self, n.cfg.Info.Host, n.ranks[local].pid
	return &c
}

// Deserted reports whether no coordinator has decided that, and why, the job ends.
func (n *Node) Deserted() bool { return n.alone }

// rankOf is the number in the epoch of a local rank.
func (n *Node) rankOf(local int) int { return Base(n.nodes, n.self) + local }

// alive are the local ranks whose processes have not ended.
func (n *Node) alive() []int {
	var live []int
	for l, r := range n.ranks {
		if r.alive {
			live = append(live, l)
		}
	}
	return live
}

// allExited says whether all ranks were started and have ended.
func (n *Node) allExited() bool {
	return !slices.ContainsFunc(n.ranks, func(r rank) bool { return r.alive || r.pid == 0 })
}

// tell sends m to a local rank, to all of them if local is -1.
func (n *Node) tell(local int, m Message) {
	m.Epoch = n.epoch
	n.emit(Tell{local, m})
}

// send sends m to the coordinator.
func (n *Node) send(m Message) {
	m.Epoch = n.epoch
	n.emit(Send{"", m})
}

func (n *Node) timer(k TimerKind, after time.Duration) {
	n.emit(SetTimer{Timer{Kind: k, Epoch: n.epoch}, after})
}

func (n *Node) emit(e Effect) { n.out = append(n.out, e) }

// flush is what is to be done now.
func (n *Node) flush() []Effect {
	out := n.out
	n.out = nil
	return out
}
