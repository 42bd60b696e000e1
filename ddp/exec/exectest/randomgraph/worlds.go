package randomgraph

import (
	"fmt"
	"maps"
	"strings"

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
		runs := map[string]func() (results, error){"": func() (results, error) { return c.virtually(p, t, s, g).run() }}
		if p.State != nil && world > 1 {
			runs[" with shared state"] = func() (results, error) { return c.virtually(p, t, s, g).runShared(p.State, true) }
		}
		for what, run := range runs {
			got, err := run()
			if err != nil {
				return fmt.Errorf("%d virtual shards on %d ranks%s: %w", s.Virtual, world, what, err)
			}
			join(got, s.Split)
			if first == nil {
				first = got
			}
			for r := range got {
				mine := results{got[r]}
				if what != "" {
					mine.drop(isImageSum)
				}
				if err := equalBits(mine, first); err != nil {
					return fmt.Errorf("%d virtual shards on rank %d of %d%s have other bits than on one: %w", s.Virtual, r, world, what, err)
				}
			}
		}
	}
	return nil
}

// virtually is the graph g of one of s.World ranks that share virtual shards: each has its
// samples, and its part of what is kept for them.
func (c *Checker) virtually(p *Program, t Target, s ddp.Shards, g *graph.Graph) *execution {
	e := &execution{graph: g, ranks: t.Ranks[:s.World], steps: p.Steps, remat: t.Remat, fixed: true}
	e.in = func(rank, step int, l graph.Leaf) *exec.Tensor {
		switch {
		case l.Name == s.Key && l.Type == graph.KeyType:
			key := p.value(0, step, l)
			key.I64()[2] += int64(rank * s.Virtual / s.World * s.Batch)
			return key
		case !s.Split[l.Name]:
			return p.value(0, step, l)
		}
		full := l
		full.Type.Shape = l.Type.Shape.With(0, l.Type.Shape.At(0)*s.World)
		all, part := p.value(0, step, full), exec.NewTensor(l.Type)
		copy(part.Bytes(), all.Bytes()[rank*len(part.Bytes()):])
		return part
	}
	if s.World > 1 {
		e.comms = c.Group(s.World)
	}
	return e
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

// drop removes the values whose names are such.
func (all results) drop(such func(name string) bool) {
	for _, values := range all {
		maps.DeleteFunc(values, func(name string, _ *exec.Tensor) bool { return such(name) })
	}
}

func isImageSum(name string) bool { return strings.HasPrefix(name, imageSum) }

func isOutput(name string) bool { return !strings.HasPrefix(name, "variable ") }

// shared runs a step whose optimiser's state is shared out among the ranks: it has the
// bits of the one where it is not, but for what is reported of the ranks' sums, unless
// it is to be exact, and for sums of images.
func (c *Checker) shared(p *Program, t Target, want results, tol *tolerance) error {
	if p.State == nil || p.Ranks == 1 {
		return nil
	}
	for _, exact := range []bool{true, false} {
		got, err := c.execution(p, t).runShared(p.State, exact)
		if err != nil {
			return fmt.Errorf("with shared state: %w", err)
		}
		if err := c.near(p, t, got, tol); err != nil {
			return fmt.Errorf("with shared state (exact: %v): %w", exact, err)
		}
		if got.drop(isImageSum); !exact {
			got.drop(isOutput)
		}
		if err := equalBits(got, want); err != nil {
			return fmt.Errorf("with shared state (exact: %v): %w", exact, err)
		}
	}
	return nil
}

// runShared is run with the variables in state shared out among the ranks, where it pays,
// all others that can be gathered late, and both put together in the results.
func (e *execution) runShared(state map[string]bool, exact bool) (results, error) {
	late := map[string]bool{}
	for _, l := range leaves(e.graph) {
		late[l.Name] = l.Kind == graph.Var && !state[l.Name]
	}
	g, list, err := ddp.ShardOptimizer(e.graph, ddp.Sharding{World: len(e.ranks), State: state, Exact: exact, Late: late})
	if err != nil {
		return nil, err
	}
	parts, names, whole := map[string]ddp.Sharded{}, map[string]bool{}, e.in
	for _, s := range list.State {
		parts[s.Name], names[s.Name] = s, true
	}
	for _, s := range list.Late {
		mine := ddp.PartName(s.Name)
		parts[mine], names[mine] = s, true
	}
	e.graph, e.in = g, func(rank, step int, l graph.Leaf) *exec.Tensor {
		s, ok := parts[l.Name]
		if !ok {
			return whole(rank, step, l)
		}
		l.Name, l.Type = s.Name, s.Whole
		return s.PartOf(whole(rank, step, l), rank)
	}
	got, err := e.run()
	if err != nil {
		return nil, err
	}
	join(got, names)
	for r := range got {
		for name, s := range parts {
			v := exec.NewTensor(s.Whole)
			copy(v.Bytes(), got[r]["variable "+name].Bytes()) // without what is padded
			delete(got[r], "variable "+name)
			got[r]["variable "+s.Name] = v
		}
	}
	return got, nil
}
