package simulate

import (
	"fmt"

	"ebtrain/collective"
	"ebtrain/collective/cost"
)

// Busy is what messages (Latency) and bytes (PerByte) between hosts take of a processor:
// a line through the processor time of collectives, measured while others wanted all
// processors, so that nobody had one to wait with. What is sent is counted in the
// schedule. Nil if there are too few sizes.
func Busy(reports []cost.Report) (*cost.Line, error) {
	var points []cost.Point
	for _, r := range reports {
		c := Cluster{Ranks: r.Ranks}
		if err := c.check(); err != nil {
			return nil, err
		}
		if len(c.Ranks) < 2 || r.Collective != collective.AllReduce.String() {
			return nil, fmt.Errorf("simulate: a report is of %s on %d hosts, expected all-reduce on 2 at least", r.Collective, len(c.Ranks))
		}
		g := newGroup(c)
		for _, s := range r.Sizes {
			if !(s.Processor > 0) || s.Bytes < 0 {
				return nil, fmt.Errorf("simulate: a report has %v us of processors for %d bytes, expected more than 0 for 0 bytes or more", s.Processor, s.Bytes)
			}
			g.messages, g.bytes = 0, 0
			g.play(planKey{collective.AllReduce, s.Bytes}.whole(g.size), tariff{})
			each := float64(g.messages) // of all ranks, as s.Processor is once it is multiplied
			points = append(points, cost.Point{Bytes: int(float64(g.bytes) / each), US: s.Processor * float64(g.size) / each})
		}
	}
	return cost.Fit(points), nil
}
