package rendezvous

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"
)

// How the nodes of an epoch are gathered and put in order.

// register takes a registration, which a launcher repeats until it is committed: run is what
// it would start, epoch is the one that it wants to be in.
func (c *Coordinator) register(from string, n NodeInfo, run Command, epoch int) {
	c.came[from] = true
	known := c.index(from) >= 0
	underWay := c.phase == assigning || c.phase == running
	_, waits := c.late[from] // until it is needed, or the end
	if c.phase == gathering {
		n.Want = c.number(from, n.Want)
	}
	switch {
	case !known && underWay && c.elastic() && (c.stop == "" || waits):
		c.newcomer(from, n, run)
	case !known && underWay && c.mayFormAgain():
		c.doubt(from, n)
	case epoch != c.epoch && (epoch != 0 || c.phase != gathering) && !c.elastic(): // a new launcher may replace a lost one
		if !known {
			c.refuse(from, n.Host, "the job has been formed again without it")
		}
	case c.verdict != nil: // it was still ending its ranks when the others were told
		c.send(from, Message{Kind: KindAbort, Cause: c.verdict})
	case known && epoch <= c.epoch && c.phase == assigning:
		// The list may be lost; more likely it is on its way. Of a list for each of many
		// launchers each must not be sent at every question, which would never end.
		if c.asked[from]++; c.asked[from] >= fewQuestions && c.asked[from]&(c.asked[from]-1) == 0 {
			c.send(from, Message{Kind: KindAssign, Nodes: c.nodes, Job: c.job()})
		}
	case known && epoch <= c.epoch && c.phase == running:
		c.send(from, Message{Kind: KindCommit})
	case known:
	case c.phase != gathering:
		c.refuse(from, n.Host, "the job is already complete and running")
	default:
		c.admit(from, n, run)
	}
}

// admit takes a launcher in that comes while nodes are gathered, if it is one of this job's and
// has a place.
func (c *Coordinator) admit(from string, n NodeInfo, run Command) {
	why := c.objection(from, n, run)
	switch {
	case why != "" && c.cfg.Together && !c.elastic():
		c.failTogether(from, n.Host, why)
	case why != "":
		c.refuse(from, n.Host, why)
	case !c.hasRoom(from):
		c.late[from] = n // until those have come who have the places, or one of them is lost
	default:
		n.Name = from
		delete(c.late, from)
		c.nodes = append(c.nodes, n)
		c.gathered()
	}
}

// hasRoom says whether there is a place for a launcher that comes while nodes are gathered.
// Where their number is fixed, node 0 and the members of an earlier epoch that are not lost
// have theirs, whoever comes first; in an elastic job who is too many is spare.
func (c *Coordinator) hasRoom(name string) bool {
	if c.elastic() || name == c.cfg.Self || c.belongs(name) {
		return true
	}
	expected := maps.Clone(c.earlier)
	expected[c.cfg.Self] = 0
	for _, n := range c.nodes {
		delete(expected, n.Name)
	}
	return len(c.nodes)+len(expected) < c.cfg.Nodes
}

// number is the node number that a launcher has if it asks for want. Those of members of an
// earlier epoch are kept for them, whoever comes first; who has come since then has none of
// these.
func (c *Coordinator) number(from string, want int) int {
	if own, ok := c.earlier[from]; ok {
		return own
	}
	for _, taken := range c.earlier {
		if want > 0 && taken == want {
			return -1
		}
	}
	return want
}

// objection says why a launcher is not one of this job's, "" if it is.
func (c *Coordinator) objection(from string, n NodeInfo, run Command) string {
	switch {
	case run.differs(c.cfg.Run) != "":
		return run.differs(c.cfg.Run)
	case n.Nodes != c.cfg.Nodes || n.Least != c.cfg.Least:
		return fmt.Sprintf("it was started for %s nodes but the job has %s: give the same --nnodes everywhere", span(n.Least, n.Nodes), span(c.cfg.Least, c.cfg.Nodes))
	case n.Want >= c.cfg.Nodes:
		return fmt.Sprintf("--node-rank %d is not below --nnodes %d", n.Want, c.cfg.Nodes)
	case n.Want == 0 && from != c.cfg.Self:
		return "--node-rank 0 is the coordinator's"
	case n.Want > 0 && c.wanted(n.Want) != "":
		return fmt.Sprintf("--node-rank %d is already taken by %s", n.Want, c.wanted(n.Want))
	case n.Nproc < 1:
		return "it has no ranks"
	case from != c.cfg.Self && c.sharesAddr(n) != "":
		return fmt.Sprintf("its ranks would be at %s, as those of %s are, which is another host: name with --network, on all nodes, an interface by which they reach each other", n.Addr, c.sharesAddr(n))
	}
	return ""
}

// sharesAddr names another host whose ranks say that they are at n's address, as both are on a
// bridge of their own for containers: each would be sent what is for the other. Two names that
// containers give to one network are one host.
func (c *Coordinator) sharesAddr(n NodeInfo) string {
	network := func(o NodeInfo) string { return path.Base(o.HostID) } // see LocalHost
	for _, o := range c.nodes {
		if n.Addr != "" && o.Addr == n.Addr && network(o) != network(n) {
			return o.Host
		}
	}
	return ""
}

// mayFormAgain says that a failure now would not end the job.
func (c *Coordinator) mayFormAgain() bool { return c.restarts < c.cfg.MaxRestarts && c.stop == "" }

// doubt lets a launcher wait that comes when the job is complete: it may replace
// one that is lost, which this coordinator does not know yet. It registers again
// and again, so when the job is formed anew it is there.
func (c *Coordinator) doubt(from string, n NodeInfo) {
	if len(c.late) == 0 {
		c.timer(TimerDoubt, doubtWait)
	}
	c.late[from] = n
}

// refuseLate turns away all who wait.
func (c *Coordinator) refuseLate(why string) {
	for _, name := range slices.Sorted(maps.Keys(c.late)) {
		c.refuse(name, c.late[name].Host, why)
	}
}

// doubtWait is longer than a loss is unknown.
const doubtWait = 5 * time.Second

// assign puts the nodes in order (the coordinator's first, then those that
// asked for a number, the rest by host and name in the gaps) and proposes it.
func (c *Coordinator) assign() {
	if c.index(c.cfg.Self) < 0 {
		panic("rendezvous: a job is formed without node 0, which would be another launcher than the coordinator's")
	}
	if c.spare(); !c.elastic() {
		clear(c.late) // who has waited for a member to be lost registers again, and is in doubt or refused
	}
	rest := slices.Clone(c.nodes)
	slices.SortFunc(rest, func(a, b NodeInfo) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Name, b.Name))
	})
	ordered := make([]NodeInfo, len(rest))
	place := func(i int, match func(NodeInfo) bool) {
		if j := slices.IndexFunc(rest, match); j >= 0 {
			ordered[i] = rest[j]
			rest = slices.Delete(rest, j, j+1)
		}
	}
	place(0, func(n NodeInfo) bool { return n.Name == c.cfg.Self })
	for i := 1; i < len(ordered); i++ {
		place(i, func(n NodeInfo) bool { return n.Want == i })
	}
	for i := range ordered {
		if ordered[i].Name == "" {
			ordered[i], rest = rest[0], rest[1:]
		}
	}
	c.nodes, c.phase = ordered, assigning
	c.cfg.Hosts = nil // they are who is missed when the group is formed again
	for _, n := range ordered {
		c.cfg.Hosts = append(c.cfg.Hosts, n.Host)
	}
	c.timer(TimerAck, c.cfg.AckWait)
	c.sendAll(Message{Kind: KindAssign, Nodes: c.nodes, Job: c.job()})
}

// fewQuestions is how often a launcher registers again until its list is sent again, and
// then after twice as many.
const fewQuestions = 4

func (c *Coordinator) ack(from string) {
	if c.phase == running { // it has not got the commit
		c.send(from, Message{Kind: KindCommit})
	}
	if c.phase != assigning {
		return
	}
	c.acked[from] = true
	if len(c.acked) < len(c.nodes) {
		return
	}
	c.phase = running
	c.sendAll(Message{Kind: KindCommit})
}

// wanted is the host of who has asked to be node i, "" if nobody has.
func (c *Coordinator) wanted(i int) string {
	for _, n := range c.nodes {
		if n.Want == i {
			return n.Host
		}
	}
	return ""
}

// refuse turns a launcher away, and tells of it once.
func (c *Coordinator) refuse(to, host, why string) {
	delete(c.late, to)
	if !c.refused[to] {
		c.refused[to] = true
		c.out = append(c.out, Note{fmt.Sprintf("a node (%s) was refused: %s", host, why)})
	}
	c.send(to, refusal(why))
}

func refusal(why string) Message {
	return Message{Kind: KindRefuse, Cause: refused("the coordinator refuses this node: " + why)}
}
