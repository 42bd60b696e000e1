package rendezvous

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"ebtrain/launch/exitcode"
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
	KillWait   time.Duration // how long ranks may live on after an abort
	Grace      time.Duration // how long ranks may live on after a request to stop
}

// Exit is how a rank's process ended: ExitCode, or Signal and SignalNumber.
type Exit struct {
	Code         int
	Signal       string // "SIGKILL"; "" if it was not killed
	SignalNumber int
	During       string // its last progress
	Why          string // why it was killed, if that is known
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
	stops   int    // interrupts so far
	stop    string // signal of the request to stop, once there is one
	stopNum int
	out     []Effect
}

// NewNode makes a launcher's state.
func NewNode(cfg NodeConfig) *Node {
	n := &Node{cfg: cfg}
	n.reset()
	return n
}

func (n *Node) reset() {
	n.phase, n.nodes, n.ranks, n.seq = joining, nil, nil, 0
	n.parts, n.failure, n.cause, n.restart = map[int]Message{}, nil, nil, false
}

// Start registers with the coordinator.
func (n *Node) Start() []Effect {
	n.register()
	n.timer(TimerCommit, n.cfg.JoinWait)
	return n.flush()
}

func (n *Node) register() {
	info, run := n.cfg.Info, n.cfg.Run
	n.send(Message{Kind: KindRegister, Node: &info, Command: &run})
	n.timer(TimerRegister, n.cfg.Again)
}

// Receive handles a message of the coordinator.
func (n *Node) Receive(m Message) []Effect {
	switch {
	case n.phase == ended:
	case m.Kind == KindAssign && (n.phase == joining && m.Epoch >= n.epoch || n.phase == assigned && m.Epoch == n.epoch):
		n.assign(m)
	case m.Kind == KindRefuse && n.phase == joining:
		n.finish(m.Cause.Code(), m.Cause)
	case m.Kind == KindAbort && n.phase == joining && m.Epoch >= n.epoch && !m.Restart: // else it may be formed again with this node
		n.finish(m.Cause.Code(), m.Cause)
	case m.Epoch != n.epoch:
	case m.Kind == KindCommit && n.phase == assigned:
		n.phase = working
		n.ranks = make([]rank, n.cfg.Info.Nproc)
		n.emit(StartWorkers{Epoch: n.epoch, Job: n.job, Nodes: n.nodes, Self: n.self})
	case m.Kind == KindGathered && n.phase == working && m.Seq == n.seq:
		n.seq++
		clear(n.parts)
		n.tell(-1, m)
	case m.Kind == KindAbort && (n.phase == working || n.phase == assigned):
		n.end(m.Cause, m.Restart)
	case m.Kind == KindStop && n.phase == working:
		n.askToStop(m.Text, m.Code)
	case m.Kind == KindEnd && n.phase == working:
		n.finish(m.Code, nil)
	}
	return n.flush()
}

func (n *Node) assign(m Message) {
	self := slices.IndexFunc(m.Nodes, func(i NodeInfo) bool { return i.Name == n.cfg.Info.Name })
	if self < 0 {
		return
	}
	n.phase, n.epoch, n.nodes, n.self, n.job = assigned, m.Epoch, m.Nodes, self, m.Job
	n.send(Message{Kind: KindAck})
}

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
			n.report(n.blame(local, Cause{Kind: CauseRaised, Text: m.Cause.Text}))
		}
	case KindStop:
		if n.phase == working {
			n.send(Message{Kind: KindStop, Text: m.Text, Code: m.Code})
		}
	case KindFlight:
		n.emit(ShowFlight{})
	case KindBye:
		r.left = true
		n.checkGone()
	}
	return n.flush()
}

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
	n.tell(local, Message{Kind: KindWelcome, Nodes: n.nodes, Job: n.job, Key: mac.Sum(nil), Ports: n.cfg.Ports})
	if n.stop != "" {
		n.tell(local, Message{Kind: KindStop, Text: n.stop, Code: n.stopNum})
	}
	if n.phase == aborting {
		n.tell(local, Message{Kind: KindAbort, Cause: n.cause})
	}
}

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
	for i := range blobs {
		blobs[i] = n.parts[i].Blobs[0]
	}
	n.send(Message{Kind: KindExchange, Seq: n.seq, Name: m.Name, Blobs: blobs})
}

// checkGone reports a rank that will never take part in an exchange for which
// others wait.
func (n *Node) checkGone() {
	if n.phase != working || len(n.parts) == 0 || n.failure != nil {
		return
	}
	for gone := range n.ranks {
		r := n.ranks[gone]
		if _, ok := n.parts[gone]; ok || r.pid == 0 || r.alive && !r.left {
			continue
		}
		for waiting := range n.ranks {
			if p, ok := n.parts[waiting]; ok {
				n.report(n.blame(gone, Cause{Kind: CauseRaised, Text: fmt.Sprintf("left the group while rank %d waits for it in exchange %q", n.rankOf(waiting), p.Name)}))
				return
			}
		}
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
	case e.Signal != "" && (n.stop == "" || e.SignalNumber != n.stopNum):
		n.report(n.blame(local, Cause{Kind: CauseSignal, Signal: e.Signal, SignalNumber: e.SignalNumber, During: e.During, Text: e.Why}))
	case e.Signal == "" && e.Code != 0 && e.Code != exitcode.Requeue:
		n.report(n.blame(local, Cause{Kind: CauseExit, ExitCode: e.Code, During: e.During}))
	default:
		n.checkGone()
		if n.failure == nil && n.allExited() {
			n.send(Message{Kind: KindDone, Code: n.worst()})
		}
	}
	return n.flush()
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

// report tells the coordinator of a failure and expects a decision.
func (n *Node) report(c *Cause) {
	if n.failure == nil {
		n.failure = c
		n.timer(TimerAnswer, n.cfg.AnswerWait)
	}
	n.send(Message{Kind: KindFail, Cause: c})
}

// Lost handles the news that the launcher with the coordinator is dead,
// unreachable, or has left; killed says that it is dead and its host lives. Of the
// other launchers the coordinator judges.
func (n *Node) Lost(killed bool) []Effect {
	switch n.phase {
	case joining:
		c := n.failure // it was stopped
		if c == nil {
			c = refused(fmt.Sprintf("node 0 at %s is gone before all nodes had joined: its launcher has ended, or its host is dead or unreachable", n.cfg.Join))
		}
		n.finish(c.Code(), c)
	case working, assigned:
		n.end(&Cause{Kind: CauseNode, Rank: -1, Node: 0, Host: n.nodes[0].Host,
			Text: lostText(rankRange(0, n.nodes[0].Nproc)+" and the coordinator", killed)}, false)
	}
	return n.flush()
}

// Alone handles the news that this host is cut off from all others.
func (n *Node) Alone() []Effect {
	if n.phase == working || n.phase == assigned {
		n.end(cutOff(n.nodes, n.self), false)
	}
	return n.flush()
}

// Expired handles the expiry of a timer.
func (n *Node) Expired(t Timer) []Effect {
	switch {
	case n.phase == ended || t.Epoch != n.epoch && t.Kind != TimerRegister:
	case t.Kind == TimerRegister && (n.phase == joining || n.phase == assigned):
		n.register()
	case t.Kind == TimerCommit && n.phase == joining:
		c := refused(fmt.Sprintf("no coordinator answered at %s within %v: check the address, that EBTRAIN_KEY and --rdzv-id are the same on all nodes, and that node 0 runs", n.cfg.Join, n.cfg.JoinWait))
		n.finish(c.Code(), c)
	case t.Kind == TimerAnswer && n.failure != nil && n.phase != aborting:
		n.end(n.failure, false)
	case t.Kind == TimerKill && n.phase == aborting:
		n.kill()
	case t.Kind == TimerGrace && n.phase == working && len(n.alive()) > 0:
		var late []string
		for _, l := range n.alive() {
			late = append(late, fmt.Sprint(n.rankOf(l)))
		}
		c := &Cause{Kind: CauseStopped, Rank: -1, Node: n.self, Signal: n.stop, SignalNumber: n.stopNum,
			Text: fmt.Sprintf("killed: still running %v after %s: rank %s", n.cfg.Grace, n.stop, strings.Join(late, ", "))}
		n.send(Message{Kind: KindFail, Cause: c})
		n.end(c, false)
		n.kill()
	}
	return n.flush()
}

// end begins to end the epoch: ranks are told why, and killed if they do not
// go by themselves.
func (n *Node) end(c *Cause, restart bool) {
	n.phase, n.cause, n.restart = aborting, c, restart && n.stops == 0
	n.toAlive(Message{Kind: KindAbort, Cause: c}, int(syscall.SIGTERM))
	if l := c.Rank - Base(n.nodes, n.self); c.Kind == CauseStuck && c.Signal != "" && l >= 0 && l < len(n.ranks) && n.ranks[l].alive {
		n.emit(Signal{[]int{l}, int(syscall.SIGKILL)}) // it hears nothing
	}
	n.timer(TimerKill, n.cfg.KillWait)
	n.conclude()
}

// toAlive sends m to the ranks that have joined and a signal to the others.
func (n *Node) toAlive(m Message, number int) {
	var strangers []int
	for _, l := range n.alive() {
		if n.ranks[l].joined {
			n.tell(l, m)
		} else {
			strangers = append(strangers, l)
		}
	}
	if strangers != nil {
		n.emit(Signal{strangers, number})
	}
}

func (n *Node) kill() {
	if live := n.alive(); live != nil {
		n.emit(Signal{live, int(syscall.SIGKILL)})
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
	n.emit(Note{fmt.Sprintf("restart %d: %s", n.epoch+1, n.cause.Error())})
	n.reset()
	n.epoch++
	n.register()
	n.timer(TimerCommit, n.cfg.JoinWait)
}

// code is the launcher's exit code. A rank that raised the abort says more
// with its own exit code.
func (n *Node) code() int {
	if c := n.cause; c.Kind == CauseRaised && c.Node == n.self && n.nodes != nil {
		if l := c.Rank - Base(n.nodes, n.self); l >= 0 && l < len(n.ranks) {
			if e := n.ranks[l].exit; e.Signal == "" && e.Code > 0 && e.Code != exitcode.Requeue {
				return e.Code
			}
		}
	}
	return n.cause.Code()
}

func (n *Node) finish(code int, c *Cause) {
	n.phase = ended
	n.emit(Finish{code, c})
}

// blame fills in which rank c is about.
func (n *Node) blame(local int, c Cause) *Cause {
	c.Rank, c.Node, c.Host, c.Pid = n.rankOf(local), n.self, n.cfg.Info.Host, n.ranks[local].pid
	return &c
}

func (n *Node) rankOf(local int) int { return Base(n.nodes, n.self) + local }

func (n *Node) alive() []int {
	var live []int
	for l, r := range n.ranks {
		if r.alive {
			live = append(live, l)
		}
	}
	return live
}

func (n *Node) allExited() bool {
	return !slices.ContainsFunc(n.ranks, func(r rank) bool { return r.alive || r.pid == 0 })
}

func (n *Node) tell(local int, m Message) {
	m.Epoch = n.epoch
	n.emit(Tell{local, m})
}

func (n *Node) send(m Message) {
	m.Epoch = n.epoch
	n.emit(Send{"", m})
}

func (n *Node) timer(k TimerKind, after time.Duration) { n.emit(SetTimer{Timer{k, n.epoch}, after}) }

func (n *Node) emit(e Effect) { n.out = append(n.out, e) }

func (n *Node) flush() []Effect {
	out := n.out
	n.out = nil
	return out
}
