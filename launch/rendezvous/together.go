package rendezvous

import (
	"fmt"
	"time"
)

// How a job ends that one command has started everywhere (Together), when one of its
// launchers cannot take part: nobody comes in its place. All the others are to hear of it, also
// those that are yet to come, who would wait for node 0 otherwise.

// Launchers of one command start within moments of each other, on a busy machine within
// seconds; one that has died never comes.
const (
	latecomers = 2 * time.Second  // come without a word that they are awaited
	lastComer  = 30 * time.Second // is awaited so long in all
)

// together is the part of a coordinator's state that only such a job needs.
type together struct {
	came       map[string]bool // launchers that have been heard of
	tells      bool            // who comes is told why the job has ended
	warnedLate bool
}

// failTogether ends the job as one of its launchers is refused.
func (c *Coordinator) failTogether(to, host, why string) {
	c.send(to, refusal(why))
	c.endTogether(fmt.Sprintf("node %s was refused: %s", host, why))
}

// absent hears of a launcher that it does not take part. Where each is started by itself, another
// may come in its place, and in an elastic job the others may suffice.
func (c *Coordinator) absent(from, why string) {
	c.came[from] = true
	switch {
	case c.phase != gathering:
	case c.cfg.Together && !c.elastic():
		c.endTogether(why)
	default:
		c.out = append(c.out, Note{why})
	}
}

func (c *Coordinator) endTogether(why string) {
	c.abort(refused(why))
	c.tells = true
	c.timer(TimerLate, latecomers)
}

// AwaitsOthers says that launchers are yet to come that are to be told why the job has ended.
func (c *Coordinator) AwaitsOthers() bool { return c.tells && len(c.came) < c.cfg.Nodes }

// WaitNoMore ends that.
func (c *Coordinator) WaitNoMore() { c.tells = false }

// stillLate says once that others are awaited, and then waits no more.
func (c *Coordinator) stillLate() {
	if !c.AwaitsOthers() || c.warnedLate {
		c.WaitNoMore()
		return
	}
	c.warnedLate = true
	c.out = append(c.out, Note{fmt.Sprintf("the job has failed, and %d of %d nodes have come: the others are told, too, if they come within %v", len(c.came), c.cfg.Nodes, lastComer)})
	c.timer(TimerLate, lastComer-latecomers)
}
