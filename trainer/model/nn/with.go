package nn

import (
	"fmt"

	"ebtrain/ddp/graph"
)

// With runs f with the variables ps at other values, and then gives each the
// value back that it had before. So a network can be evaluated, in one graph, at
// parameters that an unrolled optimiser has made:
//
//	c.With(ps, phi, func() { q = net.Posterior(c, v) })
//
// The variables must be declared already; what f itself makes of ps (Set, Update)
// is lost. Only the names of ps are read, not their IDs.
func (c *Context) With(ps []Param, values []graph.ID, f func()) {
	if len(values) != len(ps) {
		c.Fail(fmt.Errorf("%d values for %d variables", len(values), len(ps)))
		return
	}
	before := make([]graph.ID, len(ps))
	for i, p := range ps {
		before[i] = c.now[p.Name]
		c.Set(p.Name, values[i])
	}
	f()
	for i, p := range ps {
		if c.Err() == nil {
			c.now[p.Name] = before[i]
		}
	}
}
