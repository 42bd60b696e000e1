package netns

import "fmt"

// What a limited link lets through at once, as far as its rate brings that in half a
// millisecond, but at least so much, and what waits for it: more is lost. Too small a
// burst, and a timer that comes late loses bandwidth; too large, and what is small
// knows no limit.
const (
	burstTime  = 0.5e-3 // seconds
	leastBurst = 32 << 10
	queueBytes = 4 << 20
)

// Plug connects host i to the switch, or cuts it off, of which nobody is told.
func (n *Network) Plug(i int, connected bool) error {
	state := "down"
	if connected {
		state = "up"
	}
	return n.middle.Sh(fmt.Sprintf("ip link set port%d %s", i, state))
}

// Limit limits the links of all hosts to so many Gbit/s in each direction, by token
// buckets at both ends; 0 is no limit.
func (n *Network) Limit(gbit float64) error {
	for _, h := range n.Hosts {
		if err := h.limit(Interface, gbit); err != nil {
			return err
		}
	}
	return n.LimitIn(gbit)
}

// LimitIn limits what comes to hosts, and lets out what they send.
func (n *Network) LimitIn(gbit float64) error {
	for i, h := range n.Hosts {
		if err := h.Sh(fmt.Sprintf("ip link set dev %s gso_max_size %d", Interface, piece(gbit))); err != nil {
			return err
		}
		if err := n.middle.limit(fmt.Sprintf("port%d", i), gbit); err != nil {
			return err
		}
	}
	return nil
}

// burst is how many bytes a link lets through at once.
func burst(gbit float64) int { return max(leastBurst, int(gbit*1e9/8*burstTime)) }

// piece is how many bytes TCP hands to a link at once: fewer than a burst, or the
// bucket would cut them into frames one by one, which takes more of a processor than
// the rest of a link; four at 1 Gbit/s then have half of their rate on two processors.
func piece(gbit float64) int {
	const usual = 64 << 10
	if gbit <= 0 {
		return usual
	}
	return min(burst(gbit)/2, usual)
}

// limit limits what leaves h by one of its links.
func (h *Host) limit(device string, gbit float64) error {
	if gbit <= 0 {
		return h.Sh(fmt.Sprintf("tc qdisc replace dev %s root noqueue", device)) // as it was made
	}
	return h.Sh(fmt.Sprintf("tc qdisc replace dev %s root tbf rate %.0fbit burst %d limit %d", device, gbit*1e9, burst(gbit), queueBytes))
}
