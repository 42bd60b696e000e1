package rendezvous

import (
	"fmt"
	"time"

	"ebtrain/launch/statuspage"
)

// Flown is what a rank did last, as its launcher sees it, also after its death.
type Flown struct {
	Rank   int                 `json:"rank"`
	Host   string              `json:"host"`
	Pid    int                 `json:"pid"`
	Met    statuspage.Meetings `json:"met"`              // collectives
	During string              `json:"during,omitempty"` // its last report
	State  string              `json:"state,omitempty"`  // "killed by SIGKILL", "stopped by a signal"; "" if it just runs
	Last   []Collective        `json:"last,omitempty"`   // oldest first
	At     time.Time           `json:"at"`               // when it was looked at, by its host's clock
}

// flightWait is how long the nodes may take to say what their ranks did last.
const flightWait = 300 * time.Millisecond

// flight gathers what the ranks of all nodes did last: because somebody asked, or
// because they have failed.
type flight struct {
	number int // from 1, in all epochs; what comes late for one counts for no other
	epoch  int
	nodes  []NodeInfo
	said   map[string][]Flown // by node
	gone   string             // name of the node that is lost, or ""
	cause  *Cause             // nil if somebody asked
	asked  []string           // the other nodes of which somebody asked
}

// beginFlight begins to gather what the ranks did last, for flightWait.
func (c *Coordinator) beginFlight() {
	c.flights++
	c.flight = &flight{number: c.flights, epoch: c.epoch, nodes: c.nodes, said: map[string][]Flown{}}
	c.out = append(c.out, SetTimer{Timer{TimerFlight, c.epoch, c.flights}, flightWait})
}

// tellsMuch says that what the ranks did last may explain c.
func tellsMuch(c *Cause) bool {
	return c.Kind != CauseStopped && c.Kind != CauseRegroup && c.Kind != CauseRefused
}

// askFlight asks all nodes, for the node called from.
func (c *Coordinator) askFlight(from string) {
	if c.phase != running {
		return
	}
	if c.flight == nil {
		c.beginFlight()
		c.sendAll(Message{Kind: KindFlight, Seq: c.table()})
	}
	if from != c.cfg.Self {
		c.flight.asked = append(c.flight.asked, from)
	}
}

// expectFlight awaits what all nodes say that hear of cause.
func (c *Coordinator) expectFlight(cause *Cause) {
	c.flight = nil
	if c.phase != running || !tellsMuch(cause) {
		return
	}
	c.beginFlight()
	c.flight.cause = cause
}

// table is the number of the table that is being gathered, 0 if none is.
func (c *Coordinator) table() uint64 {
	if c.flight == nil {
		return 0
	}
	return uint64(c.flight.number)
}

// flown takes what a node says, and shows it when all have.
func (c *Coordinator) flown(from string, m Message) {
	f := c.flight
	if f == nil || m.Seq != c.table() {
		return
	}
	f.said[from] = m.Flown
	for _, n := range f.nodes {
		if _, ok := f.said[n.Name]; !ok && n.Name != f.gone {
			return
		}
	}
	c.showFlight()
}

// showFlight shows what has been said.
func (c *Coordinator) showFlight() {
	f := c.flight
	c.flight = nil
	show := ShowFlight{Cause: f.cause}
	for i, n := range f.nodes {
		said, ok := f.said[n.Name]
		if !ok {
			show.Silent = append(show.Silent, fmt.Sprintf("node %d (%s)", i, n.Host))
		}
		show.Ranks = append(show.Ranks, said...)
	}
	for _, name := range f.asked {
		c.out = append(c.out, Send{To: name, Msg: Message{Kind: KindFlown, Epoch: f.epoch, Flown: show.Ranks}})
	}
	c.out = append(c.out, show)
}

// AwaitsFlight says that it is about to show what the ranks did last, within
// flightWait.
func (c *Coordinator) AwaitsFlight() bool { return c.flight != nil }

// Flight asks for what all ranks did last.
func (n *Node) Flight() []Effect {
	n.askFlight()
	return n.flush()
}

func (n *Node) askFlight() {
	if n.phase == working {
		n.send(Message{Kind: KindFlight})
	}
}

// Flown takes what the ranks of this node did last, as t has asked, and tells the
// coordinator; without one, it shows it.
func (n *Node) Flown(t TakeFlight, ranks []Flown) []Effect {
	if n.alone {
		n.emit(ShowFlight{Ranks: ranks, Cause: n.cause, Records: n.records})
	} else {
		n.emit(Send{"", Message{Kind: KindFlown, Epoch: t.Epoch, Seq: t.Flight, Flown: ranks}})
	}
	return n.flush()
}

// Records is the folder that the ranks have named, "" if none.
func (n *Node) Records() string { return n.records }
