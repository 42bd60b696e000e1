package randomgraph

import "ebtrain/ddp/graph"

// product multiplies matrices, transposed as needed.
func (g *grower) product() {
	b := g.b
	x := g.matrix(g.real())
	for range 8 {
		y := g.any()
		if b.Type(y).DType != b.Type(x).DType {
			continue
		}
		y = g.matrix(y)
		for k := range 4 {
			if z := g.apply(graph.MatMul{TransX: k&1 == 1, TransY: k&2 == 2}, x, y); z != 0 {
				g.put(g.tame(z), false)
				return
			}
		}
	}
	g.put(g.tame(g.apply(graph.MatMul{TransY: true}, x, x)), false)
}

// matrix is x with two axes.
func (g *grower) matrix(x graph.ID) graph.ID {
	s := g.b.Shape(x)
	if s.Rank() == 2 {
		return x
	}
	rows := 1
	for _, d := range s.Slice()[:s.Rank()/2] {
		rows *= d
	}
	if s.Len() == 0 {
		return g.b.Reshape(x, graph.D(0, 3))
	}
	return g.b.Reshape(x, graph.D(rows, s.Len()/rows))
}

// images is a value with four axes, whose planes are not empty, or 0.
func (g *grower) images() graph.ID {
	for range 10 {
		x := g.late()
		if s := g.b.Shape(x); s.Rank() == 4 && s.At(2)*s.At(3) > 0 && g.b.Type(x).DType == g.float {
			return x
		}
	}
	return 0
}

// window is a random one.
func (g *grower) window() graph.Window {
	k := func() int { return 1 + g.n(4) }
	w := graph.Window{KH: k(), KW: k(), StrideH: 1 + g.n(3), StrideW: 1 + g.n(3), PadT: g.n(3), PadB: g.n(3), PadL: g.n(3), PadR: g.n(3), DilH: 1, DilW: 1}
	if g.n(2) == 0 { // a usual one
		w = graph.SquareWindow(pick(g.Choices, 1, 2, 3, 3, 4), 1+g.n(2), g.n(2))
	}
	if g.one(4) {
		w.DilH, w.DilW = 1+g.n(2), 1+g.n(2)
	}
	return w
}

func (g *grower) convolve() {
	x := g.images()
	if x == 0 {
		return
	}
	conv := graph.Conv{Window: g.window(), Groups: 1}
	s := g.b.Shape(x)
	if c := s.At(1); g.one(3) {
		conv.Groups = pick(g.Choices, 2, 3, c)
	}
	if conv.Groups == 0 || s.At(1)%conv.Groups != 0 {
		conv.Groups = 1
	}
	o := conv.Groups * (1 + g.n(4))
	var w graph.ID
	switch g.n(3) {
	case 0:
		w = g.weight(graph.D(o, s.At(1)/conv.Groups, conv.KH, conv.KW))
		g.put(g.tame(g.apply(graph.Conv2D{Conv: conv}, x, w)), false)
	case 1: // the gradient of an image: x is that of the result
		if s.At(1)%conv.Groups == 0 {
			w = g.weight(graph.D(s.At(1), 1+g.n(3), conv.KH, conv.KW))
			h, wd := unpooled(conv.Window, s.At(2), s.At(3))
			g.put(g.tame(g.apply(graph.Conv2DGradX{Conv: conv, H: h, W: wd}, w, x)), false)
		}
	default:
		if oh, ow := conv.Out(s.At(2), s.At(3)); oh > 0 && ow > 0 {
			dy := g.weight(graph.D(s.At(0), o, oh, ow))
			g.put(g.tame(g.apply(graph.Conv2DGradW{Conv: conv}, x, dy)), false)
		}
	}
}

// unpooled is an image of which w makes h×wd results.
func unpooled(w graph.Window, h, wd int) (int, int) {
	return (h-1)*w.StrideH + w.DilH*(w.KH-1) + 1 - w.PadT - w.PadB, (wd-1)*w.StrideW + w.DilW*(w.KW-1) + 1 - w.PadL - w.PadR
}

// weight is a new variable.
func (g *grower) weight(s graph.Shape) graph.ID {
	g.leaf++
	if s.Len() > g.most {
		return 0
	}
	id := g.b.Var("w"+itoa(g.leaf), graph.Type{DType: g.float, Shape: s})
	g.put(id, true)
	return id
}

func (g *grower) pooling() {
	x := g.images()
	if x == 0 {
		return
	}
	s, w := g.b.Shape(x), g.window()
	switch k := g.n(4); {
	case k == 0:
		h, wd := unpooled(w, s.At(2), s.At(3))
		g.put(g.tame(g.apply(graph.SumUnpool2D{Window: w, H: h, W: wd}, x)), false)
	case k == 1 && g.kinks:
		w.DilH, w.DilW = 1, 1
		y := g.apply(graph.MaxPool2D{Window: w}, x)
		if y == 0 {
			return
		}
		g.jumps = g.jumps || !g.exact[x]
		g.put(y, g.exact[x])
		if g.exact[x] {
			g.put(g.apply(graph.PlaneScatter{H: s.At(2), W: s.At(3)}, g.b.Node(y).Out...), false)
		}
	default:
		g.put(g.tame(g.apply(graph.SumPool2D{Window: w}, x)), false)
	}
}

func (g *grower) resample() {
	x := g.images()
	if x == 0 {
		return
	}
	up := graph.Upsample2D{Mode: pick(g.Choices, graph.Nearest, graph.Bilinear), Scale: 1 + g.n(3)}
	if g.n(2) == 0 {
		g.put(g.tame(g.apply(graph.Upsample2DT(up), x)), false)
		return
	}
	g.put(g.apply(up, x), false)
}
