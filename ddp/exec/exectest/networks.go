package exectest

import "ebtrain/ddp/graph"

// Networks are cases of whole graphs: energies, their gradients to the third
// order, normalisation, generators, unrolled optimisation, and values with
// several uses.
func Networks() []Case {
	image, w1, w2 := float(2, 3, 8, 8), small(4, 3, 3, 3), small(5, 4, 4, 4)
	head := small(1, 5*4*4)
	energyArgs := args(image, w1, w2, head)
	all := []Case{
		{Name: "energy", Args: energyArgs, Build: one(func(b *graph.Builder, x []graph.ID) graph.ID {
			return energy(b, x[0], x[1:])
		})},
		{Name: "energy, first order", Args: energyArgs, Build: func(b *graph.Builder, x []graph.ID) []graph.ID {
			return b.Grad(b.Sum(energy(b, x[0], x[1:])), x...)
		}},
		{Name: "energy, score matching", Args: append(args(float(2, 3, 8, 8)), energyArgs...), Build: scoreMatching},
		{Name: "energy, third order", Args: append(args(float(2, 3, 8, 8)), energyArgs...), Build: func(b *graph.Builder, x []graph.ID) []graph.ID {
			g := scoreMatching(b, x)
			var norm graph.ID
			for i, d := range g[1:] {
				if s := b.Sum(b.Square(d)); i == 0 {
					norm = s
				} else {
					norm = b.Add(norm, s)
				}
			}
			return b.Grad(norm, x...)
		}},
		{Name: "batch norm", Args: args(float(4, 3, 5, 5), small(6, 3, 3, 3), float(6), float(6)), Build: batchNorm},
		{Name: "generator", Args: args(float(3, 7), small(7, 32), small(8, 4, 4, 4), small(2, 4, 3, 3), float(3, 2, 8, 8)), Build: generator},
		{Name: "log-softmax of embeddings", Args: args(small(9, 6), small(6, 5), intOf(graph.I32, Below(9), 8), floatOf(List(1, 0, 0, 0, 0, 0), 8, 5)), Build: logSoftmax},
		{Name: "energies of data and of two generated batches", Args: args(float(2, 4, 8, 8), float(2, 8, 4, 4), float(2, 8, 4, 4), small(8, 4, 3, 3), small(8, 8, 4, 4), small(8, 4, 4, 4)), Build: contrast},
		{Name: "unrolled descent", Args: args(float(2, 3, 6, 6), small(4, 3, 3, 3), small(4, 4, 3, 3), float(2, 4, 6, 6)), Build: unrolled},
	}
	all = append(all, hazards()...)
	for i := range all {
		all[i].Tol = Whole
	}
	return all
}

// small is an argument on the scale of initial weights.
func small(dims ...int) Arg { return floatOf(Between(-0.3, 0.3), dims...) }

// energy is Σ over each sample of ½(head·elu(conv(elu(conv x))))² + ½‖x‖²: (N).
func energy(b *graph.Builder, x graph.ID, w []graph.ID) graph.ID {
	h := b.Elu(b.Conv2D(x, w[0], graph.NewConv(3, 1, 1)), 1)
	h = b.Elu(b.Conv2D(h, w[1], graph.NewConv(4, 2, 1)), 1)
	n := b.Shape(x).At(0)
	s := b.MatMul(b.Reshape(h, graph.D(n, b.Shape(h).Len()/n)), w[2], false, true)
	return b.Scale(b.Add(b.Sum(b.Square(s), 1), b.Sum(b.Square(x), 1, 2, 3)), 0.5)
}

// scoreMatching is the loss ½·mean‖∂E/∂v + ε/σ²‖², v = x + ε, and its
// gradients; arguments: ε, x, weights.
func scoreMatching(b *graph.Builder, x []graph.ID) []graph.ID {
	noise, v := x[0], b.Add(x[1], x[0])
	force := b.Grad(b.Sum(energy(b, v, x[2:])), v)[0]
	loss := b.Scale(b.Sum(b.Square(b.Add(force, b.Scale(noise, 1/0.25)))), 0.25)
	return append([]graph.ID{loss}, b.Grad(loss, x[1:]...)...)
}

// batchNorm is a convolution, batch normalisation and leaky ReLU, its batch
// statistics, and gradients.
func batchNorm(b *graph.Builder, x []graph.ID) []graph.ID {
	h := b.Conv2D(x[0], x[1], graph.NewConv(3, 1, 1))
	mean := b.MeanKeep(h, 0, 2, 3)
	centred := b.Sub(h, mean)
	variance := b.MeanKeep(b.Square(centred), 0, 2, 3)
	perChannel := graph.D(1, 6, 1, 1)
	y := b.Mul(centred, b.Pow(b.Shift(variance, 1e-5), -0.5))
	y = b.Add(b.Mul(y, b.Reshape(x[2], perChannel)), b.Reshape(x[3], perChannel))
	y = b.LeakyRelu(y, 0.2)
	loss := b.Sum(b.Mul(b.Softplus(y), b.Sigmoid(y)))
	return append([]graph.ID{y, mean, variance, loss}, b.Grad(loss, x...)...)
}

// generator is linear, transposed convolution, bilinear enlargement,
// convolution, tanh; its error against a picture, and gradients.
func generator(b *graph.Builder, x []graph.ID) []graph.ID {
	h := b.Reshape(b.LeakyRelu(b.MatMul(x[0], x[1], false, false), 0.1), graph.D(3, 8, 2, 2))
	h = b.Softplus(b.ConvTranspose2D(h, x[2], graph.NewConv(4, 2, 1)))
	h = b.Upsample2D(h, graph.Bilinear, 2)
	y := b.Tanh(b.Conv2D(h, x[3], graph.NewConv(3, 1, 1)))
	loss := b.Mean(b.Square(b.Sub(y, x[4])))
	return append([]graph.ID{y, loss}, b.Grad(loss, x[:4]...)...)
}

// logSoftmax takes rows of a table, scores classes, and subtracts the
// logarithm of the sum of exponentials.
func logSoftmax(b *graph.Builder, x []graph.ID) []graph.ID {
	s := b.MatMul(b.Gather(x[0], x[2]), x[1], false, false)
	s = b.Sub(s, b.StopGrad(b.MaxKeep(s, 1)))
	logp := b.Sub(s, b.Log(b.SumKeep(b.Exp(s), 1)))
	loss := b.Neg(b.Mean(b.Sum(b.Mul(logp, x[3]), 1)))
	g := b.Grad(loss, x[0], x[1])
	return append(g, logp, loss, b.Grad(b.Sum(b.Square(g[0])), x[1])[0])
}

// unrolled is three steps of gradient descent on h, with pooling inside, and
// the gradient of the result with respect to the weights.
func unrolled(b *graph.Builder, x []graph.ID) []graph.ID {
	h := x[3]
	for range 3 {
		e := b.Elu(b.Add(b.Conv2D(x[0], x[1], graph.NewConv(3, 1, 1)), b.Conv2D(h, x[2], graph.NewConv(3, 1, 1))), 1)
		inner := b.Add(b.Sum(b.Square(b.AvgPool2D(e, graph.SquareWindow(2, 2, 0)))), b.Scale(b.Sum(b.Square(h)), 0.5))
		h = b.Sub(h, b.Scale(b.Grad(inner, h)[0], 0.1))
	}
	loss := b.Sum(b.Square(h))
	return append([]graph.ID{h, loss}, b.Grad(loss, x[1], x[2])...)
}

// hazards are small graphs where computing in place, too early or once too
// often would show.
func hazards() []Case {
	f := func(name string, build func(b *graph.Builder, x []graph.ID) []graph.ID) Case {
		return Case{Name: name, Args: args(float(3, 5), floatOf(NoKink, 3, 5)), Build: build}
	}
	return []Case{
		f("x before and after its function", func(b *graph.Builder, x []graph.ID) []graph.ID {
			y := b.Exp(x[0])
			return []graph.ID{b.Add(x[0], y), y, b.Mul(x[0], b.Tanh(y))}
		}),
		f("chain with a late use of its start", func(b *graph.Builder, x []graph.ID) []graph.ID {
			h := b.Sin(x[0])
			y := b.Tanh(b.Square(b.Shift(b.Neg(h), 1)))
			return []graph.ID{b.Sub(y, h)}
		}),
		f("both operands die", func(b *graph.Builder, x []graph.ID) []graph.ID {
			return []graph.ID{b.Div(b.Neg(x[0]), b.Scale(x[1], 2)), b.Sub(b.Sin(x[1]), b.Cos(x[0]))}
		}),
		f("an output used again", func(b *graph.Builder, x []graph.ID) []graph.ID {
			y := b.Mul(x[0], x[1])
			z := b.Relu(y)
			return []graph.ID{y, z, b.Neg(y), b.SumKeep(y, 0), b.Transpose(z, 1, 0)}
		}),
		f("views of one value", func(b *graph.Builder, x []graph.ID) []graph.ID {
			y := b.Tanh(x[0])
			flat := b.Reshape(y, graph.D(15))
			return []graph.ID{b.Neg(flat), b.Exp(y), b.Reshape(b.Exp(flat), graph.D(5, 3)), b.StopGrad(y)}
		}),
		f("diamond of reductions", func(b *graph.Builder, x []graph.ID) []graph.ID {
			s, m := b.SumKeep(x[0], 1), b.MaxKeep(x[0], 1)
			y := b.Sub(b.Mul(x[0], s), m)
			return []graph.ID{b.Sum(y), b.Add(y, b.Mul(m, s))}
		}),
		{Name: "a sum of sums, repeated and summed", Args: args(float(2, 17, 3, 3), float(2, 17, 1, 3)), Build: func(b *graph.Builder, x []graph.ID) []graph.ID {
			y := b.Add(b.SumKeep(x[0], 2), b.Tanh(x[1]))
			return []graph.ID{b.SumKeep(b.BroadcastTo(y, graph.D(2, 17, 3, 3)), 2)}
		}},
		{Name: "variances of what is repeated", Args: args(float(5, 3)), Build: func(b *graph.Builder, x []graph.ID) []graph.ID {
			four := graph.D(4, 5, 3)
			squares := func(x graph.ID, axes ...int) graph.ID { return b.Square(b.Sub(x, b.MeanKeep(x, axes...))) }
			tall, row := b.BroadcastTo(b.Tanh(x[0]), four), b.Reshape(b.Sin(x[0]), graph.D(1, 5, 3))
			return []graph.ID{b.SumKeep(squares(tall, 0, 1), 0, 1), b.SumKeep(b.BroadcastTo(squares(row, 0, 1), four), 0, 1)}
		}},
		{Name: "one array repeated in two ways and summed", Args: args(float(8, 16, 1, 64)), Build: func(b *graph.Builder, x []graph.ID) []graph.ID {
			y := b.Tanh(x[0])
			three, five := b.BroadcastTo(y, graph.D(8, 16, 3, 64)), b.BroadcastTo(y, graph.D(8, 16, 5, 64))
			return []graph.ID{b.SumKeep(y, 0, 2), b.SumKeep(three, 0, 2), b.SumKeep(five, 0, 2), b.SumKeep(b.Neg(three), 0, 2), b.SumKeep(b.Sub(five, x[0]), 0, 2)}
		}},
		f("the same twice", func(b *graph.Builder, x []graph.ID) []graph.ID {
			y := b.Exp(x[0])
			return []graph.ID{b.Concat(0, y, x[1], y), b.Mul(y, y), b.Select(b.Step(x[1]), y, y)}
		}),
	}
}

// contrast is Σ E(v) − Σ E(G(z)) + Σ (G(z′) − v)², where E has the convolutions w₁ and
// w₂, and G the transposed one w₃; and its gradients. Both networks are applied to several
// batches by the same weights.
func contrast(b *graph.Builder, x []graph.ID) []graph.ID {
	v, z, other, w := x[0], x[1], x[2], x[3:]
	e := func(v graph.ID) graph.ID {
		h := b.Elu(b.Conv2D(v, w[0], graph.NewConv(3, 1, 1)), 1)
		return b.Sum(b.Square(b.Elu(b.Conv2D(h, w[1], graph.NewConv(4, 2, 1)), 1)))
	}
	g := func(z graph.ID) graph.ID { return b.Tanh(b.ConvTranspose2D(z, w[2], graph.NewConv(4, 2, 1))) }
	loss := b.Add(b.Sub(e(v), e(g(z))), b.Sum(b.Square(b.Sub(g(other), v))))
	return append(b.Grad(loss, append([]graph.ID{z}, w...)...), loss)
}
