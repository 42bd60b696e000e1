package graph

import (
	"fmt"
	"math"
)

// UnaryFn is a function of one number.
type UnaryFn uint8

const (
	Neg       UnaryFn = iota + 1 // −x
	Abs                          // |x|
	Sign                         // −1, 0 or 1
	Step                         // x > 0
	Relu                         // max(x, 0)
	LeakyRelu                    // x > 0 ? x : a·x
	LeakyStep                    // x > 0 ? 1 : a
	Elu                          // x > 0 ? x : a(eˣ−1), which is −0 at −0 if a > 0
	EluD                         // first derivative of Elu: x > 0 ? 1 : a·eˣ
	EluDD                        // every later derivative: x > 0 ? 0 : a·eˣ
	Softplus                     // log(1 + eˣ)
	Sigmoid                      // 1 / (1 + e⁻ˣ)
	Tanh                         // tanh x
	Exp                          // eˣ
	Log                          // ln x
	Sqrt                         // √x
	Square                       // x²
	Recip                        // 1/x
	PowC                         // xᵃ
	Scale                        // a·x
	Shift                        // x + a
	Sin                          // sin x
	Cos                          // cos x
	Erf                          // the error function
	numUnary
)

var unaryNames = [numUnary]string{
	Neg: "neg", Abs: "abs", Sign: "sign", Step: "step", Relu: "relu", LeakyRelu: "leakyrelu", LeakyStep: "leakystep",
	Elu: "elu", EluD: "elu'", EluDD: "elu''", Softplus: "softplus", Sigmoid: "sigmoid", Tanh: "tanh", Exp: "exp",
	Log: "log", Sqrt: "sqrt", Square: "square", Recip: "recip", PowC: "pow", Scale: "scale", Shift: "shift",
	Sin: "sin", Cos: "cos", Erf: "erf",
}

// NumUnaryFn bounds the valid UnaryFn: 1 ≤ fn < NumUnaryFn.
const NumUnaryFn = numUnary

// HasParam says whether the function has a parameter a.
func (f UnaryFn) HasParam() bool {
	switch f {
	case LeakyRelu, LeakyStep, Elu, EluD, EluDD, PowC, Scale, Shift:
		return true
	}
	return false
}

func (f UnaryFn) String() string {
	if f == 0 || f >= numUnary {
		return fmt.Sprintf("UnaryFn(%d)", uint8(f))
	}
	return unaryNames[f]
}

// Unary applies a function to each element: y[i] = fn(x[i]). The parameter a
// is kept as the bits of its float64, so that equality is exact; a backend may round it
// to the type that it computes in.
type Unary struct {
	Fn   UnaryFn
	Bits uint64
}

// A is the parameter of the function.
func (o Unary) A() float64 { return math.Float64frombits(o.Bits) }

func (o Unary) String() string {
	if o.Fn.HasParam() {
		return fmt.Sprintf("%s{%v}", o.Fn, o.A())
	}
	return o.Fn.String()
}

func (o Unary) Infer(in []Type) ([]Type, error) {
	if err := wantInputs(in, 1); err != nil {
		return nil, err
	}
	if o.Fn == 0 || o.Fn >= numUnary {
		return nil, fmt.Errorf("no unary function has number %d", o.Fn)
	}
	if !in[0].DType.IsFloat() {
		return nil, fmt.Errorf("want a floating-point type")
	}
	return in, nil
}

func (o Unary) VJP(b *Builder, c Call, dout []ID) []ID {
	d := o.derivative(b, c.In[0], c.Out[0])
	if d == 0 {
		return []ID{0}
	}
	return []ID{b.Mul(dout[0], d)}
}

// derivative is fn'(x), where y = fn(x); 0 if it vanishes everywhere it exists.
func (o Unary) derivative(b *Builder, x, y ID) ID {
	a := o.A()
	like := b.Type(x)
	switch o.Fn {
	case Neg:
		return b.Full(like, -1)
	case Abs:
		return b.unary(Sign, x)
	case Relu:
		return b.unary(Step, x)
	case LeakyRelu:
		return b.unaryA(LeakyStep, a, x)
	case Elu:
		return b.unaryA(EluD, a, x)
	case EluD, EluDD:
		return b.unaryA(EluDD, a, x)
	case Softplus:
		return b.Sigmoid(x)
	case Sigmoid:
		return b.Mul(y, b.Shift(b.Neg(y), 1))
	case Tanh:
		return b.Shift(b.Neg(b.Square(y)), 1)
	case Exp:
		return y
	case Log:
		return b.Recip(x)
	case Sqrt:
		return b.Scale(b.Recip(y), 0.5)
	case Square:
		return b.Scale(x, 2)
	case Recip:
		return b.Neg(b.Square(y))
	case PowC:
		return b.Scale(b.Pow(x, a-1), a)
	case Scale:
		return b.Full(like, a)
	case Shift:
		return b.Ones(like)
	case Sin:
		return b.unary(Cos, x)
	case Cos:
		return b.Neg(b.unary(Sin, x))
	case Erf:
		return b.Scale(b.Exp(b.Neg(b.Square(x))), 2/math.SqrtPi)
	}
	return 0 // Sign, Step, LeakyStep are constant by parts
}

func (b *Builder) unary(fn UnaryFn, x ID) ID { return b.apply1(Unary{Fn: fn}, x) }

// unaryA is unary with the parameter a, which must be a number.
func (b *Builder) unaryA(fn UnaryFn, a float64, x ID) ID {
	if math.IsNaN(a) {
		b.Fail(fmt.Errorf("%s: the parameter is not a number", fn))
	}
	return b.apply1(Unary{fn, math.Float64bits(a)}, x)
}

// The functions of UnaryFn, by name.

func (b *Builder) Abs(x ID) ID      { return b.unary(Abs, x) }
func (b *Builder) Sign(x ID) ID     { return b.unary(Sign, x) }
func (b *Builder) Step(x ID) ID     { return b.unary(Step, x) }
func (b *Builder) Relu(x ID) ID     { return b.unary(Relu, x) }
func (b *Builder) Softplus(x ID) ID { return b.unary(Softplus, x) }
func (b *Builder) Sigmoid(x ID) ID  { return b.unary(Sigmoid, x) }
func (b *Builder) Tanh(x ID) ID     { return b.unary(Tanh, x) }
func (b *Builder) Exp(x ID) ID      { return b.unary(Exp, x) }
func (b *Builder) Log(x ID) ID      { return b.unary(Log, x) }
func (b *Builder) Sqrt(x ID) ID     { return b.unary(Sqrt, x) }
func (b *Builder) Square(x ID) ID   { return b.unary(Square, x) }
func (b *Builder) Recip(x ID) ID    { return b.unary(Recip, x) }
func (b *Builder) Sin(x ID) ID      { return b.unary(Sin, x) }
func (b *Builder) Cos(x ID) ID      { return b.unary(Cos, x) }
func (b *Builder) Erf(x ID) ID      { return b.unary(Erf, x) }

// LeakyRelu is x where x > 0 and slope·x elsewhere.
func (b *Builder) LeakyRelu(x ID, slope float64) ID { return b.unaryA(LeakyRelu, slope, x) }

// Elu is x where x > 0 and a(eˣ−1) elsewhere.
func (b *Builder) Elu(x ID, a float64) ID { return b.unaryA(Elu, a, x) }

// Neg is −x; −(−x) is x.
func (b *Builder) Neg(x ID) ID {
	if b.Node(x).Op == (Unary{Fn: Neg}) {
		return b.Node(x).In[0]
	}
	return b.unary(Neg, x)
}

// Pow is xᵃ for a constant a.
func (b *Builder) Pow(x ID, a float64) ID {
	switch a {
	case 0:
		return b.Ones(b.Type(x))
	case 1:
		return x
	case 2:
		return b.Square(x)
	}
	return b.unaryA(PowC, a, x)
}

// Scale is a·x for a constant a.
func (b *Builder) Scale(x ID, a float64) ID {
	if a == 1 {
		return x
	}
	return b.unaryA(Scale, a, x)
}

// Shift is x + a for a constant a.
func (b *Builder) Shift(x ID, a float64) ID {
	if a == 0 {
		return x
	}
	return b.unaryA(Shift, a, x)
}
