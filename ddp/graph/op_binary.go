package graph

import (
	"fmt"
	"math"
)

// BinaryFn is a function of two numbers.
type BinaryFn uint8

const (
	Add     BinaryFn = iota + 1 // x + y
	Sub                         // x − y
	Mul                         // x · y
	Div                         // x / y
	Max                         // max(x, y), NaN if either is; +0 is greater than −0
	Min                         // min(x, y), NaN if either is; −0 is less than +0
	Greater                     // x > y, 0 or 1
	Equal                       // x = y, 0 or 1
	numBinary
)

// NumBinaryFn bounds the valid BinaryFn: 1 ≤ fn < NumBinaryFn.
const NumBinaryFn = numBinary

var binaryNames = [numBinary]string{
	Add: "add", Sub: "sub", Mul: "mul", Div: "div", Max: "max", Min: "min", Greater: "greater", Equal: "equal",
}

func (f BinaryFn) String() string {
	if f == 0 || f >= numBinary {
		return fmt.Sprintf("BinaryFn(%d)", uint8(f))
	}
	return binaryNames[f]
}

// commutes says whether fn(x, y) = fn(y, x).
func (f BinaryFn) commutes() bool {
	return f == Add || f == Mul || f == Max || f == Min || f == Equal
}

// Binary applies a function to pairs of elements: z[i] = fn(x[i], y[i]). Both
// inputs have the same type. Integers wrap around; they have no Div.
type Binary struct{ Fn BinaryFn }

func (o Binary) String() string { return o.Fn.String() }

func (o Binary) Infer(in []Type) ([]Type, error) {
	if err := wantInputs(in, 2); err != nil {
		return nil, err
	}
	if o.Fn == 0 || o.Fn >= numBinary {
		return nil, fmt.Errorf("no binary function has number %d", o.Fn)
	}
	if in[0] != in[1] {
		return nil, fmt.Errorf("want two values of the same type")
	}
	if o.Fn == Div && !in[0].DType.IsFloat() {
		return nil, fmt.Errorf("want a floating-point type")
	}
	return in[:1], nil
}

func (o Binary) VJP(b *Builder, c Call, dout []ID) []ID {
	x, y, d := c.In[0], c.In[1], dout[0]
	switch o.Fn {
	case Add:
		return []ID{d, d}
	case Sub:
		return []ID{d, b.Neg(d)}
	case Mul:
		return []ID{b.Mul(d, y), b.Mul(d, x)}
	case Div:
		dx := b.Div(d, y)
		return []ID{dx, b.Neg(b.Mul(dx, c.Out[0]))}
	case Max, Min: // a tie is shared equally, so that max(x, x) has derivative 1
		wins := b.Greater(x, y)
		if o.Fn == Min {
			wins = b.Greater(y, x)
		}
		wx := b.Add(wins, b.Scale(b.Equal(x, y), 0.5))
		return []ID{b.Mul(d, wx), b.Mul(d, b.Shift(b.Neg(wx), 1))}
	}
	return []ID{0, 0} // Greater, Equal are constant by parts
}

// binary broadcasts both operands to a common shape and applies fn. Operands
// of commutative functions are ordered, so that x+y and y+x are one node.
func (b *Builder) binary(fn BinaryFn, x, y ID) ID {
	if b.wantValues(fn.String(), []ID{x, y}); b.err != nil {
		return 0
	}
	if b.Shape(x) != b.Shape(y) {
		s, err := broadcastShape(b.Shape(x), b.Shape(y))
		if err != nil {
			b.Fail(fmt.Errorf("%s: %w", fn, err))
			return 0
		}
		x, y = b.BroadcastTo(x, s), b.BroadcastTo(y, s)
	}
	if fn.commutes() && x > y {
		x, y = y, x
	}
	return b.apply1(Binary{fn}, x, y)
}

// broadcastShape aligns shapes at their last axes; an axis that is missing or
// of extent 1 takes the extent of the other.
func broadcastShape(x, y Shape) (Shape, error) {
	s := fill(max(x.Rank(), y.Rank()), 1)
	for i := 1; i <= s.Rank(); i++ {
		dx, dy := 1, 1
		if i <= x.Rank() {
			dx = x.At(x.Rank() - i)
		}
		if i <= y.Rank() {
			dy = y.At(y.Rank() - i)
		}
		if dx != dy && dx != 1 && dy != 1 {
			return s, fmt.Errorf("shapes %v and %v do not fit together", x, y)
		}
		d := dx
		if dx == 1 {
			d = dy
		}
		s = s.With(s.Rank()-i, d)
	}
	return s, nil
}

// The functions of BinaryFn, by name. Shapes are aligned at their last axes
// and broadcast.

func (b *Builder) Sub(x, y ID) ID     { return b.binary(Sub, x, y) }
func (b *Builder) Max(x, y ID) ID     { return b.binary(Max, x, y) }
func (b *Builder) Min(x, y ID) ID     { return b.binary(Min, x, y) }
func (b *Builder) Greater(x, y ID) ID { return b.binary(Greater, x, y) }
func (b *Builder) Equal(x, y ID) ID   { return b.binary(Equal, x, y) }
func (b *Builder) Div(x, y ID) ID     { return b.binary(Div, x, y) }

// Add is x + y; adding the constant 0 of the same type gives the other operand.
func (b *Builder) Add(x, y ID) ID {
	if b.err == nil && b.Type(x) == b.Type(y) {
		if b.isConst(x, 0) {
			return y
		}
		if b.isConst(y, 0) {
			return x
		}
	}
	return b.binary(Add, x, y)
}

// Mul is x · y; multiplying by a constant becomes Scale, unless that is NaN, which is no
// parameter.
func (b *Builder) Mul(x, y ID) ID {
	if b.err == nil && b.Type(x) == b.Type(y) && b.Type(x).DType.IsFloat() {
		if a, ok := b.number(x); ok {
			return b.Scale(y, a)
		}
		if a, ok := b.number(y); ok {
			return b.Scale(x, a)
		}
	}
	return b.binary(Mul, x, y)
}

// number is the number that x is everywhere, if it is a constant and not NaN.
func (b *Builder) number(x ID) (a float64, ok bool) {
	c, ok := b.Node(x).Op.(Const)
	return c.Value(), ok && !math.IsNaN(c.Value())
}

// isConst says whether x is v everywhere, as far as it is known; 0 is also −0.
func (b *Builder) isConst(x ID, v float64) bool {
	c, ok := b.Node(x).Op.(Const)
	return ok && c.Value() == v
}

// Select takes x where cond ≠ 0 and y elsewhere. All three have the same type,
// and a value that is not taken never matters, not even if it is NaN.
type Select struct{}

func (o Select) String() string { return "select" }

func (o Select) Infer(in []Type) ([]Type, error) {
	if err := wantInputs(in, 3); err != nil {
		return nil, err
	}
	if in[0] != in[1] || in[1] != in[2] {
		return nil, fmt.Errorf("want three values of the same type")
	}
	return in[:1], nil
}

func (o Select) VJP(b *Builder, c Call, dout []ID) []ID {
	zero := b.Zeros(b.Type(dout[0]))
	return []ID{0, b.Select(c.In[0], dout[0], zero), b.Select(c.In[0], zero, dout[0])}
}

// Select takes x where cond ≠ 0 and y elsewhere.
func (b *Builder) Select(cond, x, y ID) ID { return b.apply1(Select{}, cond, x, y) }
