// Package binding says on which processors each rank of a host is to run: where a machine
// has several nodes of processors and memory (NUMA), those of the node that its GPU hangs
// on, or where no GPUs are, of one node for each share of the ranks; or of a node's, those
// that share a cache.
//
//	┌ node 0: processors 0-31, GPUs 0-3 ┬ node 1: processors 32-63, GPUs 4-7 ┐
//	│ local ranks 0 1 2 3               │ 4 5 6 7                            │
//
// Memory follows by itself: Linux takes it from the node of whoever first writes to it.
//
// What there is, is what Linux tells in /sys, and NVIDIA's driver in /proc; which GPUs are this
// process's, the files in /dev. Nothing here keeps state.
package binding

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Mode says how much of a machine a rank gets.
type Mode string

const (
	None      Mode = ""          // all of it
	Node      Mode = "node"      // its node
	Socket    Mode = "socket"    // all nodes of the socket of its node
	Exclusive Mode = "exclusive" // an equal share of the cores of its node, which no other rank gets
	// Complex is the processors of its node that share their last cache with each other, the
	// next such for the node's next rank.
	Complex Mode = "core-complex"
)

// Parse reads a mode.
func Parse(s string) (Mode, error) {
	switch m := Mode(strings.ToLower(s)); m {
	case "none":
		return None, nil
	case Node, Socket, Exclusive, Complex:
		return m, nil
	}
	return None, fmt.Errorf("%q: want one of none, %s, %s, %s, %s", s, Node, Socket, Exclusive, Complex)
}

// Place is where a rank is to run.
type Place struct {
	CPUs  unix.CPUSet
	Ranks int // of this host that share these processors, evenly
}

// Threads is a rank's share of its processors, at least 1.
func (p Place) Threads() int { return max(1, p.CPUs.Count()/p.Ranks) }

// String lists the processors, as in 0-3,8.
func (p Place) String() string { return format(p.CPUs) }

// Of places the ranks of a host, in the order of their local numbers. The GPUs that
// environ lets them see (CUDA_VISIBLE_DEVICES) are theirs in turn.
func (m Machine) Of(mode Mode, ranks int, environ []string) ([]Place, error) {
	nodes, err := m.nodes()
	if err != nil {
		return nil, err
	}
	home, err := m.homes(nodes, ranks, environ)
	if err != nil {
		return nil, err
	}
	places := make([]Place, ranks)
	switch mode {
	case Node:
		for r := range places {
			places[r].CPUs = nodes[home[r]].cpus
		}
	case Socket:
		err = m.sockets(places, nodes, home)
	case Exclusive:
		err = m.shares(places, nodes, home)
	case Complex:
		err = m.complexes(places, nodes, home)
	default:
		return nil, fmt.Errorf("no places for mode %s", mode)
	}
	for r := range places {
		for _, other := range places {
			if other.CPUs == places[r].CPUs {
				places[r].Ranks++
			}
		}
	}
	return places, err
}

// homes is the place in nodes of each rank's.
func (m Machine) homes(nodes []node, ranks int, environ []string) ([]int, error) {
	gpus, err := m.gpus(environ)
	if err != nil {
		return nil, err
	}
	home := make([]int, ranks)
	for r := range home {
		if len(gpus) == 0 {
			home[r] = r * len(nodes) / ranks
		} else if home[r], err = m.near(nodes, gpus[r%len(gpus)]); err != nil {
			return nil, err
		}
	}
	return home, nil
}

// sockets gives each rank all nodes that lie on the socket of its own.
func (m Machine) sockets(places []Place, nodes []node, home []int) error {
	socket := make([]int, len(nodes))
	for i, n := range nodes {
		var err error
		if socket[i], err = m.socket(first(n.cpus)); err != nil {
			return err
		}
	}
	for r := range places {
		for i, n := range nodes {
			if socket[i] == socket[home[r]] {
				add(&places[r].CPUs, n.cpus)
			}
		}
	}
	return nil
}

// shares deals the cores of each node to its ranks, neighbours to each.
func (m Machine) shares(places []Place, nodes []node, home []int) error {
	for i, n := range nodes {
		own := ranksOf(home, i)
		cores, err := m.cores(n.cpus)
		if err != nil {
			return err
		}
		if len(cores) < len(own) {
			return fmt.Errorf("node %d has %d cores for %d ranks: start fewer ranks, or bind them to the %s", n.number, len(cores), len(own), Node)
		}
		for k, r := range own {
			for _, c := range cores[k*len(cores)/len(own) : (k+1)*len(cores)/len(own)] {
				add(&places[r].CPUs, c)
			}
		}
	}
	return nil
}

// complexes deals the groups of processors that share a cache to the ranks of each node:
// the largest, if some of their processors are not ours to use.
func (m Machine) complexes(places []Place, nodes []node, home []int) error {
	for i, n := range nodes {
		own := ranksOf(home, i)
		if len(own) == 0 {
			continue
		}
		groups, err := m.caches(n.cpus)
		if err != nil {
			return err
		}
		slices.SortStableFunc(groups, func(a, b unix.CPUSet) int { return b.Count() - a.Count() })
		groups = groups[:min(len(groups), len(own))]
		for k, r := range own {
			places[r].CPUs = groups[k*len(groups)/len(own)]
		}
	}
	return nil
}

// ranksOf are the ranks whose home is a node.
func ranksOf(home []int, node int) (own []int) {
	for r, h := range home {
		if h == node {
			own = append(own, r)
		}
	}
	return own
}
