package rendezvous

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// An elastic job has between Least and Nodes nodes. It is formed of as many as
// have come within Window of the first Least. When one is lost it goes on with
// the others, in another epoch, as soon as they have ended their ranks. When
// one comes later, the ranks are asked to stop, which they do with a
// checkpoint, and the group is formed again with it. None of that is a restart
// after a failure, of which there are MaxRestarts.
//
// What all ranks share, such as a batch, may not be shared equally by any
// number of ranks. The ranks say so (share); then as many nodes take part as
// fit, and the others are spare: they wait until they are needed.
//
// A node that cannot take part, as its ranks find out (unfit), is left out, and ends.

// elasticity is the part of a coordinator's state that only an elastic job has.
type elasticity struct {
	awaited    []string // members of the last epoch that were not lost, and who is to be taken in; in node order
	opened     bool     // the window
	growing    bool     // a timer to take newcomers in is set
	regrouping *Cause   // the ranks have been asked to stop, to be started again
	divides    int      // the number of ranks must divide it; 0 if nobody has said
}

// elastic says that the group may be formed again of fewer or more nodes.
func (c *Coordinator) elastic() bool { return c.cfg.Least > 0 && c.cfg.Least < c.cfg.Nodes }

// span is a number of nodes in words.
func span(least, most int) string {
	if least == 0 || least == most {
		return fmt.Sprint(most)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

// gathered goes on if the nodes that have registered are enough, node 0 among them.
func (c *Coordinator) gathered() {
	switch {
	case c.index(c.cfg.Self) >= 0 && len(c.nodes) >= c.cfg.Nodes: // who is too many is spare
		c.assign()
	case !c.enough():
	case len(c.awaited) > 0 && !slices.ContainsFunc(c.awaited, func(name string) bool { return c.index(name) < 0 && c.belongs(name) }):
		c.assign() // all who are left are there
	case !c.opened:
		c.opened = true
		c.timer(TimerWindow, c.cfg.Window)
	}
}

// enough says whether the nodes that have registered suffice.
func (c *Coordinator) enough() bool {
	return c.elastic() && len(c.nodes) >= c.cfg.Least && c.index(c.cfg.Self) >= 0
}

// mayShrink says that the loss of a node does not end the job.
func (c *Coordinator) mayShrink() bool {
	return c.elastic() && c.stop == "" && (c.phase == assigning || c.phase == running)
}

// await remembers who is to be in the next epoch.
func (c *Coordinator) await() {
	c.awaited = nil
	if !c.elastic() {
		return
	}
	defer func() {
		if n := len(c.awaited); n < c.cfg.Least {
			c.out = append(c.out, Note{fmt.Sprintf("%d of at least %d nodes are left: waiting %v for more", n, c.cfg.Least, c.cfg.JoinWait)})
		}
	}()
	for _, n := range c.nodes {
		if c.belongs(n.Name) {
			c.awaited = append(c.awaited, n.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.late)) {
		c.earlier[name] = c.late[name].Want
		c.awaited = append(c.awaited, name)
	}
}

// fitting is how many of nodes take part: as many as there may be, but so that
// their ranks can share what they have said.
func (c *Coordinator) fitting(nodes []NodeInfo) int {
	most := min(len(nodes), c.cfg.Nodes)
	if c.divides == 0 {
		return most
	}
	for k := most; k >= max(1, c.cfg.Least); k-- {
		if c.divides%Size(nodes[:k]) == 0 {
			return k
		}
	}
	return most // the ranks say what is wrong
}

// spare puts aside the nodes that are not to take part. Members of the last epoch
// come first.
func (c *Coordinator) spare() {
	if !c.elastic() {
		return
	}
	order := func(n NodeInfo) int {
		switch i := slices.Index(c.awaited, n.Name); {
		case n.Name == c.cfg.Self:
			return -1
		case i >= 0:
			return i
		}
		return len(c.awaited)
	}
	slices.SortStableFunc(c.nodes, func(a, b NodeInfo) int { return cmp.Compare(order(a), order(b)) })
	k := c.fitting(c.nodes)
	for _, n := range c.nodes[k:] {
		c.late[n.Name] = n
		c.send(n.Name, Message{Kind: KindWait, Text: c.whySpare()})
	}
	c.nodes = slices.Clone(c.nodes[:k])
}

// whySpare is what a node that is put aside is told.
func (c *Coordinator) whySpare() string {
	if c.divides == 0 {
		return "this node is spare until another is lost"
	}
	return fmt.Sprintf("this node is spare until it is needed: what the ranks share is in %d parts", c.divides)
}

// newcomer lets a launcher wait that comes when the job is under way, and takes it
// in a little later, with others that may come meanwhile.
func (c *Coordinator) newcomer(from string, n NodeInfo, run Command) {
	if _, known := c.late[from]; known {
		c.send(from, Message{Kind: KindWait, Text: "this node is taken in when it is needed"})
		return
	}
	n.Want = -1 // numbers are taken
	if why := c.objection(from, n, run); why != "" {
		c.refuse(from, n.Host, why)
		return
	}
	n.Name = from
	c.late[from] = n
	c.send(from, Message{Kind: KindWait, Text: "the job runs; this node is taken in when it is needed"})
	if !c.growing {
		c.growing = true
		c.timer(TimerGrow, c.cfg.Window)
	}
}

// grow asks the ranks to stop, to go on together with who has come, if that makes
// them more.
func (c *Coordinator) grow() {
	c.growing = false
	if c.stop != "" || c.regrouping != nil || c.settling != nil || len(c.late) == 0 {
		return
	}
	if c.phase != running {
		c.growing = true
		c.timer(TimerGrow, c.cfg.Window)
		return
	}
	all := slices.Clone(c.nodes)
	var hosts []string
	for _, name := range slices.Sorted(maps.Keys(c.late)) {
		all, hosts = append(all, c.late[name]), append(hosts, c.late[name].Host)
	}
	if k := c.fitting(all); k > len(c.nodes) {
		c.regroup(fmt.Sprintf("from %d to %d nodes, with %s", len(c.nodes), k, joinWords(hosts[:k-len(c.nodes)])))
	}
}

// regroup asks the ranks to stop, to be started again.
func (c *Coordinator) regroup(why string) {
	c.regrouping = &Cause{Kind: CauseRegroup, Rank: -1, Node: -1, Text: why}
	c.sendAll(Message{Kind: KindRegroup, Text: why})
	c.timer(TimerRegroup, c.cfg.Grace)
}

// cutShort ends the ranks that have been asked to stop, to be started again, and do not, or
// cannot, as they wait for one that has. It says whether there are any: one that has failed
// meanwhile decides what becomes of all.
func (c *Coordinator) cutShort() bool {
	if c.regrouping == nil || c.stop != "" {
		return false
	}
	if c.settling == nil {
		c.formAgain(c.regrouping)
	}
	return true
}

// unfit goes on without a node whose rank says that it cannot take part, where the others
// suffice and one of them is node 0. Elsewhere it is a failure like any other. Launchers of
// before know neither message nor kind of it: they hear of what it becomes.
func (c *Coordinator) unfit(cause *Cause) {
	raised := *cause
	raised.Kind = CauseRaised
	i := cause.Node
	if c.settling != nil || !c.mayShrink() || i < 1 || i >= len(c.nodes) || len(c.nodes) <= c.cfg.Least {
		c.fail(&raised)
		return
	}
	n := c.nodes[i]
	c.forget(n.Name)
	c.send(n.Name, Message{Kind: KindAbort, Cause: &raised})
	c.nodes = slices.Concat(c.nodes[:i], c.nodes[i+1:]) // what the others are told may be the first to come
	c.formAgain(&Cause{Kind: CauseRegroup, Rank: -1, Node: -1, Text: fmt.Sprintf("node %d (%s) is left out: %s", i, n.Host, raised.Error())})
}

// share takes what the ranks say of what they share: if these ranks cannot,
// fewer nodes may.
func (c *Coordinator) share(parts int) {
	if parts < 1 {
		return
	}
	c.divides = parts
	size := Size(c.nodes)
	if c.elastic() && c.phase == running && c.stop == "" && parts%size != 0 {
		if k := c.fitting(c.nodes); k < len(c.nodes) {
			rest := "1 node goes on"
			if k > 1 {
				rest = fmt.Sprintf("%d nodes go on", k)
			}
			c.formAgain(&Cause{Kind: CauseRegroup, Rank: -1, Node: -1, Text: fmt.Sprintf("%d ranks on %d nodes cannot share %d parts equally: %s", size, len(c.nodes), parts, rest)})
		}
	}
}

// dismissLate tells who has waited in vain how the job has ended, as the others are told;
// in a job that is not elastic nobody was to wait, and why says that it is over.
func (c *Coordinator) dismissLate(end Message, why string) {
	if !c.elastic() {
		c.refuseLate(why)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(c.late)) {
		c.send(name, end)
	}
}

// joinWords is "a", "a and b", "a, b and c".
func joinWords(words []string) string {
	text := words[0]
	for i, w := range words[1:] {
		if i == len(words)-2 {
			text += " and " + w
		} else {
			text += ", " + w
		}
	}
	return text
}
