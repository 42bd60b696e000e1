package schedule

import "ebtrain/collective"

// between is the rest of a collective on several hosts: the ranks of a host combine
// what they bring, the leaders exchange it, all take what they need.
func (c Call) between(steps []Step) []Step {
	if c.Bytes == 0 || c.Kind == collective.Barrier {
		if c.Leads() {
			steps = c.double(steps, 0)
		}
		return append(steps, Step{Do: Barrier})
	}
	if c.Leads() && !c.Doubled() {
		steps = c.consent(steps)
	}
	if c.InPlace() {
		return c.inPlace(steps)
	}
	total, chunk := c.extent()
	for at := 0; at < total; at += chunk {
		lo, hi := at, min(at+chunk, total)
		if at > 0 {
			steps = append(c.stage(steps, lo, hi), Step{Do: Barrier})
		}
		steps = append(c.combine(steps, lo, hi), Step{Do: Barrier})
		if c.Leads() {
			steps = c.exchange(steps, lo, hi)
		}
		steps = append(steps, Step{Do: Barrier})
		steps = append(c.takeOut(steps, lo, hi), Step{Do: Turn})
	}
	return steps
}

// inPlace is an all-reduce in the leader's vector, which the others copy.
func (c Call) inPlace(steps []Step) []Step {
	if c.Locals > 1 {
		steps = append(steps, Step{Do: Reduce, Hi: c.Bytes, Bytes: c.Locals * c.share(c.Bytes/c.Elem) * c.Elem}, Step{Do: Barrier})
	}
	switch {
	case c.Leads() && c.Gridded():
		steps = c.inChunks(steps)
	case c.Leads():
		steps = c.pipeline(steps)
	}
	if c.Locals == 1 {
		return steps
	}
	steps = append(steps, Step{Do: Barrier})
	if !c.Leads() {
		steps = append(steps, Step{Do: Copy, Hi: c.Bytes, Bytes: c.Bytes})
	}
	return append(steps, Step{Do: Barrier}) // the leader may not change its vector while others read it
}

// pipeline exchanges chunk by chunk. Slices travel in the order of exchange, but the
// next chunk's leave before the last one's results are there.
func (c Call) pipeline(steps []Step) []Step {
	chunk := NetChunk(c.Hosts)
	for at := 0; at < c.Bytes; at += chunk {
		lo, hi := at, min(at+chunk, c.Bytes)
		s := func(do Verb, what What) Step { return Step{Do: do, What: what, Lo: lo, Hi: hi} }
		steps = append(steps, s(Post, Addends), s(Send, Addends))
		if at == 0 {
			steps = append(steps, Step{Do: Agree})
		} else {
			steps = append(steps, Step{Do: Wait, What: Results, Lo: at - chunk, Hi: at})
		}
		steps = append(steps, s(Post, Results), s(Wait, Addends), s(Combine, Addends), s(Send, Results))
		if hi == c.Bytes {
			steps = append(steps, s(Wait, Results))
		}
	}
	return steps
}

// combine reduces what the host's ranks bring to a partial result, in which parts lie
// in the order host by host: this rank its share, or every so-manieth part.
func (c Call) combine(steps []Step, lo, hi int) []Step {
	n := hi - lo
	switch c.Kind {
	case collective.AllReduce:
		return append(steps, Step{Do: Reduce, Lo: lo, Hi: hi, Bytes: c.Locals * c.share(n/c.Elem) * c.Elem})
	case collective.ReduceScatter:
		parts := (c.Ranks - c.Local + c.Locals - 1) / c.Locals
		return append(steps, Step{Do: Reduce, Lo: lo, Hi: hi, Bytes: c.Locals * parts * n})
	}
	return steps
}

// exchange is the leaders' part: it completes the result.
func (c Call) exchange(steps []Step, lo, hi int) []Step {
	switch {
	case c.Doubled():
		return c.double(steps, hi)
	case c.Gridded() && c.Kind == collective.ReduceScatter:
		return c.scatter(steps, lo, hi)
	case c.Gridded() && c.Kind == collective.AllGather:
		return c.gather(steps, lo, hi)
	case c.Gridded():
		return append(c.inGrid(steps, lo, hi, -1), Step{Do: Wait, What: RowResults, Lo: lo, Hi: hi})
	}
	s := func(do Verb, what What) Step { return Step{Do: do, What: what, Lo: lo, Hi: hi} }
	agree := func(steps []Step) []Step {
		if lo > 0 {
			return steps
		}
		return append(steps, Step{Do: Agree})
	}
	switch c.Kind {
	case collective.AllReduce:
		steps = agree(append(steps, s(Post, Addends), s(Send, Addends)))
		return append(steps, s(Wait, Addends), s(Combine, Addends),
			s(Post, Results), s(Send, Results), s(Wait, Results))
	case collective.ReduceScatter:
		steps = agree(append(steps, s(Post, Addends), s(Send, Addends)))
		return append(steps, s(Wait, Addends), s(Combine, Addends))
	case collective.AllGather:
		steps = agree(append(steps, s(Post, Results), s(Send, Results)))
		return append(steps, s(Wait, Results))
	}
	// Broadcast: a piece to each, which all then gather, so that no host sends it all
	// more than twice.
	if c.RootHost {
		return append(agree(append(steps, s(Send, Pieces))), s(Send, Rest))
	}
	steps = append(agree(append(steps, s(Post, Pieces))), s(Wait, Pieces))
	return append(steps, s(Post, Rest), s(Send, Rest), s(Wait, Rest))
}

// takeOut copies this rank's part of the result to its vector.
func (c Call) takeOut(steps []Step, lo, hi int) []Step {
	s := Step{Do: Copy, Lo: lo, Hi: hi, Bytes: hi - lo}
	switch {
	case c.Kind == collective.AllGather:
		s.Bytes *= c.Ranks - 1
	case c.Root:
		return steps
	}
	return append(steps, s)
}
