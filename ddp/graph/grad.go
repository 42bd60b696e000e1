package graph

import (
	"fmt"
	"slices"
)

// Grad returns ∂(Σ y)/∂w for each w in wrt, as values of this graph. y is
// usually a scalar. The result can be differentiated again. A w that y does
// not depend on has gradient zero.
func (b *Builder) Grad(y ID, wrt ...ID) []ID {
	if b.wantValues("gradient of", []ID{y}); b.err != nil {
		return make([]ID, len(wrt))
	}
	return b.Pullback([]ID{y}, []ID{b.Ones(b.Type(y))}, wrt...)
}

// wantValues fails unless all ids are values of this graph.
func (b *Builder) wantValues(what string, ids []ID) {
	for _, id := range ids {
		if !b.has(id) {
			b.Fail(fmt.Errorf("%s: not a value of this graph (ID %d)", what, id))
		}
	}
}

// Pullback is reverse-mode differentiation: given cotangents dy of the values
// y, it returns Σ_i (∂y_i/∂w)ᵀ dy_i for each w in wrt. Values of integer type
// have no derivative.
func (b *Builder) Pullback(y, dy []ID, wrt ...ID) []ID {
	if b.err != nil {
		return make([]ID, len(wrt))
	}
	if len(y) != len(dy) {
		b.Fail(fmt.Errorf("pullback: %d values and %d cotangents", len(y), len(dy)))
	}
	b.wantValues("pullback", y)
	b.wantValues("pullback", dy)
	b.wantValues("gradient with respect to", wrt)
	if b.err != nil {
		return make([]ID, len(wrt))
	}
	for i := range y {
		if b.Type(y[i]) != b.Type(dy[i]) {
			b.Fail(fmt.Errorf("pullback: cotangent %d is %v, want %v", i, b.Type(dy[i]), b.Type(y[i])))
			return make([]ID, len(wrt))
		}
	}
	p := pullback{b: b, active: b.dependOn(wrt), cot: make([]ID, len(b.types)), cut: map[ID]pieces{}}
	last := int32(-1)
	for i := range y {
		p.add(y[i], dy[i])
		last = max(last, b.nodeOf[y[i]])
	}
	first := last + 1
	for _, w := range wrt {
		first = min(first, b.nodeOf[w])
	}
	for n := last; n >= first; n-- {
		p.visit(b.nodes[n])
	}
	grads := make([]ID, len(wrt))
	for i, w := range wrt {
		if grads[i] = p.total(w); grads[i] == 0 {
			grads[i] = b.Zeros(b.Type(w))
		}
	}
	return grads
}

// pullback is one traversal.
type pullback struct {
	b      *Builder
	active []bool        // by ID: depends on some w
	cot    []ID          // by ID: cotangent so far, 0 for zero
	cut    map[ID]pieces // by ID: what is to be added to it
	scope  string        // of the node visited last
	primed string        // its scope in the gradient
}

// dependOn marks, by ID, the values that depend on any of wrt.
func (b *Builder) dependOn(wrt []ID) []bool {
	active := make([]bool, len(b.types))
	first := int32(len(b.nodes))
	for _, w := range wrt {
		active[w] = b.types[w].DType.IsFloat()
		first = min(first, b.nodeOf[w])
	}
	for _, n := range b.nodes[first:] {
		for _, in := range n.In {
			if active[in] {
				for _, out := range n.Out {
					active[out] = active[out] || b.types[out].DType.IsFloat()
				}
				break
			}
		}
	}
	return active
}

// add adds d to the cotangent of id. Pieces that follow each other are collected: a
// value that is cut in n parts would be padded n times and added n − 1 times.
func (p *pullback) add(id, d ID) {
	if d == 0 || !p.active[id] {
		return
	}
	if c, ok := p.b.pieceOf(d); ok {
		if p.cut[id], ok = p.cut[id].with(c); ok {
			return
		}
		p.total(id)
		p.cut[id] = pieces{c}
		return
	}
	p.total(id)
	p.accumulate(id, d)
}

// total is the cotangent of id so far, 0 for zero.
func (p *pullback) total(id ID) ID {
	if l := p.cut[id]; len(l) > 0 && p.b.err == nil {
		delete(p.cut, id)
		p.accumulate(id, l.sum(p.b))
	}
	return p.cot[id]
}

func (p *pullback) accumulate(id, d ID) {
	if sum := p.cot[id]; sum != 0 {
		d = p.b.Add(sum, d)
	}
	p.cot[id] = d
}

// visit pushes the cotangents of a node's outputs to its inputs. Nodes are
// visited last to first, so they are complete.
func (p *pullback) visit(n Node) {
	dout, reached := make([]ID, len(n.Out)), false
	for i, out := range n.Out {
		dout[i] = p.total(out)
		reached = reached || dout[i] != 0
	}
	if !reached || p.b.err != nil || !slices.ContainsFunc(n.In, func(id ID) bool { return p.active[id] }) {
		return
	}
	b := p.b
	if p.primed == "" || p.scope != n.Scope {
		p.scope, p.primed = n.Scope, n.Scope+"'"
	}
	saved := b.scope
	b.scope = p.primed
	din := n.Op.VJP(b, Call{n.In, n.Out}, dout)
	b.scope = saved
	for i, d := range din {
		if d != 0 && b.err == nil && b.Type(d) != b.Type(n.In[i]) {
			panic(fmt.Sprintf("graph: VJP of %s: cotangent %d is %v, input is %v", n.Op, i, b.Type(d), b.Type(n.In[i])))
		}
		p.add(n.In[i], d)
	}
}
