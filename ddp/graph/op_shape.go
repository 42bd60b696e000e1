package graph

import "fmt"

// wantInputs checks the number of inputs.
func wantInputs(in []Type, n int) error {
	if len(in) != n {
		return fmt.Errorf("want %d inputs, got %d", n, len(in))
	}
	return nil
}

// Reshape keeps the elements in row-major order and changes the shape.
type Reshape struct{ Shape Shape }

func (o Reshape) String() string { return "reshape" + o.Shape.String() }

func (o Reshape) Infer(in []Type) ([]Type, error) {
	if err := wantInputs(in, 1); err != nil {
		return nil, err
	}
	if in[0].Shape.Len() != o.Shape.Len() {
		return nil, fmt.Errorf("%d elements cannot become %v", in[0].Shape.Len(), o.Shape)
	}
	return []Type{{in[0].DType, o.Shape}}, nil
}

func (o Reshape) VJP(b *Builder, c Call, dout []ID) []ID {
	return []ID{b.Reshape(dout[0], b.Shape(c.In[0]))}
}

// Reshape gives x the shape s. A reshape of a reshape is one; a constant stays a
// constant.
func (b *Builder) Reshape(x ID, s Shape) ID {
	if b.err != nil {
		return 0
	}
	if _, ok := b.Node(x).Op.(Reshape); ok {
		x = b.Node(x).In[0]
	}
	if b.Shape(x) == s {
		return x
	}
	if c, ok := b.Node(x).Op.(Const); ok && c.Type.Shape.Len() == s.Len() {
		return b.apply1(Const{Type{c.Type.DType, s}, c.Bits})
	}
	return b.apply1(Reshape{s}, x)
}

// Broadcast repeats the axes of extent 1 to the extents of Shape:
// y[i₀, i₁, …] = x[j₀, j₁, …], jₖ = iₖ, or 0 where x has extent 1.
type Broadcast struct{ Shape Shape }

func (o Broadcast) String() string { return "broadcast" + o.Shape.String() }

func (o Broadcast) Infer(in []Type) ([]Type, error) {
	if err := wantInputs(in, 1); err != nil {
		return nil, err
	}
	s := in[0].Shape
	if s.Rank() != o.Shape.Rank() {
		return nil, fmt.Errorf("want rank %d", o.Shape.Rank())
	}
	for i := range s.Rank() {
		if s.At(i) != o.Shape.At(i) && s.At(i) != 1 {
			return nil, fmt.Errorf("axis %d has extent %d, not 1 or %d", i, s.At(i), o.Shape.At(i))
		}
	}
	return []Type{{in[0].DType, o.Shape}}, nil
}

func (o Broadcast) VJP(b *Builder, c Call, dout []ID) []ID {
	var axes []int
	s := b.Shape(c.In[0])
	for i := range s.Rank() {
		if s.At(i) != o.Shape.At(i) {
			axes = append(axes, i)
		}
	}
	return []ID{b.SumKeep(dout[0], axes...)}
}

// BroadcastTo aligns x with s at the last axes and repeats it to that shape. A
// constant stays a constant.
func (b *Builder) BroadcastTo(x ID, s Shape) ID {
	if b.err != nil || b.Shape(x) == s {
		return x
	}
	from := b.Shape(x)
	if from.Rank() < s.Rank() {
		lead := fill(s.Rank(), 1)
		for i := range from.Rank() {
			lead = lead.With(s.Rank()-from.Rank()+i, from.At(i))
		}
		x = b.Reshape(x, lead)
	}
	if b.Shape(x) == s {
		return x
	}
	op := Broadcast{s}
	if c, ok := b.Node(x).Op.(Const); ok {
		if _, err := op.Infer([]Type{c.Type}); err == nil {
			return b.apply1(Const{Type{c.Type.DType, s}, c.Bits})
		}
	}
	return b.apply1(op, x)
}

// Transpose permutes the axes: axis i of the result is axis Perm[i] of x.
type Transpose struct{ Perm Dims }

func (o Transpose) String() string { return "transpose" + o.Perm.String() }

func (o Transpose) Infer(in []Type) ([]Type, error) {
	if err := wantInputs(in, 1); err != nil {
		return nil, err
	}
	s := in[0].Shape
	out, seen := s, [MaxRank]bool{}
	if o.Perm.Rank() != s.Rank() {
		return nil, fmt.Errorf("want %d axes, got the permutation %v", s.Rank(), o.Perm)
	}
	for i, p := range o.Perm.Slice() {
		if p < 0 || p >= s.Rank() || seen[p] {
			return nil, fmt.Errorf("%v is not a permutation", o.Perm)
		}
		seen[p] = true
		out = out.With(i, s.At(p))
	}
	return []Type{{in[0].DType, out}}, nil
}

func (o Transpose) VJP(b *Builder, c Call, dout []ID) []ID {
	inv := o.Perm
	for i, p := range o.Perm.Slice() {
		inv = inv.With(p, i)
	}
	return []ID{b.Transpose(dout[0], inv.Slice()...)}
}

// Transpose permutes the axes: axis i of the result is axis perm[i] of x.
func (b *Builder) Transpose(x ID, perm ...int) ID { return b.apply1(Transpose{D(perm...)}, x) }

// Slice takes every Step-th index from Start up to, not including, Limit on
// each axis: y[i] = x[Start + i·Step].
type Slice struct{ Start, Limit, Step Dims }

func (o Slice) String() string {
	return fmt.Sprintf("slice{%v to %v step %v}", o.Start, o.Limit, o.Step)
}

func (o Slice) Infer(in []Type) ([]Type, error) {
	if err := wantInputs(in, 1); err != nil {
		return nil, err
	}
	s := in[0].Shape
	if r := s.Rank(); o.Start.Rank() != r || o.Limit.Rank() != r || o.Step.Rank() != r {
		return nil, fmt.Errorf("want %d axes", r)
	}
	out := s
	for i := range s.Rank() {
		lo, hi, step := o.Start.At(i), o.Limit.At(i), o.Step.At(i)
		if lo < 0 || lo >= hi || hi > s.At(i) || step < 1 {
			return nil, fmt.Errorf("axis %d: [%d:%d:%d] is not inside its %d entries", i, lo, hi, step, s.At(i))
		}
		out = out.With(i, (hi-lo-1)/step+1)
	}
	return []Type{{in[0].DType, out}}, nil
}

func (o Slice) VJP(b *Builder, c Call, dout []ID) []ID {
	in, out := b.Shape(c.In[0]), b.Shape(c.Out[0])
	hi, gap := in, in
	for i := range in.Rank() {
		last := o.Start.At(i) + (out.At(i)-1)*o.Step.At(i)
		hi = hi.With(i, in.At(i)-1-last)
		gap = gap.With(i, o.Step.At(i)-1)
	}
	return []ID{b.apply1(Pad{o.Start, hi, gap}, dout[0])}
}

// Slice takes x[start:limit:step] on one axis.
func (b *Builder) Slice(x ID, axis, start, limit, step int) ID {
	s := b.Shape(x)
	if b.err != nil || axis < 0 || axis >= s.Rank() {
		b.Fail(fmt.Errorf("slice: axis %d of %v", axis, s))
		return 0
	}
	if start == 0 && limit == s.At(axis) && step == 1 {
		return x
	}
	return b.apply1(Slice{fill(s.Rank(), 0).With(axis, start), s.With(axis, limit), fill(s.Rank(), 1).With(axis, step)}, x)
}

// Pad surrounds x with zeros, Lo before and Hi after each axis, and puts Gap
// zeros between neighbours: y[Lo + i·(Gap+1)] = x[i].
type Pad struct{ Lo, Hi, Gap Dims }

func (o Pad) String() string { return fmt.Sprintf("pad{%v, %v, gap %v}", o.Lo, o.Hi, o.Gap) }

func (o Pad) Infer(in []Type) ([]Type, error) {
	if err := wantInputs(in, 1); err != nil {
		return nil, err
	}
	s := in[0].Shape
	if r := s.Rank(); o.Lo.Rank() != r || o.Hi.Rank() != r || o.Gap.Rank() != r {
		return nil, fmt.Errorf("want %d axes", r)
	}
	out := s
	for i := range s.Rank() {
		if o.Lo.At(i) < 0 || o.Hi.At(i) < 0 || o.Gap.At(i) < 0 || s.At(i) < 1 {
			return nil, fmt.Errorf("axis %d: a padding is negative or the axis is empty", i)
		}
		out = out.With(i, o.Lo.At(i)+(s.At(i)-1)*(o.Gap.At(i)+1)+1+o.Hi.At(i))
	}
	return []Type{{in[0].DType, out}}, nil
}

func (o Pad) VJP(b *Builder, c Call, dout []ID) []ID {
	in := b.Shape(c.In[0])
	limit, step := in, in
	for i := range in.Rank() {
		limit = limit.With(i, o.Lo.At(i)+(in.At(i)-1)*(o.Gap.At(i)+1)+1)
		step = step.With(i, o.Gap.At(i)+1)
	}
	return []ID{b.apply1(Slice{o.Lo, limit, step}, dout[0])}
}

// Pad puts lo zeros before and hi zeros after one axis.
func (b *Builder) Pad(x ID, axis, lo, hi int) ID {
	s := b.Shape(x)
	if b.err != nil || axis < 0 || axis >= s.Rank() {
		b.Fail(fmt.Errorf("pad: axis %d of %v", axis, s))
		return 0
	}
	zero := fill(s.Rank(), 0)
	return b.apply1(Pad{zero.With(axis, lo), zero.With(axis, hi), zero}, x)
}

// Concat joins values along an axis; the other extents agree.
type Concat struct{ Axis int }

func (o Concat) String() string { return fmt.Sprintf("concat{axis %d}", o.Axis) }

func (o Concat) Infer(in []Type) ([]Type, error) {
	if len(in) == 0 {
		return nil, fmt.Errorf("want at least one input")
	}
	out := in[0]
	if o.Axis < 0 || o.Axis >= out.Shape.Rank() {
		return nil, fmt.Errorf("axis %d of %v", o.Axis, out)
	}
	for i, t := range in[1:] {
		if t.DType != out.DType || t.Shape.Rank() != out.Shape.Rank() || t.Shape.With(o.Axis, 0) != out.Shape.With(o.Axis, 0) {
			return nil, fmt.Errorf("input %d is %v, which does not fit %v", i+1, t, in[0])
		}
		out.Shape = out.Shape.With(o.Axis, out.Shape.At(o.Axis)+t.Shape.At(o.Axis))
	}
	return []Type{out}, nil
}

func (o Concat) VJP(b *Builder, c Call, dout []ID) []ID {
	din, at := make([]ID, len(c.In)), 0
	for i, x := range c.In {
		n := b.Shape(x).At(o.Axis)
		if b.Shape(x).Len() > 0 { // an empty part has no cotangent
			din[i] = b.Slice(dout[0], o.Axis, at, at+n, 1)
		}
		at += n
	}
	return din
}

// Concat joins values along an axis.
func (b *Builder) Concat(axis int, x ...ID) ID {
	if len(x) == 1 {
		return x[0]
	}
	return b.apply1(Concat{axis}, x...)
}

// Cast converts the element type, rounding to nearest, ties to even. What is narrowed a
// lot may be rounded twice, by way of float32 or float64, and be one unit off next to
// a tie: float64 to bf16, I64 to float32. A float outside the range of an integer type
// becomes an unspecified integer; an integer outside the range of another wraps around.
type Cast struct{ To DType }

func (o Cast) String() string { return fmt.Sprintf("cast{%s}", o.To) }

func (o Cast) Infer(in []Type) ([]Type, error) {
	if err := wantInputs(in, 1); err != nil {
		return nil, err
	}
	return []Type{{o.To, in[0].Shape}}, nil
}

func (o Cast) VJP(b *Builder, c Call, dout []ID) []ID {
	from := b.Type(c.In[0]).DType
	if !from.IsFloat() || !o.To.IsFloat() {
		return []ID{0}
	}
	return []ID{b.Cast(dout[0], from)}
}

// Cast converts the element type, rounding to nearest.
func (b *Builder) Cast(x ID, to DType) ID {
	if b.Type(x).DType == to {
		return x
	}
	return b.apply1(Cast{to}, x)
}

// StopGrad is x, with derivative zero.
type StopGrad struct{}

func (StopGrad) String() string                { return "stopgrad" }
func (StopGrad) VJP(*Builder, Call, []ID) []ID { return []ID{0} }
func (StopGrad) Infer(in []Type) ([]Type, error) {
	return in, wantInputs(in, 1)
}

// StopGrad is x, with derivative zero.
func (b *Builder) StopGrad(x ID) ID { return b.apply1(StopGrad{}, x) }
