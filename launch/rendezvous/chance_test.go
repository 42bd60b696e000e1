package rendezvous

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// chance is a job to which anything happens in any order: messages are late (those of a
// launcher to another stay in order), ranks fail, launchers are stopped and lost, and others
// come. What happens is drawn from events.
type chance struct {
	t      *testing.T
	coord  *Coordinator
	nodes  map[string]*Node
	names  []string        // of the launchers that have come
	later  []string        // of those that have not
	dead   map[string]bool // launchers that have ended or were killed
	told   map[[2]string]bool
	links  map[[2]string][]Message
	timers []due
	now    time.Duration
	killed map[string]map[int]bool // ranks to which SIGKILL was sent
	log    []string
}

type due struct {
	at  time.Duration
	who string // "coord" or a node
	t   Timer
}

func newChance(t *testing.T, nodes, more, nproc, restarts, least int) *chance {
	c := &chance{t: t, nodes: map[string]*Node{}, dead: map[string]bool{}, told: map[[2]string]bool{}, links: map[[2]string][]Message{}, killed: map[string]map[int]bool{}}
	run := Command{Program: "train"}
	c.coord = NewCoordinator(CoordinatorConfig{Nodes: nodes, Least: least, Window: 2 * time.Second, MaxRestarts: restarts, Job: "job", Self: "a", Run: run,
		JoinWait: time.Minute, AckWait: 10 * time.Second, Settle: 50 * time.Millisecond, Grace: 10 * time.Second, StuckAfter: 30 * time.Second})
	for i := range nodes + more {
		name := string(rune('a' + i))
		c.later = append(c.later, name)
		c.killed[name] = map[int]bool{}
		c.nodes[name] = NewNode(NodeConfig{Info: NodeInfo{Name: name, Host: name, Nproc: nproc, Want: -1, Nodes: nodes, Least: least}, Run: run, Key: []byte("k"), Join: "a:1",
			Again: 200 * time.Millisecond, JoinWait: time.Minute + 2*time.Second, AnswerWait: time.Second, StopWait: time.Second, KillWait: time.Second, GoneWait: 30 * time.Second, StrangerWait: 2 * time.Second, Grace: 10 * time.Second})
	}
	c.apply("coord", c.coord.Start())
	for range nodes {
		c.come()
	}
	return c
}

// come starts the next launcher.
func (c *chance) come() {
	if len(c.later) > 0 {
		name := c.later[0]
		c.names, c.later = append(c.names, name), c.later[1:]
		c.apply(name, c.nodes[name].Start())
	}
}

// checkPlaces checks who is to take part in an epoch: node 0 is the coordinator's launcher, and
// where the number of nodes is fixed nobody else has the place of a member that is not lost.
func (c *chance) checkPlaces(nodes []NodeInfo) {
	has := func(name string) bool {
		return slices.ContainsFunc(nodes, func(n NodeInfo) bool { return n.Name == name })
	}
	if nodes[0].Name != c.coord.cfg.Self || len(nodes) > c.coord.cfg.Nodes {
		c.t.Fatalf("a job of %d nodes is formed of %v", c.coord.cfg.Nodes, nodes)
	}
	for name := range c.coord.earlier {
		if !c.coord.elastic() && !has(name) {
			c.t.Fatalf("%s has lost its place: the job is formed of %v", name, nodes)
		}
	}
}

// apply carries out what a machine wants done.
func (c *chance) apply(who string, effects []Effect) {
	launcher := who
	if who == "coord" {
		launcher = "a"
	}
	for _, e := range effects {
		c.log = append(c.log, who+"> "+e.String())
		switch e := e.(type) {
		case Send:
			to := cmp.Or(e.To, "coord")
			if to != "coord" && c.nodes[to] == nil {
				c.t.Fatalf("a message to %q", to)
			}
			if e.Msg.Kind == KindAssign {
				c.checkPlaces(e.Msg.Nodes)
			}
			if e.Msg.Kind == KindVitals || c.dead[launcher] {
				continue
			}
			k := [2]string{who, to}
			c.links[k] = append(c.links[k], e.Msg)
		case SetTimer:
			c.timers = append(c.timers, due{c.now + e.After, who, e.Timer})
		case StartWorkers:
			clear(c.killed[who])
			for l := range e.Nodes[e.Self].Nproc {
				c.apply(who, c.nodes[who].Started(l, 100+l))
			}
		case Signal:
			for _, l := range e.Locals {
				c.killed[who][l] = c.killed[who][l] || e.Number == 9
			}
		case TakeFlight:
			c.apply(who, c.nodes[who].Flown(e, nil))
		case Finish:
			if live := c.nodes[who].alive(); live != nil && !c.allKilled(who, live) {
				c.t.Fatalf("%s has finished and left ranks %v", who, live)
			}
			c.dead[who] = true
		}
	}
}

func (c *chance) allKilled(who string, live []int) bool {
	return !slices.ContainsFunc(live, func(l int) bool { return !c.killed[who][l] })
}

// deliver carries the first message of a link, and says whether there was one.
func (c *chance) deliver(k [2]string) bool {
	q := c.links[k]
	if len(q) == 0 {
		return false
	}
	c.links[k] = q[1:]
	switch {
	case k[1] == "coord":
		if !c.dead["a"] {
			c.apply("coord", c.coord.Receive(k[0], q[0]))
		}
	case !c.dead[k[1]]:
		c.apply(k[1], c.nodes[k[1]].Receive(q[0]))
	}
	return true
}

// bury tells of a launcher that is gone, after what it has sent.
func (c *chance) bury(name string) {
	for _, other := range c.names {
		k := [2]string{name, other}
		if other == name || !c.dead[name] || c.dead[other] || c.told[k] {
			continue
		}
		switch {
		case name == "a":
			if len(c.links[[2]string{"coord", other}]) == 0 {
				c.told[k] = true
				c.apply(other, c.nodes[other].Lost(Unreachable))
			}
		case other == "a" && len(c.links[[2]string{name, "coord"}]) == 0:
			c.told[k] = true
			c.apply("coord", c.coord.Lost(name, Killed))
		}
	}
}

// expire lets timer i run out.
func (c *chance) expire(i int) {
	d := c.timers[i]
	c.timers = slices.Delete(c.timers, i, i+1)
	c.now = max(c.now, d.at)
	switch {
	case d.who == "coord" && !c.dead["a"]:
		c.apply("coord", c.coord.Expired(d.t))
	case d.who != "coord" && !c.dead[d.who]:
		c.apply(d.who, c.nodes[d.who].Expired(d.t))
	}
}

// happen is one event.
func (c *chance) happen(event, choice byte) {
	name := c.names[int(choice)%len(c.names)]
	n := c.nodes[name]
	local := int(choice>>4) % n.cfg.Info.Nproc
	runs := !c.dead[name] && len(n.ranks) > 0 && n.ranks[local].alive
	c.log = append(c.log, fmt.Sprintf("-- %d %d", event%32, choice))
	switch e := event % 32; {
	case e < 16:
		var keys [][2]string
		for k, q := range c.links {
			if len(q) > 0 {
				keys = append(keys, k)
			}
		}
		slices.SortFunc(keys, func(a, b [2]string) int { return strings.Compare(a[0]+a[1], b[0]+b[1]) })
		if len(keys) > 0 {
			c.deliver(keys[int(choice)%len(keys)])
		}
	case e < 20:
		if len(c.timers) > 0 {
			slices.SortStableFunc(c.timers, func(a, b due) int { return cmp.Compare(a.at, b.at) })
			c.expire(int(choice) % min(4, len(c.timers))) // some come late
		}
	case e < 22 && runs && !n.ranks[local].joined:
		c.apply(name, n.FromWorker(local, Message{Kind: KindHello, Text: n.job}))
	case e == 22 && runs:
		c.apply(name, n.FromWorker(local, Message{Kind: KindExchange, Seq: n.seq, Name: "x", Blobs: [][]byte{{1}}}))
	case e == 23 && runs:
		c.apply(name, n.FromWorker(local, Message{Kind: []Kind{KindBye, KindFlight, KindShare}[choice%3], Code: 2}))
	case e == 24 && runs:
		c.apply(name, n.FromWorker(local, Message{Kind: KindFail, Cause: &Cause{Text: "why"}}))
	case e == 25 && runs:
		c.apply(name, n.Exited(local, Exit{Code: []int{0, 1, 75}[choice%3]}))
	case e == 26 && runs:
		c.apply(name, n.Exited(local, Exit{Signal: "SIGKILL", SignalNumber: 9}))
	case e == 27 && choice >= 128 && !c.dead[name]:
		c.apply(name, n.Interrupt("SIGTERM", 15))
	case e == 27:
		c.come()
	case e == 28 && choice >= 128 && !c.dead[name]: // the launcher is killed
		c.dead[name] = true
	case e == 29:
		c.bury(name)
	case e == 30 && choice >= 192 && !c.dead["a"] && name != "a": // it is thought to be lost
		c.apply("coord", c.coord.Lost(name, Mute))
	case e == 31 && choice >= 128 && choice < 192 && !c.dead[name] && len(c.names) > 1: // it finds itself cut off
		if name != "a" {
			c.apply(name, n.Alone())
		} else {
			c.apply("coord", c.coord.Alone(c.names[1+int(choice)%(len(c.names)-1)]))
		}
	case e == 31 && choice >= 192 && !c.dead[name]:
		c.apply(name, n.Ending(time.Second))
	}
}

// calm lets everything come to its end: messages arrive, ranks end well, timers run out in
// order. Every launcher must have ended soon after the longest wait, and where node 0 is
// gone, which nobody waits for, soon.
func (c *chance) calm() {
	for end := c.now + 10*time.Minute; c.now < end; {
		if c.dead["a"] {
			end = min(end, c.now+20*time.Second)
		}
		busy := false
		for k := range c.links {
			for c.deliver(k) {
				busy = true
			}
		}
		for _, name := range c.names {
			c.bury(name)
			n := c.nodes[name]
			for l := range n.cfg.Info.Nproc {
				if !c.dead[name] && l < len(n.ranks) && n.ranks[l].alive {
					busy = true
					c.apply(name, n.Exited(l, Exit{}))
				}
			}
		}
		if busy {
			continue
		}
		if !slices.ContainsFunc(c.names, func(name string) bool { return !c.dead[name] }) || len(c.timers) == 0 {
			break
		}
		slices.SortStableFunc(c.timers, func(a, b due) int { return cmp.Compare(a.at, b.at) })
		c.expire(0)
	}
	for _, name := range c.names {
		if !c.dead[name] {
			c.t.Errorf("launcher %s has not ended at %v, phase %d of epoch %d:\n%s", name, c.now, c.nodes[name].phase, c.nodes[name].epoch, strings.Join(c.log[max(0, len(c.log)-400):], "\n"))
			return
		}
	}
}

func happenAll(t *testing.T, events []byte) {
	if len(events) < 4 {
		return
	}
	nodes, nproc, restarts := 1+int(events[0])%4, 1+int(events[1])%2, int(events[2])%3
	least := 0
	if events[3]%2 == 1 && nodes > 1 {
		least = 1 + int(events[3]/2)%(nodes-1)
	}
	c := newChance(t, nodes, int(events[0]/4)%4, nproc, restarts, least)
	for i := 4; i+1 < len(events); i += 2 {
		c.happen(events[i], events[i+1])
	}
	c.calm()
}

// Whatever happens to a job, and in whatever order, nothing crashes and every launcher ends.
func FuzzChance(f *testing.F) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		events := make([]byte, 4+2*random.IntN(300))
		calm := random.IntN(8)
		for i := range events {
			events[i] = byte(random.Uint32())
			if i >= 4 && i%2 == 0 && random.IntN(8) < calm {
				events[i] = byte(random.IntN(24)) // nothing fails
			}
		}
		f.Add(events)
	}
	f.Fuzz(happenAll)
}
