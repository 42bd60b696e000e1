package rendezvous

import (
	"fmt"
	"strconv"
	"strings"
)

// Ports are those that may be listened on, for TCP and UDP: First to Last. The zero
// value is any.
type Ports struct {
	First int `json:"first"`
	Last  int `json:"last"`
}

// ParsePorts reads "A:B" or, for one port, "A".
func ParsePorts(s string) (Ports, error) {
	low, high, ranged := strings.Cut(s, ":")
	if !ranged {
		high = low
	}
	first, err1 := strconv.Atoi(low)
	last, err2 := strconv.Atoi(high)
	if err1 != nil || err2 != nil || first < 1 || last > 65535 || last < first {
		return Ports{}, fmt.Errorf("%q: want the first and the last port, for example 29400:29499", s)
	}
	return Ports{first, last}, nil
}

// Any says that every port may be listened on.
func (p Ports) Any() bool { return p == Ports{} }

// Count is how many ports p has; 0 if any.
func (p Ports) Count() int {
	if p.Any() {
		return 0
	}
	return p.Last - p.First + 1
}

// From is all ports of p, beginning with number start, from 0, and then those
// before it; 0, for whichever the system gives, if any may be listened on.
func (p Ports) From(start int) []int {
	if p.Any() {
		return []int{0}
	}
	all := make([]int, 0, p.Count())
	for i := range p.Count() {
		all = append(all, p.First+(start+i)%p.Count())
	}
	return all
}

func (p Ports) String() string {
	if p.Any() {
		return "any"
	}
	return fmt.Sprintf("%d:%d", p.First, p.Last)
}
