package graph

import (
	"fmt"

	"ebtrain/collective"
)

// AllReduce replaces each of its inputs by its sum or mean over all ranks. All
// inputs have one element type and travel together, as one flat buffer. It is
// linear and self-adjoint (see "Differentiation across ranks"). Label says
// what is reduced, for people: "generator/bucket 3".
type AllReduce struct {
	Op    collective.Op // Sum or Mean
	Label string
}

func (o AllReduce) String() string { return fmt.Sprintf("allreduce{%s %q}", o.Op, o.Label) }

func (o AllReduce) Infer(in []Type) ([]Type, error) {
	if len(in) == 0 || (o.Op != collective.Sum && o.Op != collective.Mean) {
		return nil, fmt.Errorf("want at least one input, and sum or mean")
	}
	for i, t := range in {
		if t.DType != in[0].DType || !t.DType.IsFloat() {
			return nil, fmt.Errorf("input %d is %v, want one floating-point type", i, t)
		}
	}
	return append([]Type(nil), in...), nil
}

// VJP reduces all cotangents, zeros included, so that every rank runs the same
// collectives whatever it needs of them.
func (o AllReduce) VJP(b *Builder, c Call, dout []ID) []ID {
	for i, d := range dout {
		if d == 0 {
			dout[i] = b.Zeros(b.Type(c.Out[i]))
		}
	}
	return b.Apply(AllReduce{o.Op, o.Label + "'"}, dout...)
}

// AllReduce reduces the values xs over all ranks as one flat buffer. After an
// error its results are all 0.
func (b *Builder) AllReduce(op collective.Op, label string, xs ...ID) []ID {
	all := make([]ID, len(xs))
	copy(all, b.Apply(AllReduce{op, label}, xs...))
	return all
}
