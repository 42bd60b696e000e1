package graph

import "math"

// LogSumExp is log Σ eˣ along the axes, which are removed; with no axes, of
// everything. The maximum is subtracted first, so it neither overflows nor
// loses digits. The maximum is a constant to differentiation, which changes no
// derivative because it cancels: the first is the softmax of x, and later ones
// are those of the softmax.
//
// Where all x are −Inf the value is −Inf and derivatives are NaN, since the
// softmax is 0/0; where some are, their derivatives are 0. Where one is +Inf
// the value is +Inf. There must be an element along the axes.
func (b *Builder) LogSumExp(x ID, axes ...int) ID {
	axes = b.allAxes(x, axes)
	m := b.StopGrad(b.finite(b.MaxKeep(x, axes...)))
	sum := b.SumKeep(b.Exp(b.Sub(x, m)), axes...)
	return b.dropAxes(b.Add(b.Log(sum), m), axes)
}

// finite is x with infinities replaced by the largest numbers of its type.
func (b *Builder) finite(x ID) ID {
	t := b.Type(x)
	most := math.MaxFloat64
	switch t.DType {
	case F32:
		most = math.MaxFloat32
	case BF16:
		most = 0x1.FEp127
	}
	return b.Max(b.Min(x, b.Full(t, most)), b.Full(t, -most))
}
