package randomgraph

import "ebtrain/ddp/graph"

func (g *grower) reduce() {
	b, x := g.b, g.late()
	rank := b.Shape(x).Rank()
	axes := []int{}
	for i := range rank {
		if g.n(2) == 0 {
			axes = append(axes, i)
		}
	}
	if len(axes) == 0 { // the builder takes none for all
		for i := range rank {
			axes = append(axes, i)
		}
	}
	empty := b.Shape(x).Len() == 0
	switch k := g.n(6); {
	case !b.Type(x).DType.IsFloat():
		if k < 3 && !empty {
			g.put(b.MaxKeep(x, axes...), true)
		} else {
			g.put(b.SumKeep(x, axes...), true)
		}
	case empty:
		g.put(b.SumKeep(x, axes...), false)
	case k == 0:
		g.put(b.Mean(x, axes...), false)
	case k < 3:
		g.put(b.MeanKeep(x, axes...), false)
	case k == 3 && g.kinks:
		g.jumps = g.jumps || !g.exact[x]
		g.put(b.MaxKeep(x, axes...), g.exact[x])
	case k == 4:
		if g.one(4) {
			g.put(b.LogSumExp(x, axes...), false)
			return
		}
		if g.one(4) {
			x = b.Shift(x, pick(g.Choices, 30.0, -200))
		}
		m := b.MeanKeep(x, axes...)
		g.put(m, false)
		g.put(b.MeanKeep(b.Square(b.Sub(x, m)), axes...), false)
	default:
		g.put(g.tame(b.SumKeep(x, axes...)), false)
	}
}

// move rearranges a value of any type.
func (g *grower) move() {
	b, x := g.b, g.late()
	s := b.Shape(x)
	exact := g.exact[x]
	if s.Rank() == 0 {
		t := pick(g.Choices, g.shapes...)
		if t.Len() <= g.most {
			g.put(b.BroadcastTo(x, t), exact)
		}
		return
	}
	axis := g.n(s.Rank())
	n := s.At(axis)
	switch g.n(7) {
	case 0:
		perm := make([]int, s.Rank())
		for i := range perm {
			perm[i] = i
		}
		for i := len(perm) - 1; i > 0; i-- {
			j := g.n(i + 1)
			perm[i], perm[j] = perm[j], perm[i]
		}
		g.put(b.Transpose(x, perm...), exact)
	case 1:
		if s.Len() > 0 {
			start := g.n(n)
			g.put(b.Slice(x, axis, start, start+1+g.n(n-start), 1+g.n(3)), exact)
		}
	case 2:
		lo, hi, gap := graph.D(make([]int, s.Rank())...), graph.D(make([]int, s.Rank())...), graph.D(make([]int, s.Rank())...)
		for i := range s.Rank() {
			if g.n(2) == 0 {
				lo, hi, gap = lo.With(i, g.n(3)), hi.With(i, g.n(3)), gap.With(i, g.n(2))
			}
		}
		g.put(g.apply(graph.Pad{Lo: lo, Hi: hi, Gap: gap}, x), exact)
	case 3:
		g.put(b.Reshape(x, graph.D(s.Len())), exact)
	case 4:
		g.put(b.Reshape(x, g.regroup(s)), exact)
	case 5:
		if t := graph.D(append([]int{2}, s.Slice()...)[:min(s.Rank()+1, graph.MaxRank)]...); t.Rank() > s.Rank() && t.Len() <= g.most {
			g.put(b.BroadcastTo(x, t), exact)
		}
	default:
		if s.Rank() == 4 || s.Len() == 0 {
			return
		}
		// an image of four axes
		t := graph.D(1, 1, 1, s.Len())
		for _, d := range []int{2, 3, 5, 7} {
			if t.At(3)%d == 0 && g.n(3) > 0 {
				t = t.With(2, t.At(2)*d).With(3, t.At(3)/d)
			}
		}
		if c := pick(g.Choices, 1, 2, 3, 4); t.At(3)%c == 0 {
			t = t.With(1, c).With(3, t.At(3)/c)
		}
		g.put(b.Reshape(x, t), exact)
	}
}

// regroup joins two neighbouring axes of s, or cuts one.
func (g *grower) regroup(s graph.Shape) graph.Shape {
	d := s.Slice()
	i := g.n(len(d))
	if i+1 < len(d) && g.n(2) == 0 {
		d[i] *= d[i+1]
		return graph.D(append(d[:i+1], d[i+2:]...)...)
	}
	for _, f := range []int{2, 3, 5} {
		if d[i]%f == 0 && d[i] > 0 && len(d) < graph.MaxRank {
			d[i] /= f
			return graph.D(append(append(append([]int{}, d[:i]...), f), d[i:]...)...)
		}
	}
	return s
}

// join concatenates or selects.
func (g *grower) join() {
	b, x := g.b, g.late()
	s := b.Shape(x)
	if s.Rank() == 0 {
		return
	}
	if g.n(2) == 0 {
		axis := g.n(s.Rank())
		parts, exact := []graph.ID{x}, g.exact[x]
		for range 1 + g.n(3) {
			y := x
			for range 6 {
				if z := g.any(); b.Type(z).DType == b.Type(x).DType && b.Shape(z).Rank() == s.Rank() && b.Shape(z).With(axis, s.At(axis)) == s {
					y = z
				}
			}
			parts, exact = append(parts, y), exact && g.exact[y]
		}
		g.put(g.apply(graph.Concat{Axis: axis}, parts...), exact)
		return
	}
	for _, cond := range g.pool {
		if g.exact[cond] && b.Type(cond) == b.Type(x) && g.n(2) == 0 {
			y := cond
			if b.Type(x).DType.IsFloat() {
				y = b.Neg(x)
			}
			g.put(b.Select(cond, x, y), g.exact[x])
			return
		}
	}
}

// index gathers and scatters rows and pixels at given places.
func (g *grower) index() {
	b, x := g.b, g.late()
	s := b.Shape(x)
	if s.Rank() == 0 || s.Len() == 0 {
		return
	}
	places := func(below int, shape graph.Shape) graph.ID {
		g.leaf++
		return b.Input("index"+itoa(below)+"."+itoa(g.leaf), graph.Type{DType: graph.I32, Shape: shape})
	}
	if g.batch > 0 { // an input of a shard's samples would be split
		return
	}
	exact := g.exact[x] && !b.Type(x).DType.IsFloat()
	switch k := g.n(4); {
	case k == 0:
		g.put(g.apply(graph.Gather{}, x, places(s.At(0), graph.D(g.n(8)))), g.exact[x])
	case k == 1:
		rows := 1 + g.n(6)
		g.put(g.apply(graph.ScatterAdd{Rows: rows}, x, places(rows, graph.D(s.At(0)))), exact)
	case s.Rank() == 4 && k == 2:
		g.put(g.apply(graph.PlaneGather{}, x, places(s.At(2)*s.At(3), graph.D(s.At(0), s.At(1), 1+g.n(3), 1+g.n(3)))), g.exact[x])
	case s.Rank() == 4:
		h, w := 1+g.n(4), 1+g.n(4)
		g.put(g.apply(graph.PlaneScatter{H: h, W: w}, x, places(h*w, s)), exact)
	}
}
