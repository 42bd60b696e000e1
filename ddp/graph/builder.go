package graph

import (
	"fmt"
	"strings"
)

// Builder makes a Graph. The zero Builder is ready for use.
type Builder struct {
	nodes   []Node
	types   []Type        // by ID; types[0] is unused
	nodeOf  []int32       // by ID: the node whose output it is
	made    map[key]int32 // node by identity
	leaves  map[string]Leaf
	outputs []Output
	assigns []Assignment
	scope   string // "energy/conv3"
	dummies bool   // there are leaves of kind Dummy
	err     error

	inTypes []Type // Apply's memory for the types of inputs
	spare   []ID   // memory for the lists of nodes
}

// key is the identity of a node: the op and its inputs, exactly.
type key struct {
	op   Op
	in   [3]ID  // the first ones, 0 where there are fewer
	n    int32  // of all
	more string // those beyond the third, four bytes each
}

func keyOf(op Op, in []ID) key {
	k := key{op: op, n: int32(len(in))}
	if copy(k.in[:], in) < len(in) {
		var b strings.Builder
		for _, id := range in[len(k.in):] {
			b.Write([]byte{byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24)})
		}
		k.more = b.String()
	}
	return k
}

// Scope runs f with name added to the scope that errors and dumps show.
func (b *Builder) Scope(name string, f func()) {
	outer := b.scope
	defer func() { b.scope = outer }()
	if outer != "" {
		name = outer + "/" + name
	}
	b.scope = name
	f()
}

// Err is the first error so far, or nil.
func (b *Builder) Err() error { return b.err }

// Fail records an error at the current scope, unless there is one already.
func (b *Builder) Fail(err error) {
	if b.err != nil {
		return
	}
	if b.scope != "" {
		err = fmt.Errorf("%s: %w", b.scope, err)
	}
	b.err = err
}

// Type is the type of a value; the zero Type if id is 0.
func (b *Builder) Type(id ID) Type {
	if !b.has(id) {
		return Type{}
	}
	return b.types[id]
}

// Shape is the shape of a value.
func (b *Builder) Shape(id ID) Shape { return b.Type(id).Shape }

// Node is the node that makes the value id; the zero Node if there is none.
func (b *Builder) Node(id ID) Node {
	if !b.has(id) {
		return Node{}
	}
	return b.nodes[b.nodeOf[id]]
}

// NumNodes is the number of nodes made so far.
func (b *Builder) NumNodes() int { return len(b.nodes) }

// has says whether id is a value of this graph.
func (b *Builder) has(id ID) bool { return id > 0 && int(id) < len(b.types) }

// Apply adds op(in...) and returns its outputs, or those of the same
// computation made before; the caller must not change the list. After an error
// it returns nil.
func (b *Builder) Apply(op Op, in ...ID) []ID {
	if b.err != nil {
		return nil
	}
	types := b.inTypes[:0]
	for i, id := range in {
		if !b.has(id) {
			b.Fail(fmt.Errorf("%s: input %d is not a value of this graph (ID %d)", op, i, id))
			return nil
		}
		types = append(types, b.types[id])
	}
	b.inTypes = types
	k := keyOf(op, in)
	if n, ok := b.made[k]; ok {
		return b.nodes[n].Out
	}
	outTypes, err := op.Infer(types)
	for i := 0; err == nil && i < len(outTypes); i++ {
		err = outTypes[i].check()
	}
	if err != nil {
		b.Fail(fmt.Errorf("%s%v: %w", op, types, err))
		return nil
	}
	return b.add(k, op, in, outTypes)
}

// add makes the node of identity k, whose outputs are of the given types.
func (b *Builder) add(k key, op Op, in []ID, outTypes []Type) []ID {
	if b.made == nil {
		b.made = map[key]int32{}
		b.types, b.nodeOf = make([]Type, 1), make([]int32, 1)
	}
	out := b.list(len(outTypes))
	for i, t := range outTypes {
		out[i] = ID(len(b.types))
		b.types = append(b.types, t)
		b.nodeOf = append(b.nodeOf, int32(len(b.nodes)))
	}
	own := b.list(len(in))
	copy(own, in)
	b.made[k] = int32(len(b.nodes))
	b.nodes = append(b.nodes, Node{Op: op, In: own, Out: out, Scope: b.scope})
	return out
}

// list is n zeros of memory that is never used again for anything else.
func (b *Builder) list(n int) []ID {
	if n > len(b.spare) {
		b.spare = make([]ID, n+512)
	}
	l := b.spare[:n:n]
	b.spare = b.spare[n:]
	return l
}

// apply1 is Apply for ops with one output.
func (b *Builder) apply1(op Op, in ...ID) ID {
	out := b.Apply(op, in...)
	if out == nil {
		return 0
	}
	return out[0]
}

// Output names a value that a run of the graph returns.
type Output struct {
	Name string
	ID   ID
}

// Assignment is a variable that takes a new value at the end of a run.
type Assignment struct {
	Var, Value ID
}

// Output declares a named result. Names are unique.
func (b *Builder) Output(name string, id ID) {
	if !b.has(id) {
		b.Fail(fmt.Errorf("output %q: not a value of this graph (ID %d)", name, id))
	}
	for _, o := range b.outputs {
		if o.Name == name {
			b.Fail(fmt.Errorf("output %q is declared twice", name))
		}
	}
	b.outputs = append(b.outputs, Output{name, id})
}

// Assign gives the variable v the value x at the end of a run, after every
// read. A variable is assigned at most once.
func (b *Builder) Assign(v, x ID) {
	if b.err != nil {
		return
	}
	leaf, ok := b.Node(v).Op.(Leaf)
	switch {
	case !b.has(v):
		b.Fail(fmt.Errorf("assign: not a value of this graph (ID %d)", v))
	case !ok || leaf.Kind != Var:
		b.Fail(fmt.Errorf("assign: %s is not a variable", b.Node(v).Op))
	case b.Type(x) != leaf.Type:
		b.Fail(fmt.Errorf("assign %q: want %v, got %v", leaf.Name, leaf.Type, b.Type(x)))
	}
	for _, a := range b.assigns {
		if a.Var == v {
			b.Fail(fmt.Errorf("assign %q: assigned twice", leaf.Name))
		}
	}
	b.assigns = append(b.assigns, Assignment{v, x})
}

// Build returns the graph made so far, or the first error.
func (b *Builder) Build() (*Graph, error) {
	if b.err != nil {
		return nil, b.err
	}
	g := &Graph{
		nodes:   b.nodes[:len(b.nodes):len(b.nodes)],
		types:   b.types[:len(b.types):len(b.types)],
		nodeOf:  b.nodeOf[:len(b.nodeOf):len(b.nodeOf)],
		outputs: append([]Output(nil), b.outputs...),
		assigns: append([]Assignment(nil), b.assigns...),
	}
	if err := b.checkDummies(g); err != nil {
		return nil, err
	}
	return g, nil
}

// checkDummies says which dummy a live node of g depends on.
func (b *Builder) checkDummies(g *Graph) error {
	if !b.dummies {
		return nil
	}
	for i, live := range g.Live() {
		if leaf, ok := g.nodes[i].Op.(Leaf); ok && live && leaf.Kind == Dummy {
			return fmt.Errorf("a result depends on %s: the derivative of some op is not linear in the cotangent of its output", leaf)
		}
	}
	return nil
}
