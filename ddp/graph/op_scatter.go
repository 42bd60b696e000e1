package graph

import (
	"fmt"

	"ebtrain/collective"
)

// What a vector that is shared out among ranks needs: x of World·n elements is
// World parts of n, the r-th of which is rank r's. These ops run in a world of
// World ranks only; the same graph is right on each of them.

// ReduceScatter is, on rank r, the sum or mean over all ranks of part r of the
// vector x: y[i] = Σ_q x_q[r·n + i]. Its bits are those of AllReduce's where the
// communicator promises so.
type ReduceScatter struct {
	Op    collective.Op // Sum or Mean
	World int
	Label string
}

func (o ReduceScatter) String() string {
	return fmt.Sprintf("reducescatter{%s %d ranks %q}", o.Op, o.World, o.Label)
}

func (o ReduceScatter) Infer(in []Type) ([]Type, error) {
	if o.Op != collective.Sum && o.Op != collective.Mean {
		return nil, fmt.Errorf("want sum or mean")
	}
	return partOf(in, o.World)
}

// VJP gathers the cotangents of all parts: ∂T/∂x_q is the same on every rank q.
func (o ReduceScatter) VJP(b *Builder, _ Call, dout []ID) []ID {
	all := b.AllGather(o.World, o.Label+"'", dout[0])
	if o.Op == collective.Mean {
		all = b.Scale(all, 1/float64(o.World))
	}
	return []ID{all}
}

// AllGather is the vectors of all ranks, one after the other:
// y[r·n + i] = x_r[i].
type AllGather struct {
	World int
	Label string
}

func (o AllGather) String() string { return fmt.Sprintf("allgather{%d ranks %q}", o.World, o.Label) }

func (o AllGather) Infer(in []Type) ([]Type, error) { return wholeOf(in, o.World) }

// VJP adds up what all ranks have for a rank's part.
func (o AllGather) VJP(b *Builder, _ Call, dout []ID) []ID {
	return []ID{b.ReduceScatter(collective.Sum, o.World, o.Label+"'", dout[0])}
}

// Part is, on rank r, part r of the vector x: y[i] = x[r·n + i]. It moves nothing
// between ranks.
type Part struct{ World int }

func (o Part) String() string { return fmt.Sprintf("part{%d ranks}", o.World) }

func (o Part) Infer(in []Type) ([]Type, error) { return partOf(in, o.World) }

func (o Part) VJP(b *Builder, _ Call, dout []ID) []ID { return []ID{b.Placed(o.World, dout[0])} }

// Placed is, on rank r, a vector of World parts whose part r is x and whose others
// are 0. It moves nothing between ranks, and is Part's adjoint.
type Placed struct{ World int }

func (o Placed) String() string { return fmt.Sprintf("placed{%d ranks}", o.World) }

func (o Placed) Infer(in []Type) ([]Type, error) { return wholeOf(in, o.World) }

func (o Placed) VJP(b *Builder, _ Call, dout []ID) []ID { return []ID{b.Part(o.World, dout[0])} }

// partOf is the type of a rank's part of a vector.
func partOf(in []Type, world int) ([]Type, error) {
	if err := wantVector(in, world); err != nil {
		return nil, err
	}
	n := in[0].Shape.Len()
	if n%world != 0 {
		return nil, fmt.Errorf("%d elements are no %d equal parts: pad the vector", n, world)
	}
	return []Type{{in[0].DType, D(n / world)}}, nil
}

// wholeOf is the type of a vector of which each rank has a part.
func wholeOf(in []Type, world int) ([]Type, error) {
	if err := wantVector(in, world); err != nil {
		return nil, err
	}
	return []Type{{in[0].DType, D(in[0].Shape.Len() * world)}}, nil
}

func wantVector(in []Type, world int) error {
	if err := wantInputs(in, 1); err != nil {
		return err
	}
	if world < 1 || !in[0].DType.IsFloat() || in[0].Shape.Rank() != 1 {
		return fmt.Errorf("want a vector of a floating-point type, and at least one rank")
	}
	return nil
}

// ReduceScatter is this rank's part of the vector x, reduced over world ranks.
func (b *Builder) ReduceScatter(op collective.Op, world int, label string, x ID) ID {
	return b.apply1(ReduceScatter{op, world, label}, x)
}

// AllGather is the vectors x of world ranks, one after the other.
func (b *Builder) AllGather(world int, label string, x ID) ID {
	return b.apply1(AllGather{world, label}, x)
}

// Part is this rank's part of the vector x, which world ranks share.
func (b *Builder) Part(world int, x ID) ID { return b.apply1(Part{world}, x) }

// Placed is zeros but for this rank's part, which is x.
func (b *Builder) Placed(world int, x ID) ID { return b.apply1(Placed{world}, x) }

// RanksOf is the number of ranks that op is for, 0 if any.
func RanksOf(op Op) int {
	switch op := op.(type) {
	case ReduceScatter:
		return op.World
	case AllGather:
		return op.World
	case Part:
		return op.World
	case Placed:
		return op.World
	}
	return 0
}

// LabelOf is what a collective calls what it moves, and whether op is one.
func LabelOf(op Op) (label string, is bool) {
	switch op := op.(type) {
	case AllReduce:
		return op.Label, true
	case ReduceScatter:
		return op.Label, true
	case AllGather:
		return op.Label, true
	}
	return "", false
}
