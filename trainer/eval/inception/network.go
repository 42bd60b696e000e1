package inception

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// network is the graph of Inception-v3 for pictures of any size. Layers have the names
// of the file of weights.
type network struct{}

// Dim is the number of features.
func (network) Dim() int { return dim }

// Features are (n, 2048).
func (network) Features(c *nn.Context, x graph.ID) graph.ID {
	all := Layers(c, Resize(c, x))
	return all[len(all)-1].Y
}

// Logits are (n, 1008), of features, without the bias.
func (network) Logits(c *nn.Context, features graph.ID) graph.ID { return Logits(c, features) }

// Logits are (n, 1008), of features (n, 2048), without the bias.
func Logits(c *nn.Context, features graph.ID) graph.ID {
	return nn.Linear{Name: "fc", In: dim, Out: classes, NoBias: true}.Apply(c, features)
}

// Layer is what a layer makes: (n, channels, h, w), of the last one (n, 2048).
type Layer struct {
	Name string
	Y    graph.ID
}

type layers []Layer

// add keeps a layer, and is what it makes.
func (all *layers) add(l Layer) graph.ID {
	*all = append(*all, l)
	return l.Y
}

// Layers are those of the network, in order, from the first convolution to the features, of
// pictures (n, 3, H, W) as they are: of 299×299, for the published numbers, and of sides
// of at least 75 to look at the network itself. Smaller ones are an error of c's.
func Layers(c *nn.Context, x graph.ID) []Layer {
	b, all := builder{c}, layers{}
	x = all.add(b.first("Conv2d_1a_3x3", x, 32, square(3, 2, 0)))
	x = all.add(b.first("Conv2d_2a_3x3", x, 32, square(3, 1, 0)))
	x = all.add(b.first("Conv2d_2b_3x3", x, 64, square(3, 1, 1)))
	x = all.add(b.halved("pool_1", x))
	x = all.add(b.first("Conv2d_3b_1x1", x, 80, point))
	x = all.add(b.first("Conv2d_4a_3x3", x, 192, square(3, 1, 0)))
	x = all.add(b.halved("pool_2", x))
	x = all.add(b.blockA("Mixed_5b", x, 32))
	x = all.add(b.blockA("Mixed_5c", x, 64))
	x = all.add(b.blockA("Mixed_5d", x, 64))
	x = all.add(b.blockB("Mixed_6a", x))
	x = all.add(b.blockC("Mixed_6b", x, 128))
	x = all.add(b.blockC("Mixed_6c", x, 160))
	x = all.add(b.blockC("Mixed_6d", x, 160))
	x = all.add(b.blockC("Mixed_6e", x, 192))
	x = all.add(b.blockD("Mixed_7a", x))
	x = all.add(b.blockE("Mixed_7b", x, average))
	x = all.add(b.blockE("Mixed_7c", x, largest))
	all.add(Layer{"features", c.Mean(x, 2, 3)})
	return all
}

// Windows of convolutions.
var (
	point  = square(1, 1, 0)
	row    = flat(1, 7)
	column = flat(7, 1)
)

func square(k, stride, pad int) graph.Window { return graph.SquareWindow(k, stride, pad) }

// flat is a window of h×w, with the padding that keeps the size.
func flat(h, w int) graph.Window {
	return graph.Window{KH: h, KW: w, StrideH: 1, StrideW: 1, PadT: h / 2, PadB: h / 2, PadL: w / 2, PadR: w / 2, DilH: 1, DilW: 1}
}

// builder adds layers to a graph.
type builder struct{ *nn.Context }

// first is a convolution before the blocks.
func (b builder) first(name string, x graph.ID, out int, w graph.Window) Layer {
	return Layer{name, b.conv(name, x, out, w)}
}

// halved has the largest of 3×3 neighbours, of every second place.
func (b builder) halved(name string, x graph.ID) Layer {
	return Layer{name, b.MaxPool2D(x, square(3, 2, 0))}
}

// conv is a convolution, with its normalisation in weight and bias, and a ReLU.
func (b builder) conv(name string, x graph.ID, out int, w graph.Window) (y graph.ID) {
	b.Scope(name, func() {
		if b.Err() != nil {
			return
		}
		in := b.Shape(x).At(1)
		fan := in * w.KH * w.KW
		weight := b.Weight("weight", graph.D(out, in, w.KH, w.KW), nn.FanIn(fan))
		y = b.Conv2D(x, weight, graph.Conv{Window: w, Groups: 1})
		y = b.Relu(b.Add(y, b.Reshape(b.Weight("bias", graph.D(out), nn.FanIn(fan)), graph.D(1, out, 1, 1))))
	})
	return y
}

// average is the mean of 3×3 neighbours, of those that are there.
func average(c *nn.Context, x graph.ID) graph.ID {
	if c.Err() != nil {
		return x
	}
	w, s := graph.SquareWindow(3, 1, 1), c.Shape(x)
	count := c.AvgPool2D(c.Ones(graph.T(c.Type(x).DType, 1, 1, s.At(2), s.At(3))), w)
	return c.Div(c.AvgPool2D(x, w), count)
}

// largest is the largest of 3×3 neighbours.
func largest(c *nn.Context, x graph.ID) graph.ID {
	return c.MaxPool2D(x, graph.SquareWindow(3, 1, 1))
}

// blockA has 3×3 and 5×5 windows, and as many as pooled channels of a pool.
func (b builder) blockA(name string, x graph.ID, pooled int) (l Layer) {
	b.Scope(name, func() {
		one := b.conv("branch1x1", x, 64, point)
		five := b.conv("branch5x5_2", b.conv("branch5x5_1", x, 48, point), 64, square(5, 1, 2))
		three := b.conv("branch3x3dbl_2", b.conv("branch3x3dbl_1", x, 64, point), 96, square(3, 1, 1))
		three = b.conv("branch3x3dbl_3", three, 96, square(3, 1, 1))
		l = Layer{name, b.Concat(1, one, five, three, b.conv("branch_pool", average(b.Context, x), pooled, point))}
	})
	return l
}

// blockB halves the sides.
func (b builder) blockB(name string, x graph.ID) (l Layer) {
	b.Scope(name, func() {
		three := b.conv("branch3x3", x, 384, square(3, 2, 0))
		double := b.conv("branch3x3dbl_2", b.conv("branch3x3dbl_1", x, 64, point), 96, square(3, 1, 1))
		double = b.conv("branch3x3dbl_3", double, 96, square(3, 2, 0))
		l = Layer{name, b.Concat(1, three, double, b.MaxPool2D(x, graph.SquareWindow(3, 2, 0)))}
	})
	return l
}

// blockC has rows and columns of seven, of so many channels.
func (b builder) blockC(name string, x graph.ID, width int) (l Layer) {
	b.Scope(name, func() {
		one := b.conv("branch1x1", x, 192, point)
		seven := b.conv("branch7x7_2", b.conv("branch7x7_1", x, width, point), width, row)
		seven = b.conv("branch7x7_3", seven, 192, column)
		double := b.conv("branch7x7dbl_2", b.conv("branch7x7dbl_1", x, width, point), width, column)
		double = b.conv("branch7x7dbl_4", b.conv("branch7x7dbl_3", double, width, row), width, column)
		double = b.conv("branch7x7dbl_5", double, 192, row)
		l = Layer{name, b.Concat(1, one, seven, double, b.conv("branch_pool", average(b.Context, x), 192, point))}
	})
	return l
}

// blockD halves the sides again.
func (b builder) blockD(name string, x graph.ID) (l Layer) {
	b.Scope(name, func() {
		three := b.conv("branch3x3_2", b.conv("branch3x3_1", x, 192, point), 320, square(3, 2, 0))
		seven := b.conv("branch7x7x3_2", b.conv("branch7x7x3_1", x, 192, point), 192, row)
		seven = b.conv("branch7x7x3_4", b.conv("branch7x7x3_3", seven, 192, column), 192, square(3, 2, 0))
		l = Layer{name, b.Concat(1, three, seven, b.MaxPool2D(x, graph.SquareWindow(3, 2, 0)))}
	})
	return l
}

// blockE has rows and columns of three beside each other.
func (b builder) blockE(name string, x graph.ID, pool func(*nn.Context, graph.ID) graph.ID) (l Layer) {
	b.Scope(name, func() {
		one := b.conv("branch1x1", x, 320, point)
		three := b.cross("branch3x3_2", b.conv("branch3x3_1", x, 384, point))
		double := b.conv("branch3x3dbl_2", b.conv("branch3x3dbl_1", x, 448, point), 384, square(3, 1, 1))
		l = Layer{name, b.Concat(1, one, three, b.cross("branch3x3dbl_3", double), b.conv("branch_pool", pool(b.Context, x), 192, point))}
	})
	return l
}

// cross is a row of three beside a column of three.
func (b builder) cross(name string, x graph.ID) graph.ID {
	return b.Concat(1, b.conv(name+"a", x, 384, flat(1, 3)), b.conv(name+"b", x, 384, flat(3, 1)))
}
