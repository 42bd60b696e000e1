package graph

import "fmt"

// Pushforward is forward-mode differentiation: the derivative of y along the
// direction dx of x, (∂y/∂x)·dx, of y's type. dx has x's type. The result can
// be differentiated again, in x and in dx.
//
// It takes two pullbacks. The first makes Jᵀu for a dummy u of y's type; that
// is linear in u, so the second, of Jᵀu with cotangent dx with respect to u,
// makes J·dx, in which u is no more. The graph keeps the nodes of the first as
// dead code; what is live costs about what y costs.
//
// Across ranks it is the derivative when every rank moves its own x along its
// own dx.
func (b *Builder) Pushforward(y, x, dx ID) ID {
	b.wantValues("pushforward of", []ID{y})
	b.wantValues("pushforward along", []ID{x, dx})
	b.wantDirections("pushforward", []ID{x}, []ID{dx})
	if b.err != nil {
		return 0
	}
	u := b.dummy(b.Type(y))
	jtu := b.Pullback([]ID{y}, []ID{u}, x)
	return b.Pullback(jtu, []ID{dx}, u)[0]
}

// dummy is the value of type t that stands where any would do. There is one of
// each type: no result holds it, so they cannot meet.
func (b *Builder) dummy(t Type) ID {
	b.dummies = true
	return b.leaf(Leaf{Dummy, fmt.Sprintf("dummy %v", t), t})
}

// HVP is the product of the Hessian of Σ y with the directions dxs of xs: for
// each x_i, Σ_j (∂²y/∂x_i∂x_j)·dx_j. y is usually a scalar. The directions have
// the types of xs, and count as constants here even where they depend on xs.
// The result can be differentiated again, in xs and in dxs.
//
// It is the pullback of the gradient with cotangents dxs, as the Hessian is its
// own transpose. Where y holds a StopGrad the gradient may not be one of any
// function, and the product is that of the transpose; Pushforward of Grad gives
// the other.
func (b *Builder) HVP(y ID, xs, dxs []ID) []ID {
	b.wantValues("hessian-vector product of", []ID{y})
	b.wantValues("hessian-vector product along", append(xs[:len(xs):len(xs)], dxs...))
	b.wantDirections("hessian-vector product", xs, dxs)
	if b.err != nil {
		return make([]ID, len(xs))
	}
	return b.Pullback(b.Grad(y, xs...), dxs, xs...)
}

// wantDirections fails unless there is a direction of each value's type.
func (b *Builder) wantDirections(what string, xs, dxs []ID) {
	if len(xs) != len(dxs) {
		b.Fail(fmt.Errorf("%s: %d values and %d directions", what, len(xs), len(dxs)))
		return
	}
	for i := range xs {
		if b.Type(xs[i]) != b.Type(dxs[i]) {
			b.Fail(fmt.Errorf("%s: direction %d is %v, want %v", what, i, b.Type(dxs[i]), b.Type(xs[i])))
		}
	}
}
