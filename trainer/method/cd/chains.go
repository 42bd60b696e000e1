package cd

import (
	"ebtrain/collective"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// chains are the persistent chains: the variable persistent.h (world·batch,
// hidden), of which this rank moves the rows of its own slots.
type chains struct {
	all   graph.ID // the variable
	slots graph.ID // this rank's rows, I32 (batch)
	first graph.ID // I64 (1), 1 in the first step of a run, else 0
	batch int
}

const (
	chainScope = "persistent"
	chainName  = "h"
)

// newChains declares the variable. The key of draws tells the step and the slots,
// which are no part of the graph: ranks run equal programs.
func newChains(c *nn.Context, key graph.ID, batch, hidden int) chains {
	var ch chains
	c.Scope(chainScope, func() { ch.all = c.Buffer(chainName, graph.D(c.World*batch, hidden), nil) })
	entry := func(i int) graph.ID { return c.Slice(key, 0, i, i+1, 1) }
	ch.first = c.Equal(entry(1), c.Zeros(graph.T(graph.I64, 1)))
	ch.slots = c.Add(c.Iota(graph.T(graph.I32, batch), 0), c.Cast(entry(2), graph.I32))
	ch.batch = batch
	return ch
}

// begin is where the rank's chains are, (batch, hidden): at start in the first
// step of a run, later where keep has left them.
func (ch chains) begin(c *nn.Context, start graph.ID) graph.ID {
	first := c.BroadcastTo(c.Cast(ch.first, c.DType), c.Shape(start))
	return c.Select(first, start, c.Gather(ch.all, ch.slots))
}

// keep makes h, (batch, hidden), the states of the rank's chains. Every rank adds
// its rows to zeros elsewhere, so all have all of them, exactly.
func (ch chains) keep(c *nn.Context, h graph.ID) {
	all := c.ScatterAdd(h, ch.slots, c.World*ch.batch)
	if c.World > 1 {
		all = c.AllReduce(collective.Sum, "chains", all)[0]
	}
	c.Scope(chainScope, func() { c.Update(chainName, all) })
}
