package host

import "slices"

// topology says which rank lives where. Hosts are numbered by their lowest
// rank, ranks of a host (its local ranks) by their rank; the first of them is
// the host's leader, which speaks to the other hosts.
type topology struct {
	rank, size int
	hosts      [][]int // ranks of each host
	host       int     // this rank's host
	local      int     // this rank's number in its host
	hostOf     []int   // host of each rank
	position   []int   // number of each rank in the order host by host
}

func newTopology(rank int, names []string) topology {
	t := topology{rank: rank, size: len(names), hostOf: make([]int, len(names)), position: make([]int, len(names))}
	number := map[string]int{}
	for r, name := range names {
		h, ok := number[name]
		if !ok {
			h = len(t.hosts)
			number[name] = h
			t.hosts = append(t.hosts, nil)
		}
		if r == rank {
			t.host, t.local = h, len(t.hosts[h])
		}
		t.hostOf[r] = h
		t.hosts[h] = append(t.hosts[h], r)
	}
	for at, r := range slices.Concat(t.hosts...) {
		t.position[r] = at
	}
	return t
}

// locals are the ranks of this host.
func (t topology) locals() []int { return t.hosts[t.host] }

// leader is this host's.
func (t topology) leader() int { return t.locals()[0] }

// leads says whether this rank is its host's leader.
func (t topology) leads() bool { return t.local == 0 }

// oneHost says whether all ranks share this host.
func (t topology) oneHost() bool { return len(t.hosts) == 1 }
