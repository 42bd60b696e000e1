package graph

import (
	"fmt"
	"math"
)

// SumPool2D adds each window of each channel: x (N,C,H,W) → (N,C,OH,OW).
// Padding counts as 0. Its adjoint is SumUnpool2D.
type SumPool2D struct{ Window }

func (o SumPool2D) String() string { return fmt.Sprintf("sumpool2d{%v}", o.Window) }

func (o SumPool2D) Infer(in []Type) ([]Type, error) { return o.pooled(in) }

// pooled is the type of a pooled image.
func (w Window) pooled(in []Type) ([]Type, error) {
	if err := wantInputs(in, 1); err != nil {
		return nil, err
	}
	s := in[0].Shape
	if s.Rank() != 4 || !in[0].DType.IsFloat() {
		return nil, fmt.Errorf("want images (N,C,H,W)")
	}
	if err := w.check(s.At(2), s.At(3)); err != nil {
		return nil, err
	}
	oh, ow := w.Out(s.At(2), s.At(3))
	return []Type{{in[0].DType, s.With(2, oh).With(3, ow)}}, nil
}

func (o SumPool2D) VJP(b *Builder, c Call, dout []ID) []ID {
	s := b.Shape(c.In[0])
	return []ID{b.apply1(SumUnpool2D{o.Window, s.At(2), s.At(3)}, dout[0])}
}

// SumUnpool2D adds each element to all places of its window: (N,C,OH,OW) →
// (N,C,H,W). It is the adjoint of SumPool2D.
type SumUnpool2D struct {
	Window
	H, W int
}

func (o SumUnpool2D) String() string {
	return fmt.Sprintf("sumunpool2d{%v to %dx%d}", o.Window, o.H, o.W)
}

func (o SumUnpool2D) Infer(in []Type) ([]Type, error) {
	if err := wantInputs(in, 1); err != nil {
		return nil, err
	}
	if in[0].Shape.Rank() != 4 {
		return nil, fmt.Errorf("want images (N,C,H,W)")
	}
	x := Type{in[0].DType, in[0].Shape.With(2, o.H).With(3, o.W)}
	if out, err := o.pooled([]Type{x}); err != nil || out[0] != in[0] {
		return nil, fmt.Errorf("it is not the pooling of %v", x)
	}
	return []Type{x}, nil
}

func (o SumUnpool2D) VJP(b *Builder, c Call, dout []ID) []ID {
	return []ID{b.apply1(SumPool2D{o.Window}, dout[0])}
}

// AvgPool2D is the mean of each window, padding counted as 0, as PyTorch's
// avg_pool2d with count_include_pad.
func (b *Builder) AvgPool2D(x ID, w Window) ID {
	return b.Scale(b.apply1(SumPool2D{w}, x), 1/float64(w.KH*w.KW))
}

// MaxPool2D is the maximum of each window and where it was: x (N,C,H,W) →
// y (N,C,OH,OW) and the index h·W+w of the first maximum, I32. Padding never
// wins, not even where all pixels are −Inf. The first NaN of a window wins, as it does in
// Max and ReduceMax.
type MaxPool2D struct{ Window }

func (o MaxPool2D) String() string { return fmt.Sprintf("maxpool2d{%v}", o.Window) }

func (o MaxPool2D) Infer(in []Type) ([]Type, error) {
	out, err := o.pooled(in)
	if err != nil {
		return nil, err
	}
	if o.PadT >= o.KH || o.PadB >= o.KH || o.PadL >= o.KW || o.PadR >= o.KW || o.DilH != 1 || o.DilW != 1 {
		return nil, fmt.Errorf("the padding must be smaller than the kernel, and the dilation 1")
	}
	if in[0].Shape.At(2) > math.MaxInt32/in[0].Shape.At(3) {
		return nil, fmt.Errorf("an image of %dx%d has more pixels than places in i32", in[0].Shape.At(2), in[0].Shape.At(3))
	}
	return append(out, Type{I32, out[0].Shape}), nil
}

func (o MaxPool2D) VJP(b *Builder, c Call, dout []ID) []ID {
	s := b.Shape(c.In[0])
	return []ID{b.apply1(PlaneScatter{s.At(2), s.At(3)}, dout[0], c.Out[1])}
}

// MaxPool2D is the maximum of each window, (N,C,OH,OW); where it was is not returned.
func (b *Builder) MaxPool2D(x ID, w Window) ID { return b.apply1(MaxPool2D{w}, x) }

// PlaneGather reads each channel of x at the given places:
// y[n,c,i,j] = x[n,c].flat[idx[n,c,i,j]], idx I32. An index outside the plane
// is an error of the run.
type PlaneGather struct{}

func (o PlaneGather) String() string { return "planegather" }

func (o PlaneGather) Infer(in []Type) ([]Type, error) {
	if err := wantInputs(in, 2); err != nil {
		return nil, err
	}
	x, idx := in[0].Shape, in[1].Shape
	if in[1].DType != I32 || x.Rank() != 4 || idx.Rank() != 4 || x.At(0) != idx.At(0) || x.At(1) != idx.At(1) {
		return nil, fmt.Errorf("want images (N,C,H,W) and i32 places (N,C,OH,OW)")
	}
	return []Type{{in[0].DType, idx}}, nil
}

func (o PlaneGather) VJP(b *Builder, c Call, dout []ID) []ID {
	s := b.Shape(c.In[0])
	return []ID{b.apply1(PlaneScatter{s.At(2), s.At(3)}, dout[0], c.In[1]), 0}
}

// PlaneScatter adds each element to its place in an H×W plane of zeros:
// y[n,c].flat[idx[n,c,i,j]] += d[n,c,i,j]. It is the adjoint of PlaneGather.
type PlaneScatter struct{ H, W int }

func (o PlaneScatter) String() string { return fmt.Sprintf("planescatter{to %dx%d}", o.H, o.W) }

func (o PlaneScatter) Infer(in []Type) ([]Type, error) {
	if err := wantInputs(in, 2); err != nil {
		return nil, err
	}
	d, idx := in[0].Shape, in[1].Shape
	if in[1].DType != I32 || d.Rank() != 4 || d != idx || o.H < 1 || o.W < 1 {
		return nil, fmt.Errorf("want values and i32 places, both (N,C,OH,OW)")
	}
	return []Type{{in[0].DType, d.With(2, o.H).With(3, o.W)}}, nil
}

func (o PlaneScatter) VJP(b *Builder, c Call, dout []ID) []ID {
	return []ID{b.apply1(PlaneGather{}, dout[0], c.In[1]), 0}
}
