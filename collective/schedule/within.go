package schedule

import "ebtrain/collective"

// within is the rest of a collective on one host.
func (c Call) within(steps []Step) []Step {
	total, chunk := c.extent()
	if c.All {
		chunk = total
	}
	for at := 0; at < total; at += chunk {
		lo, hi := at, min(at+chunk, total)
		if at > 0 {
			steps = append(c.stage(steps, lo, hi), Step{Do: Barrier})
		}
		steps = append(c.piece(steps, lo, hi), Step{Do: Turn})
	}
	if c.Some && c.Kind != collective.AllReduce { // nobody may change its vector while others read it
		steps = append(steps, Step{Do: Barrier})
	}
	return steps
}

// piece is what follows when a piece can be read. A small vector is reduced by every
// rank for itself; of others every rank reduces its share and writes it to all.
func (c Call) piece(steps []Step, lo, hi int) []Step {
	n := hi - lo
	switch c.Kind {
	case collective.AllReduce:
		if c.Bytes <= Small {
			return append(steps, Step{Do: Reduce, Lo: lo, Hi: hi, Bytes: c.Locals * n})
		}
		steps = append(steps, Step{Do: Reduce, Lo: lo, Hi: hi, Bytes: c.Locals * c.share(n)}, Step{Do: Barrier})
		if c.Outside {
			steps = append(steps, Step{Do: Copy, Lo: lo, Hi: hi, Bytes: n})
		}
	case collective.ReduceScatter:
		steps = append(steps, Step{Do: Reduce, Lo: lo, Hi: hi, Bytes: c.Locals * n})
	case collective.AllGather:
		steps = append(steps, Step{Do: Copy, Lo: lo, Hi: hi, Bytes: (c.Ranks - 1) * n})
	case collective.Broadcast:
		if !c.Root {
			steps = append(steps, Step{Do: Copy, Lo: lo, Hi: hi, Bytes: n})
		}
	}
	return steps
}

// share is this rank's part of n bytes.
func (c Call) share(n int) int {
	lo, hi := Share(n, c.Locals, c.Local)
	return hi - lo
}

// stage shows a piece to the ranks of the host, and, where there are several hosts,
// to its leader.
func (c Call) stage(steps []Step, lo, hi int) []Step {
	n := hi - lo
	s := Step{Do: Stage, Lo: lo, Hi: hi, Bytes: n}
	switch c.Kind {
	case collective.AllReduce:
		if !c.Outside || c.Locals == 1 && c.InPlace() {
			return steps
		}
	case collective.ReduceScatter:
		if s.Bytes = c.Ranks * n; !c.Outside {
			return steps
		}
	case collective.AllGather:
		if !c.Outside && c.Hosts == 1 {
			return steps
		}
	case collective.Broadcast:
		if !c.Root || !c.Outside && c.Hosts == 1 {
			return steps
		}
	}
	return append(steps, s)
}
