package rendezvous

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Whom the coordinator waits for.

// expect begins the wait for nodes, which ends after JoinWait.
func (c *Coordinator) expect() {
	c.timer(TimerJoin, c.cfg.JoinWait)
	if c.reminder = c.cfg.Remind; c.reminder > 0 {
		c.timer(TimerRemind, c.reminder)
	}
}

// remind says who is missing, and does so again at twice the time.
func (c *Coordinator) remind() {
	c.out = append(c.out, Note{fmt.Sprintf("%s; waiting for up to %v", c.missing(c.reminder), c.cfg.JoinWait)})
	if c.reminder *= 2; c.reminder < c.cfg.JoinWait {
		c.timer(TimerRemind, c.reminder/2)
	}
}

// missing says who has joined within some time, and who has not.
func (c *Coordinator) missing(within time.Duration) string {
	have := map[string]int{}
	var names []string
	for _, n := range c.nodes {
		have[short(n.Host)]++
		names = append(names, n.Host)
	}
	var absent []string
	for _, h := range c.cfg.Hosts {
		if have[short(h)]--; have[short(h)] < 0 {
			absent = append(absent, h)
		}
	}
	if len(absent) == 0 {
		absent = nodeRanges(c.unclaimed())
	}
	slices.Sort(names)
	joined := ""
	if len(names) > 0 {
		joined = " (" + strings.Join(counted(names), ", ") + ")"
	}
	return fmt.Sprintf("%d of %s nodes joined within %v%s; missing: %s", len(c.nodes), span(c.cfg.Least, c.cfg.Nodes), within, joined, strings.Join(absent, ", "))
}

// unclaimed are the numbers of the nodes that have not come.
func (c *Coordinator) unclaimed() []int {
	var free []int
	for i := 1; i < c.cfg.Nodes; i++ {
		if c.wanted(i) == "" {
			free = append(free, i)
		}
	}
	// Nodes that asked for no number fill the gaps from the front.
	for _, n := range c.nodes {
		if n.Want < 0 && n.Name != c.cfg.Self && len(free) > 1 {
			free = free[1:]
		}
	}
	return free
}

// nodeRanges names nodes, of which neighbours are one entry.
func nodeRanges(all []int) []string {
	var out []string
	for i := 0; i < len(all); {
		j := i + 1
		for j < len(all) && all[j] == all[j-1]+1 {
			j++
		}
		if j == i+1 {
			out = append(out, fmt.Sprintf("node %d", all[i]))
		} else {
			out = append(out, fmt.Sprintf("nodes %d-%d", all[i], all[j-1]))
		}
		i = j
	}
	return out
}

// counted joins equal neighbours: many launchers may share a host.
func counted(names []string) []string {
	var out []string
	for i := 0; i < len(names); {
		j := i + 1
		for j < len(names) && names[j] == names[i] {
			j++
		}
		if j == i+1 {
			out = append(out, names[i])
		} else {
			out = append(out, fmt.Sprintf("%s %d times", names[i], j-i))
		}
		i = j
	}
	return out
}

// short is a host's name without its domain: who names hosts may leave it out.
func short(host string) string {
	name, _, _ := strings.Cut(host, ".")
	return name
}
