package randomgraph

import (
	"fmt"

	"ebtrain/ddp"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// worlds runs a data-parallel step on 1, 2 and 4 ranks, which have the same bits.
func (c *Checker) worlds(p *Program, t Target) error {
	if p.Shards == nil || p.local == nil {
		return nil
	}
	var first results
	for _, world := range []int{1, 2, 4} {
		if world > len(t.Ranks) {
			break
		}
		s := *p.Shards
		s.World = world
		g, err := ddp.Virtualise(p.local, s)
		if err != nil {
			return err
		}
		e := &execution{graph: g, ranks: t.Ranks[:world], steps: p.Steps, remat: t.Remat, fixed: true, in: func(rank, step int, l graph.Leaf) *exec.Tensor {
			switch {
			case l.Name == s.Key && l.Type == graph.KeyType:
				key := p.value(0, step, l)
				key.I64()[2] += int64(rank * s.Virtual / world * s.Batch)
				return key
			case !s.Split[l.Name]:
				return p.value(0, step, l)
			}
			full := l
			full.Type.Shape = l.Type.Shape.With(0, l.Type.Shape.At(0)*world)
			all, part := p.value(0, step, full), exec.NewTensor(l.Type)
			copy(part.Bytes(), all.Bytes()[rank*len(part.Bytes()):])
			return part
		}}
		if world > 1 {
			e.comms = c.Group(world)
		}
		got, err := e.run()
		if err != nil {
			return fmt.Errorf("%d virtual shards on %d ranks: %w", s.Virtual, world, err)
		}
		join(got, s.Split)
		if first == nil {
			first = got
			continue
		}
		for r := range got {
			if err := equalBits(first, results{got[r]}); err != nil {
				return fmt.Errorf("%d virtual shards on rank %d of %d have other bits than on one: %w", s.Virtual, r, world, err)
			}
		}
	}
	return nil
}

// join puts the ranks' parts of variables together, on all ranks.
func join(all results, parts map[string]bool) {
	for name := range parts {
		of := "variable " + name
		mine := all[0][of]
		if mine == nil {
			continue
		}
		t := mine.Type
		t.Shape = t.Shape.With(0, t.Shape.At(0)*len(all))
		whole := exec.NewTensor(t)
		for r := range all {
			copy(whole.Bytes()[r*len(mine.Bytes()):], all[r][of].Bytes())
		}
		for r := range all {
			all[r][of] = whole
		}
	}
}

// shared runs a step whose optimiser's state is shared out among the ranks: it has the
// bits of the one where it is not.
func (c *Checker) shared(p *Program, t Target, want results) error {
	if p.State == nil || p.Ranks == 1 {
		return nil
	}
	g, list, err := ddp.ShardOptimizer(p.Graph, p.Ranks, p.State)
	if err != nil {
		return err
	}
	e := c.execution(p, t)
	parts, in := map[string]ddp.Sharded{}, map[string]bool{}
	for _, s := range list {
		parts[s.Name], in[s.Name] = s, true
	}
	e.graph = g
	e.in = func(rank, step int, l graph.Leaf) *exec.Tensor {
		s, ok := parts[l.Name]
		if !ok {
			return p.value(rank, step, l)
		}
		l.Type = s.Whole
		return s.PartOf(p.value(rank, step, l), rank)
	}
	got, err := e.run()
	if err != nil {
		return fmt.Errorf("with shared state: %w", err)
	}
	join(got, in)
	for r := range got {
		for name, s := range parts { // without what is padded
			if v := got[r]["variable "+name]; v != nil {
				whole := exec.NewTensor(s.Whole)
				copy(whole.Bytes(), v.Bytes())
				got[r]["variable "+name] = whole
			}
		}
	}
	if err := equalBits(want, got); err != nil {
		return fmt.Errorf("with %d shared variables: %w", len(list), err)
	}
	return nil
}
