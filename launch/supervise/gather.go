package supervise

import (
	"slices"
	"time"

	"ebtrain/launch/rendezvous"
)

// When lines are gathered, those of all ranks are shown by node 0, which folds what
// several nodes have said as it folds its own ranks'. A line is shown by somebody,
// always: what node 0 has not taken, because it is gone, or slow, or at its end,
// its own node shows.

const (
	gatherRoom = 1 << 20 // bytes that node 0 may not have taken yet
	gatherWait = 300 * time.Millisecond
	gatherLast = 1 // in a message's Code: no lines follow
	// gatherPause is how soon node 0 looks again for room for lines that it has not taken.
	gatherPause = 20 * time.Millisecond
)

// forwarder hands the lines of this node to node 0. Whoever uses it locks.
type forwarder struct {
	send  func(rendezvous.Message)
	seq   uint64
	kept  []forwarded // sent and not taken
	bytes int         // of them
}

type forwarded struct {
	seq uint64
	folded
}

// put sends a line, unless node 0 has too many to take.
func (f *forwarder) put(e folded) bool {
	if f.bytes+len(e.text) > gatherRoom {
		return false
	}
	f.seq++
	f.kept, f.bytes = append(f.kept, forwarded{f.seq, e}), f.bytes+len(e.text)
	f.send(rendezvous.Message{Kind: rendezvous.KindLines, Seq: f.seq, Lines: []rendezvous.Line{{Stream: e.stream, Text: e.text, Ranks: e.ranks}}})
	return true
}

// taken hears that node 0 has all lines up to seq.
func (f *forwarder) taken(seq uint64) {
	for len(f.kept) > 0 && f.kept[0].seq <= seq {
		f.bytes -= len(f.kept[0].text)
		f.kept = f.kept[1:]
	}
}

// gathers says that lines of several nodes are shown by node 0.
func (c Config) gathers() bool { return c.Gather && c.Transport != nil }

// heardLines handles what launchers tell each other of lines, and says whether in
// was that.
func (a *agent) heardLines(in rendezvous.Inbound) bool {
	switch {
	case in.Lost:
		a.takeLost(in.From)
		a.quiet[in.From] = true
		a.orphan = a.orphan || in.Coordinator || in.Alone
		return false
	case in.Msg.Kind == rendezvous.KindLines && a.coord != nil:
		a.untaken = append(a.untaken, in)
		a.takeLines()
		return true
	case in.Msg.Kind == rendezvous.KindTaken:
		a.console.taken(in.Msg.Seq)
		return true
	}
	return false
}

// takeLines takes lines of other nodes while there is room for them. Those that find none
// stay, for their node shows what node 0 does not say it has taken, and who reads node 0's
// output slowly would lose them.
func (a *agent) takeLines() {
	for len(a.untaken) > 0 && a.console.hasRoom(a.untaken[0].Msg.Lines) {
		in := a.untaken[0]
		a.untaken = a.untaken[1:]
		a.console.take(in.Msg.Lines)
		a.cfg.Transport.Send(in.From, rendezvous.Message{Kind: rendezvous.KindTaken, Seq: in.Msg.Seq})
		if in.Msg.Code == gatherLast {
			a.quiet[in.From] = true
		}
	}
	a.room = nil
	if len(a.untaken) > 0 {
		a.room = time.After(gatherPause)
	}
}

// takeLost takes the lines of a launcher that is gone, in any case, unless it has come to its
// end and shown them itself.
func (a *agent) takeLost(name string) {
	var own []rendezvous.Line
	shown := false
	a.untaken = slices.DeleteFunc(a.untaken, func(in rendezvous.Inbound) bool {
		if in.From == name {
			own = append(own, in.Msg.Lines...)
			shown = shown || in.Msg.Code == gatherLast
		}
		return in.From == name
	})
	if !shown {
		a.console.take(own)
	}
}

// gatherRest lets the last lines come to node 0, for a moment; on other nodes, all
// that the ranks have written must have been carried.
func (a *agent) gatherRest() {
	done := func() bool { return a.orphan || a.console.allTaken() }
	if a.coord != nil {
		done = a.allQuiet
	} else {
		a.console.lastLines()
	}
	for limit := time.After(gatherWait); !done(); {
		select {
		case in := <-a.cfg.Transport.Inbox():
			a.heardLines(in)
		case <-a.room:
			a.takeLines()
		case <-limit:
			a.console.keepLines()
			return
		}
	}
	a.console.keepLines()
}

// saidByNode0 says that node 0 tells why the job has ended.
func (a *agent) saidByNode0(c *rendezvous.Cause) bool {
	return a.cfg.gathers() && a.coord == nil && !a.orphan && c.Kind != rendezvous.CauseCut && c.Kind != rendezvous.CauseRefused
}

// allQuiet says that no other node of the last epoch has more lines.
func (a *agent) allQuiet() bool {
	for _, n := range a.nodes {
		if n.Name != a.cfg.Node.Info.Name && !a.quiet[n.Name] {
			return false
		}
	}
	return true
}

// take takes lines of another node.
func (c *console) take(lines []rendezvous.Line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range lines {
		if l.Stream != stdout && l.Stream != stderr {
			continue
		}
		for _, r := range l.Ranks {
			c.fold.add(r, l.Stream, l.Text, time.Now())
		}
	}
	c.emit(false)
}

// hasRoom says whether lines would be written behind what waits, and not dropped, as there is
// somebody who reads. A long line has room when nothing waits.
func (c *console) hasRoom(lines []rendezvous.Line) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	more := c.fold.bytes()
	if more == 0 && !c.out[stdout].Waits() && !c.out[stderr].Waits() {
		return true
	}
	for _, l := range lines {
		more += len(l.Text)
	}
	return c.out[stdout].HasRoom(more) && c.out[stderr].HasRoom(more)
}

// expect makes lines wait for those of so many ranks.
func (c *console) expect(ranks int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fold.ranks = ranks
}

func (c *console) taken(seq uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forward != nil {
		c.forward.taken(seq)
	}
}

func (c *console) allTaken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.forward == nil || len(c.forward.kept) == 0
}

// lastLines sends what waits, and says that nothing follows.
func (c *console) lastLines() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forward == nil {
		return
	}
	c.emit(true)
	c.forward.seq++
	c.forward.send(rendezvous.Message{Kind: rendezvous.KindLines, Seq: c.forward.seq, Code: gatherLast})
}

// keepLines shows here, from now on, and what node 0 has not taken first.
func (c *console) keepLines() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forward == nil {
		return
	}
	rest := c.forward.kept
	c.forward = nil
	for _, e := range rest {
		c.show(e.folded)
	}
}
