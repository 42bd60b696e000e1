package graph

import (
	"fmt"
	"math"
)

// Kind says where a leaf's value comes from.
type Kind uint8

const (
	// Input is given anew at each run.
	Input Kind = iota + 1
	// Var persists between runs and can be assigned: parameters, optimiser
	// moments, running statistics.
	Var
	// Dummy has no value. It stands for a cotangent of which only the linearity
	// matters (Pushforward), and no live node of a built graph depends on one.
	Dummy
)

func (k Kind) String() string { return [...]string{"?", "input", "var", "dummy"}[min(k, Dummy)] }

// Leaf is a value from outside the graph.
type Leaf struct {
	Kind Kind
	Name string
	Type Type
}

func (o Leaf) Infer(in []Type) ([]Type, error) { return []Type{o.Type}, wantInputs(in, 0) }
func (o Leaf) VJP(*Builder, Call, []ID) []ID   { return nil }
func (o Leaf) String() string                  { return fmt.Sprintf("%s %q", o.Kind, o.Name) }

// Input is a value that is given anew at each run. Inputs and variables share
// one set of names.
func (b *Builder) Input(name string, t Type) ID { return b.leaf(Leaf{Input, name, t}) }

// Var is the variable of that name, as it is at the start of a run.
func (b *Builder) Var(name string, t Type) ID { return b.leaf(Leaf{Var, name, t}) }

func (b *Builder) leaf(l Leaf) ID {
	if b.err != nil {
		return 0
	}
	if b.leaves == nil {
		b.leaves = map[string]Leaf{}
	}
	if old, ok := b.leaves[l.Name]; ok && old != l {
		b.Fail(fmt.Errorf("%s %v: the name is taken by %s %v", l, l.Type, old, old.Type))
		return 0
	}
	b.leaves[l.Name] = l
	return b.apply1(l)
}

// Const is a tensor whose elements are all the same number, given by the bits
// of its float64 so that -0 and 0 differ. Integer types hold the nearest
// integer.
type Const struct {
	Type Type
	Bits uint64
}

// Value is the number.
func (o Const) Value() float64 { return math.Float64frombits(o.Bits) }

func (o Const) Infer(in []Type) ([]Type, error) { return []Type{o.Type}, wantInputs(in, 0) }
func (o Const) VJP(*Builder, Call, []ID) []ID   { return nil }
func (o Const) String() string                  { return fmt.Sprintf("const %v", o.Value()) }

// Full is a tensor of the given type filled with v.
func (b *Builder) Full(t Type, v float64) ID {
	return b.apply1(Const{t, math.Float64bits(v)})
}

// Zeros is Full with 0, Ones with 1.
func (b *Builder) Zeros(t Type) ID { return b.Full(t, 0) }
func (b *Builder) Ones(t Type) ID  { return b.Full(t, 1) }

// Iota is the index along an axis: y[..., i, ...] = i.
type Iota struct {
	Type Type
	Axis int
}

func (o Iota) Infer(in []Type) ([]Type, error) {
	if err := wantInputs(in, 0); err != nil {
		return nil, err
	}
	if o.Axis < 0 || o.Axis >= o.Type.Shape.Rank() {
		return nil, fmt.Errorf("axis %d of %v", o.Axis, o.Type)
	}
	return []Type{o.Type}, nil
}
func (o Iota) VJP(*Builder, Call, []ID) []ID { return nil }
func (o Iota) String() string                { return fmt.Sprintf("iota{axis %d}", o.Axis) }

// Iota is the index along an axis of a tensor of type t.
func (b *Builder) Iota(t Type, axis int) ID { return b.apply1(Iota{t, axis}) }
