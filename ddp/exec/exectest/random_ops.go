package exectest

import "ebtrain/ddp/graph"

// op applies a random op to random values of the pool; 0 if they do not fit.
func (r *random) op() graph.ID {
	x := r.pick()
	switch r.n(9) {
	case 0, 1:
		return r.unary(x)
	case 2, 3:
		return r.binary(x, r.pick())
	case 4:
		return r.reduce(x)
	case 5:
		return r.move(x)
	case 6:
		return r.window(x)
	case 7:
		return r.product(x, r.pick())
	}
	return r.join(x, r.pick())
}

func (r *random) unary(x graph.ID) graph.ID {
	b := r.b
	smooth := []func() graph.ID{
		func() graph.ID { return b.Neg(x) },
		func() graph.ID { return b.Tanh(x) },
		func() graph.ID { return b.Sigmoid(x) },
		func() graph.ID { return b.Softplus(x) },
		func() graph.ID { return b.Sin(x) },
		func() graph.ID { return b.Cos(x) },
		func() graph.ID { return b.Erf(x) },
		func() graph.ID { return b.Scale(x, 0.5) },
		func() graph.ID { return b.Shift(x, -0.25) },
		func() graph.ID { return b.Exp(b.Neg(b.Square(x))) },
		func() graph.ID { return b.Log(b.Shift(b.Square(x), 1)) },
		func() graph.ID { return b.Sqrt(b.Shift(b.Square(x), 1)) },
		func() graph.ID { return b.Recip(b.Shift(b.Square(x), 1)) },
		func() graph.ID { return b.Pow(b.Shift(b.Square(x), 1), -1.5) },
		func() graph.ID { return b.StopGrad(x) },
	}
	kinked := []func() graph.ID{
		func() graph.ID { return b.Relu(x) },
		func() graph.ID { return b.Abs(x) },
		func() graph.ID { return b.LeakyRelu(x, 0.2) },
		func() graph.ID { return b.Elu(x, 0.7) },
	}
	if !r.smooth {
		smooth = append(smooth, kinked...)
	}
	return smooth[r.n(len(smooth))]()
}

// binary combines x with y where their shapes fit together, else with itself.
func (r *random) binary(x, y graph.ID) graph.ID {
	b := r.b
	if !fit(b.Shape(x), b.Shape(y)) {
		y = b.Tanh(x)
	}
	switch k := r.n(8); {
	case k == 0:
		return b.Div(x, b.Shift(b.Square(y), 1))
	case k == 1 && !r.smooth:
		return b.Max(x, y)
	case k == 2 && !r.smooth:
		return b.Min(x, y)
	case k == 3:
		return b.Sub(x, y)
	case k < 6:
		return r.tame(b.Mul(x, y))
	}
	return b.Add(x, y)
}

// fit says whether shapes broadcast to one.
func fit(x, y graph.Shape) bool {
	for i := 1; i <= min(x.Rank(), y.Rank()); i++ {
		dx, dy := x.At(x.Rank()-i), y.At(y.Rank()-i)
		if dx != dy && dx != 1 && dy != 1 {
			return false
		}
	}
	return true
}

// tame keeps magnitudes near 1.
func (r *random) tame(x graph.ID) graph.ID {
	if r.n(2) == 0 {
		return r.b.Tanh(x)
	}
	return r.b.Scale(x, 0.3)
}

func (r *random) reduce(x graph.ID) graph.ID {
	rank := r.b.Shape(x).Rank()
	if rank == 0 {
		return 0
	}
	axis, other := r.n(rank), r.n(rank)
	switch k := r.n(5); {
	case k == 0:
		return r.b.Mean(x, axis)
	case k == 1:
		return r.b.MeanKeep(x, axis, other)
	case k == 2 && !r.smooth:
		return r.b.MaxKeep(x, axis, other)
	case k == 3:
		return r.tame(r.b.Sum(x, axis))
	}
	return r.tame(r.b.SumKeep(x, axis, other))
}

// move rearranges x.
func (r *random) move(x graph.ID) graph.ID {
	b, s := r.b, r.b.Shape(x)
	if s.Rank() == 0 {
		return b.BroadcastTo(x, graph.D(2, 3))
	}
	axis := r.n(s.Rank())
	n := s.At(axis)
	switch r.n(5) {
	case 0:
		return b.Transpose(x, r.name.Perm(s.Rank())...)
	case 1:
		start := r.n(n)
		return b.Slice(x, axis, start, start+1+r.n(n-start), 1+r.n(2))
	case 2:
		return b.Pad(x, axis, r.n(2), r.n(3))
	case 3:
		return b.Reshape(x, graph.D(s.Len()))
	}
	if s.Rank() < 4 {
		lead := graph.D(append([]int{2}, s.Slice()...)...)
		return b.BroadcastTo(x, lead)
	}
	return b.Reshape(x, graph.D(s.At(0)*s.At(1), s.At(2)*s.At(3)))
}

// window slides over images.
func (r *random) window(x graph.ID) graph.ID {
	b, s := r.b, r.b.Shape(x)
	if s.Rank() != 4 || s.At(2) < 2 || s.At(3) < 2 {
		return 0
	}
	switch k := r.n(5); {
	case k == 0:
		return b.AvgPool2D(x, graph.SquareWindow(2, 1+r.n(2), r.n(2)))
	case k == 1 && !r.smooth:
		return b.MaxPool2D(x, graph.SquareWindow(2, 1+r.n(2), r.n(2)))
	case k == 2:
		return b.Upsample2D(x, graph.Nearest, 2)
	case k == 3:
		return b.Upsample2D(x, graph.Bilinear, 2)
	}
	if w := r.pool[3]; s.At(1) == b.Shape(w).At(1) {
		return r.tame(b.Conv2D(x, w, graph.NewConv(2, 1+r.n(2), r.n(2))))
	}
	return 0
}

// product multiplies matrices, transposed as needed.
func (r *random) product(x, y graph.ID) graph.ID {
	b, s, t := r.b, r.b.Shape(x), r.b.Shape(y)
	if s.Rank() != 2 || t.Rank() != 2 {
		return 0
	}
	for k := range 4 {
		tx, ty := k&1 == 1, k&2 == 2
		inner, outer := 1, 0
		if tx {
			inner = 0
		}
		if ty {
			outer = 1
		}
		if s.At(inner) == t.At(outer) {
			return r.tame(b.MatMul(x, y, tx, ty))
		}
	}
	return r.tame(b.MatMul(x, x, false, true))
}

// join concatenates, selects or gathers.
func (r *random) join(x, y graph.ID) graph.ID {
	b, s := r.b, r.b.Shape(x)
	if s.Rank() == 0 {
		return 0
	}
	switch r.n(3) {
	case 0:
		if b.Type(x) != b.Type(y) {
			y = b.Neg(x)
		}
		return b.Concat(r.n(s.Rank()), x, y)
	case 1: // every second row, in reverse, with the first once more
		n := s.At(0)
		back := b.Scale(b.Iota(graph.T(graph.F32, n), 0), -1)
		idx := b.Cast(b.Max(b.Shift(b.Scale(back, 2), float64(n-1)), b.Zeros(graph.T(graph.F32, n))), graph.I32)
		return b.Gather(x, idx)
	}
	return b.Select(b.Iota(b.Type(x), 0), x, b.Sin(x))
}
