package graph

import "testing"

func TestSmoke(t *testing.T) {
	var b Builder
	x := b.Input("x", T(F32, 2, 3, 8, 8))
	w := b.Var("w", T(F32, 4, 3, 3, 3))
	y := b.Sum(b.Square(b.Elu(b.Conv2D(x, w, NewConv(3, 1, 1)), 1)))
	g := b.Grad(y, x)[0]
	l := b.Sum(b.Square(g))
	gw := b.Grad(l, w)[0]
	gww := b.Grad(b.Sum(b.Square(gw)), w)[0]
	b.Output("gww", gww)
	gr, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	gr.Dump(t.Output())
}
