package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/graph"
)

// wild grows a random network by convolutions of several geometries, whose results are seen
// in other extents, travel, and are the weights and images of further ones through
// derivatives.
type wild struct {
	graph.Builder
	r                    *rand.Rand
	images, planes, flat []graph.ID // (N,4,4,4), (N,1,4,4), (N,16,1,1)
	weights              []graph.ID // from 4 channels to 4
	lift, head, point    graph.ID   // other weights
	loss                 graph.ID
	travels              int
}

func newWild(r *rand.Rand) *wild {
	w := &wild{r: r}
	typ := func(dims ...int) graph.Type { return graph.T(graph.F64, dims...) }
	for i := range 2 {
		w.weights = append(w.weights, w.Var(fmt.Sprint("w", i), typ(4, 4, 3, 3)))
	}
	w.lift, w.head, w.point = w.Var("lift", typ(4, 1, 3, 3)), w.Var("head", typ(16, 4, 4, 4)), w.Var("point", typ(16, 16, 1, 1))
	for i := range 2 + r.IntN(3) {
		x := w.Var(fmt.Sprint("x", i), typ(2+2*(r.IntN(4)/3), 4, 4, 4))
		if r.IntN(3) > 0 {
			x = w.Tanh(x)
		}
		w.images = append(w.images, x)
	}
	w.planes = []graph.ID{w.Tanh(w.Var("plane", typ(2, 1, 4, 4)))}
	w.flat = []graph.ID{w.Tanh(w.Var("flat", typ(2, 16, 1, 1)))}
	w.loss = w.Full(typ(), 0)
	w.images = append(w.images, w.made(w.Conv2D(w.planes[0], w.lift, same3)))
	w.flat = append(w.flat, w.made(w.Conv2D(w.images[0], w.head, toOne)), w.made(w.Conv2D(w.images[1], w.head, toOne)))
	return w
}

func (w *wild) pick(of []graph.ID) graph.ID { return of[w.r.IntN(len(of))] }

// made is a convolution's result, which may count in the loss, and what becomes of it.
func (w *wild) made(x graph.ID) graph.ID {
	y := x
	switch w.r.IntN(4) {
	case 0:
		y = w.LeakyRelu(x, 0.2)
	case 1:
		y = w.Tanh(w.Add(x, w.Mean(w.pick(w.images))))
	case 2:
		y = w.Tanh(x)
	}
	if w.r.IntN(2) == 0 {
		w.loss = w.Add(w.loss, w.Mean(w.Square(x)))
	}
	return y
}

var (
	toOne   = graph.NewConv(4, 1, 0) // 4×4 pixels become one
	ofPoint = graph.NewConv(1, 1, 0)
)

// grow adds something.
func (w *wild) grow() {
	image := func(x graph.ID) { w.images = append(w.images, x) }
	switch w.r.IntN(14) {
	case 0, 1:
		image(w.made(w.Conv2D(w.pick(w.images), w.pick(w.weights), same3)))
	case 2, 3: // of two by two weights, for which they lie behind each other
		x, y := w.pick(w.images), w.pick(w.images)
		for _, by := range w.weights[:2] {
			image(w.made(w.Conv2D(x, by, same3)))
			image(w.made(w.Conv2D(y, by, same3)))
		}
	case 4:
		image(w.made(w.ConvTranspose2D(w.pick(w.images), w.pick(w.weights), same3)))
	case 5:
		image(w.made(w.Conv2D(w.pick(w.planes), w.lift, same3)))
	case 6:
		w.flat = append(w.flat, w.made(w.Conv2D(w.pick(w.images), w.head, toOne)))
	case 7, 8:
		x := w.pick(w.flat)
		x = w.Reshape(x, graph.D(w.Shape(x).At(0), 1, 4, 4))
		w.planes = append(w.planes, x)
		image(w.made(w.Conv2D(x, w.lift, same3)))
	case 9:
		w.flat = append(w.flat, w.made(w.Conv2D(w.pick(w.flat), w.point, ofPoint)))
	case 10:
		image(w.made(w.ConvTranspose2D(w.pick(w.flat), w.head, toOne)))
	case 11:
		w.travels++
		image(w.AllReduce(collective.Mean, fmt.Sprint("images ", w.travels), w.pick(w.images))[0])
	case 12: // weights after a step
		of := w.pick(w.weights)
		w.weights = append(w.weights, w.Sub(of, w.Scale(w.Grad(w.loss, of)[0], 0.1)))
	case 13:
		image(w.Tanh(w.Grad(w.loss, w.pick(w.images))[0]))
	}
}

// finish has the gradients of the loss, at times of their own squares, assigned or put out.
func (w *wild) finish() (*graph.Graph, error) {
	w.loss = w.Add(w.loss, w.Mean(w.Square(w.pick(w.images))))
	of := []graph.ID{w.weights[0], w.lift, w.head, w.point, w.images[0]}
	g := w.Grad(w.loss, of...)
	if w.r.IntN(3) == 0 {
		for _, x := range g {
			w.loss = w.Add(w.loss, w.Scale(w.Sum(w.Square(x)), 0.1))
		}
		g = w.Grad(w.loss, of...)
	}
	g = w.AllReduce(collective.Mean, "gradients", g...)
	for i, x := range of {
		if i < 4 && w.r.IntN(2) == 0 {
			w.Assign(x, w.Sub(x, w.Scale(g[i], 0.1)))
		} else {
			w.Output(fmt.Sprint("gradient ", i), g[i])
		}
	}
	for i := range 3 {
		w.Output(fmt.Sprint("image ", i), w.pick(w.images))
	}
	w.Output("flat", w.pick(w.flat))
	w.Output("loss", w.loss)
	return w.Build()
}

// TestJoinOfWildNetworks holds plans of random networks to those in which nothing is joined,
// with weights in either order, on one rank and two, with and without rematerialisation.
func TestJoinOfWildNetworks(t *testing.T) {
	fewer := 0
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 77))
		w := newWild(r)
		for range 4 + r.IntN(8) {
			w.grow()
		}
		g, err := w.finish()
		if err != nil {
			t.Fatal(err)
		}
		o := onCPU
		o.World, o.WeightsLast, o.Remat = 1+int(seed%2), seed%3 == 0, seed%5 == 0
		if seed%7 == 0 {
			o.Join = 700
		}
		if fewerSteps(asAlone(t, fmt.Sprint("seed ", seed), g, o, r, 1e-7), g, o) {
			fewer++
		}
	}
	t.Logf("%d of 100 programs have fewer steps", fewer)
	if fewer < 60 {
		t.Errorf("%d of 100 programs have fewer steps, want more", fewer)
	}
}
