package rendezvous

import (
	"fmt"
	"slices"
	"time"

	"ebtrain/launch/statuspage"
)

// Vital is what a launcher sees of one of its ranks that has not written
// anything to its progress page for a moment.
type Vital struct {
	Rank    int                   `json:"rank"`
	Pid     int                   `json:"pid"`
	Quiet   time.Duration         `json:"quiet"`             // since it has last written to its page
	Idle    time.Duration         `json:"idle"`              // since it has last computed, read, written or waited for a disk
	Halted  bool                  `json:"halted,omitempty"`  // by a signal, when it was last looked at
	Stopped bool                  `json:"stopped,omitempty"` // by a signal, and has been for a while: it does not run at all
	Disk    bool                  `json:"disk,omitempty"`    // it waits for a disk
	Met     []statuspage.Meetings `json:"met"`               // by statuspage.Kind
	During  string                `json:"during,omitempty"`
}

// A rank is stuck if others wait for it and it is stopped, for stoppedFinds Vitals in a row, or
// shows no sign of life for StuckAfter. A rank that others wait for as long, but that computes or
// waits for a disk, is slow: that is said and has no consequence.

// stoppedFinds is how often in a row a stopped rank must be found to keep others waiting. All
// ranks may be stopped at one moment, and go on host by host: that of the others is seen a
// little sooner or later.
const stoppedFinds = 4

// vitals takes what a launcher sees of its ranks, and judges them.
func (c *Coordinator) vitals(from string, seen []Vital) {
	if c.phase != running || c.settling != nil {
		return
	}
	at := c.index(from)
	base := Base(c.nodes, at)
	for _, v := range seen {
		if v.Rank < base || v.Rank >= base+c.nodes[at].Nproc || len(v.Met) != len(statuspage.Counts{}.Met) {
			return // not of one of its ranks
		}
		c.seen[v.Rank] = v
	}
	if c.cfg.StuckAfter <= 0 {
		return
	}
	for _, v := range seen {
		if cause := c.judge(at, v); cause != nil {
			c.abort(cause)
			return
		}
	}
}

// judge says why rank v.Rank of node at ends the job, nil if it does not, and warns of one that
// is slow.
func (c *Coordinator) judge(at int, v Vital) *Cause {
	if v.Quiet < c.cfg.StuckAfter {
		delete(c.warned, v.Rank)
	}
	who, kind := c.waitFor(v)
	if who == "" || !v.Stopped {
		delete(c.finds, v.Rank)
	}
	switch {
	case who == "":
	case v.Stopped && c.finds[v.Rank]+1 < stoppedFinds:
		c.finds[v.Rank]++
	case v.Stopped:
		return c.stuck(at, v, fmt.Sprintf("stopped by a signal%s: %s", v.doing(), who))
	case v.Idle >= c.cfg.StuckAfter && kind == statuspage.Collectives:
		return c.stuck(at, v, fmt.Sprintf("no progress for %v%s: %s", v.Idle.Round(time.Second), v.doing(), who))
	default:
		c.warn(at, v, who)
	}
	return nil
}

// stuck is why rank v.Rank of node at ends the job.
func (c *Coordinator) stuck(at int, v Vital, text string) *Cause {
	cause := &Cause{Kind: CauseStuck, Rank: v.Rank, Node: at, Host: c.nodes[at].Host, Pid: v.Pid, Text: text}
	if v.Stopped {
		cause.Signal = "SIGSTOP"
	}
	return cause
}

// warn says that a rank keeps others waiting: after StuckAfter, and each time
// that has doubled.
func (c *Coordinator) warn(at int, v Vital, who string) {
	next := c.warned[v.Rank]
	if v.Quiet < max(next, c.cfg.StuckAfter) {
		return
	}
	c.warned[v.Rank] = 2 * max(next, c.cfg.StuckAfter)
	does := "but it computes"
	switch {
	case v.Disk:
		does = "it waits for a disk"
	case v.Idle >= c.cfg.StuckAfter:
		does = "it does nothing"
	}
	cause := Cause{Kind: CauseStuck, Rank: v.Rank, Node: at, Host: c.nodes[at].Host, Pid: v.Pid}
	c.out = append(c.out, Note{fmt.Sprintf("warning: %s: no progress for %v%s, %s: %s", cause.who(), v.Quiet.Round(time.Second), v.doing(), does, who)})
}

// waitFor says who waits for the rank of v, and in what kind of meeting: those
// that are in one that it has not come to or, if it is stopped, not left, and are not
// stopped themselves.
func (c *Coordinator) waitFor(v Vital) (string, statuspage.Kind) {
	for k, mine := range v.Met {
		var waiting []int
		for rank, w := range c.seen {
			theirs := w.Met[k]
			in := theirs.Begun > theirs.Ended
			absent := mine.Begun == mine.Ended && mine.Begun < theirs.Begun
			if rank != v.Rank && in && !w.Halted && (absent || v.Stopped && mine.Ended < theirs.Begun) {
				waiting = append(waiting, rank)
			}
		}
		if len(waiting) == 0 {
			continue
		}
		first := slices.Min(waiting)
		who := fmt.Sprintf("rank %d waits for it", first)
		if n := len(waiting) - 1; n > 0 {
			who = fmt.Sprintf("rank %d and %d more wait for it", first, n)
		}
		return who + c.seen[first].doing(), statuspage.Kind(k)
	}
	return "", 0
}

// doing is what the rank was doing, as it follows another word.
func (v Vital) doing() string {
	if v.During == "" {
		return ""
	}
	return " " + v.During
}

// Vitals passes on what is seen of the local ranks; their Rank is the local one.
func (n *Node) Vitals(seen []Vital) []Effect {
	if n.phase == working && len(seen) > 0 {
		for i := range seen {
			seen[i].Rank = n.rankOf(seen[i].Rank)
		}
		n.send(Message{Kind: KindVitals, Vitals: seen})
	}
	return n.flush()
}
