package rendezvous

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// CoordinatorConfig describes the job to form.
type CoordinatorConfig struct {
	Nodes       int           // launchers expected, at least 1
	Least       int           // launchers that suffice, see elastic; 0 if all of Nodes are needed
	Window      time.Duration // how long more than Least are waited for
	MaxRestarts int           // how often the group may be formed again
	Job         string        // unique name; the epoch is added to it
	Self        string        // name of the launcher that holds the coordinator; it becomes node 0
	Run         Command       // of node 0
	Hosts       []string      // host names expected, if known; only for messages
	Together    bool          // one command starts all launchers: nobody comes in the place of one that is refused
	JoinWait    time.Duration // how long to wait for all nodes to register
	Remind      time.Duration // how long until it is said who is missing; then at twice the time; 0 is never
	AckWait     time.Duration // how long to wait for their acknowledgements
	Settle      time.Duration // how long a reported cause may be replaced by a death
	Grace       time.Duration // how long ranks may take to stop, to be started again
	StuckAfter  time.Duration // how long others may wait for a rank that shows no sign of life; 0 is for ever
}

type phase int

const (
	gathering phase = iota // waiting for registrations
	assigning              // waiting for acknowledgements
	running
	over
)

// Coordinator is the state of a job: pure, see the package comment. Its
// methods return what is to be done, in order.
type Coordinator struct {
	cfg      CoordinatorConfig
	phase    phase
	epoch    int
	restarts int
	nodes    []NodeInfo // registered; in node order once assigned
	acked    map[string]bool
	asked    map[string]int // how often a node has registered since it was assigned
	done     map[string]int // exit codes of nodes whose ranks have all ended well
	seq      uint64         // exchange under way
	parts    map[string]Message
	settling *Cause
	earlier  map[string]int        // launchers that were members in an earlier epoch, or waited in it, and are not lost, by the node number asked for
	last     map[string]bool       // those of them that were members in the last epoch
	lost     map[string]bool       // members of this epoch that are
	refused  map[string]bool       // launchers
	verdict  *Cause                // why the job ended; nil while it has not, and if it ended well
	seen     map[int]Vital         // by rank, the last of each
	finds    map[int]int           // by rank, how often in a row it was found to be stopped and waited for
	warned   map[int]time.Duration // by rank, when to say again that it is slow
	late     map[string]NodeInfo   // launchers that wait: they have come since the job was complete, or the places are others'
	stop     string                // signal, once a stop is under way
	flight   *flight               // what the ranks did last, while it is gathered
	flights  int                   // so many have been begun
	together
	reminder time.Duration // when, since nodes are awaited, it is next said who is missing
	elasticity
	out []Effect
}

// NewCoordinator makes the coordinator of a job.
func NewCoordinator(cfg CoordinatorConfig) *Coordinator {
	c := &Coordinator{cfg: cfg, earlier: map[string]int{}, refused: map[string]bool{}}
	c.came = map[string]bool{}
	c.reset()
	return c
}

// reset forgets the epoch that was, and waits for nodes again.
func (c *Coordinator) reset() {
	c.phase, c.nodes, c.seq, c.settling = gathering, nil, 0, nil
	c.acked, c.asked, c.done, c.parts = map[string]bool{}, map[string]int{}, map[string]int{}, map[string]Message{}
	c.lost, c.opened, c.growing, c.regrouping = map[string]bool{}, false, false, nil
	c.seen, c.finds, c.warned, c.late = map[int]Vital{}, map[int]int{}, map[int]time.Duration{}, map[string]NodeInfo{}
}

// Start begins the wait for nodes.
func (c *Coordinator) Start() []Effect {
	c.expect()
	return c.flush()
}

// Receive handles a message of the launcher called from.
func (c *Coordinator) Receive(from string, m Message) []Effect {
	switch {
	case m.Kind == KindFlown:
		c.flown(from, m)
	case m.Kind == KindAbsent:
		c.absent(from, m.Text)
	case m.Kind == KindRegister && m.Node != nil && m.Command != nil:
		c.register(from, *m.Node, *m.Command, m.Epoch)
	case m.Kind == KindStop && m.Epoch <= c.epoch:
		c.stopBy(from, m)
	case m.Epoch != c.epoch || c.index(from) < 0 || c.phase == over:
		// another epoch, a stranger, or too late
	case m.Kind == KindAck:
		c.ack(from)
	case m.Kind == KindExchange:
		c.exchange(from, m)
	case m.Kind == KindFail && m.Cause != nil:
		c.fail(m.Cause)
	case m.Kind == KindVitals:
		c.vitals(from, m.Vitals)
	case m.Kind == KindRegroup:
		c.cutShort()
	case m.Kind == KindFlight:
		c.askFlight(from)
	case m.Kind == KindShare:
		c.share(m.Code)
	case m.Kind == KindDone:
		c.finished(from, m.Code)
	}
	return c.flush()
}

// Lost handles the news that a launcher is lost, and how.
func (c *Coordinator) Lost(name string, how Loss) []Effect {
	i := c.index(name)
	c.forget(name)
	_, done := c.done[name]
	switch {
	case c.phase == over:
	case c.phase == gathering:
		if i >= 0 {
			c.nodes = slices.Delete(c.nodes, i, i+1) // it registers again if it lives
		}
		c.gathered() // it is not waited for
	case i < 0:
	case done && c.regrouping == nil:
		c.lost[name] = true
	default:
		c.lost[name] = true
		n := c.nodes[i]
		base := Base(c.nodes, i)
		cause := &Cause{Kind: CauseNode, Rank: -1, Node: i, Host: n.Host, Text: lostText(rankRange(base, n.Nproc), how)}
		if c.mayShrink() {
			c.formAgain(cause)
		} else {
			c.abort(cause)
		}
		if c.flight != nil {
			c.flight.gone = name
		}
	}
	return c.flush()
}

// lostText says what has become of a launcher with its ranks, who.
func lostText(who string, how Loss) string {
	switch how {
	case Killed:
		return fmt.Sprintf("its launcher was killed, %s with it", who)
	case Mute:
		return fmt.Sprintf("lost with %s: its launcher does not answer, though its host does: it is stopped, or gets no processor time", who)
	}
	return fmt.Sprintf("lost with %s: its host is dead or unreachable", who)
}

// Alone handles the news that the coordinator's own host is cut off, as silent, and every other
// launcher, does not answer. While nodes are gathered it is not the job's end: others may
// still come.
func (c *Coordinator) Alone(silent string) []Effect {
	if c.phase == assigning || c.phase == running {
		c.abort(cutOff(c.nodes, 0))
	}
	return append(c.flush(), c.Lost(silent, Unreachable)...)
}

// cutOff says that node i reaches nobody.
func cutOff(nodes []NodeInfo, i int) *Cause {
	text := "does not reach the other node"
	if others := len(nodes) - 1; others > 1 {
		text = fmt.Sprintf("reaches none of the other %d nodes", others)
	}
	return &Cause{Kind: CauseCut, Rank: -1, Node: i, Host: nodes[i].Host, Text: text}
}

// Expired handles the expiry of a timer.
func (c *Coordinator) Expired(t Timer) []Effect {
	switch {
	case t.Kind == TimerFlight:
		if c.flight != nil && c.flight.number == t.Flight {
			c.showFlight()
		}
	case t.Kind == TimerLate:
		c.stillLate()
	case t.Epoch != c.epoch || c.phase == over:
	case t.Kind == TimerJoin && c.phase == gathering && c.enough():
		c.assign()
	case t.Kind == TimerJoin && c.phase == gathering:
		c.abort(refused(c.missing(c.cfg.JoinWait)))
	case t.Kind == TimerRemind && c.phase == gathering:
		c.remind()
	case t.Kind == TimerWindow && c.phase == gathering && c.enough():
		c.assign()
	case t.Kind == TimerWindow && c.phase == gathering:
		c.opened = false // some were lost meanwhile
	case t.Kind == TimerGrow:
		c.grow()
	case t.Kind == TimerRegroup && c.regrouping != nil && c.stop == "" && c.settling == nil:
		c.out = append(c.out, Note{fmt.Sprintf("not all ranks have stopped within %v: the others are ended", shown(c.cfg.Grace))})
		c.cutShort()
	case t.Kind == TimerAck && c.phase == assigning:
		c.abort(refused(fmt.Sprintf("no acknowledgement within %v from %s", c.cfg.AckWait, strings.Join(c.silent(), ", "))))
	case t.Kind == TimerDoubt:
		c.refuseLate("the job is already complete and running")
	case t.Kind == TimerSettle && c.settling != nil:
		c.abort(c.settling)
	}
	return c.flush()
}

// silent names the nodes that have not acknowledged: by their hosts, if they are few.
func (c *Coordinator) silent() []string {
	const few = 8
	var named []string
	var numbers []int
	for i, n := range c.nodes {
		if !c.acked[n.Name] {
			numbers = append(numbers, i)
			named = append(named, fmt.Sprintf("node %d (%s)", i, n.Host))
		}
	}
	if len(named) > few {
		return nodeRanges(numbers)
	}
	return named
}

// belongs says whether a launcher was a member in an earlier epoch, or waited in it, and is not
// lost.
func (c *Coordinator) belongs(name string) bool {
	_, ok := c.earlier[name]
	return ok
}

// job is the name of this epoch's group.
func (c *Coordinator) job() string { return fmt.Sprintf("%s-e%d", c.cfg.Job, c.epoch) }

// index is the number of a registered launcher in nodes, −1 if it is none.
func (c *Coordinator) index(name string) int {
	return slices.IndexFunc(c.nodes, func(n NodeInfo) bool { return n.Name == name })
}

func (c *Coordinator) send(to string, m Message) {
	m.Epoch = c.epoch
	c.out = append(c.out, Send{To: to, Msg: m})
}

// sendAll sends m to all nodes, which is encoded once.
func (c *Coordinator) sendAll(m Message) {
	m.Epoch, m.once = c.epoch, &encoding{}
	for _, n := range c.nodes {
		c.send(n.Name, m)
	}
}

func (c *Coordinator) timer(k TimerKind, after time.Duration) {
	c.out = append(c.out, SetTimer{Timer{Kind: k, Epoch: c.epoch}, after})
}

func (c *Coordinator) flush() []Effect {
	out := c.out
	c.out = nil
	return out
}

func refused(text string) *Cause {
	return &Cause{Kind: CauseRefused, Rank: -1, Node: -1, Text: text}
}

func rankRange(base, n int) string {
	if n == 1 {
		return fmt.Sprintf("rank %d", base)
	}
	return fmt.Sprintf("ranks %d-%d", base, base+n-1)
}
