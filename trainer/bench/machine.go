package main

import "ebtrain/collective/simulate"

// together is how many of the hosts of the first ranks are one machine, if all machines
// have as many; otherwise 1, as if each were one.
func (r *Report) together(ranks int) int {
	var names []string // by host
	for i, h := range r.Hosts[:min(ranks, len(r.Hosts))] {
		if i == 0 || h != r.Hosts[i-1] {
			name := h
			if i < len(r.Machines) && r.Machines[i] != "" {
				name = r.Machines[i]
			}
			names = append(names, name)
		}
	}
	on := onHosts(names)
	if len(on) == 0 {
		return 1
	}
	for _, n := range on {
		if n != on[0] {
			return 1
		}
	}
	return on[0]
}

// crowd is the ranks of a case on the fullest of its machines, over its processors.
func (r *Report) crowd(c *Case) float64 {
	together, most := r.together(c.Ranks), 0
	for h := 0; h < len(c.OnHosts); h += together {
		n := 0
		for _, ranks := range c.OnHosts[h:min(h+together, len(c.OnHosts))] {
			n += ranks
		}
		most = max(most, n)
	}
	return float64(most*r.Threads) / float64(r.Cores)
}

// crowded says whether ranks of a case share processors.
func (r *Report) crowded(c *Case) bool { return r.crowd(c) > 1 }

// cluster is the machines that a case was measured on.
func (p *player) cluster(c *Case) simulate.Cluster {
	s := simulate.Cluster{Ranks: c.OnHosts, Cores: max(1, p.r.Cores/p.r.Threads), Costs: p.model}
	if s.Together = p.r.together(c.Ranks); s.Together > 1 {
		s.Wired = true // hosts that a launcher has found apart
	}
	if p.r.crowded(c) { // else others have what ranks leave idle, and what own leaves out
		s.Wake, s.Delay = p.r.wait(c)
		s.Others = c.Others / float64(p.r.Threads)
	}
	return s
}
