package graph

import "fmt"

// ResampleMode is how a larger image takes its values from a smaller one.
type ResampleMode uint8

const (
	// Nearest copies each pixel to a Scale×Scale square.
	Nearest ResampleMode = iota + 1
	// Bilinear interpolates between pixel centres (half-pixel, corners not
	// aligned, edges clamped), as PyTorch's interpolate.
	Bilinear
)

func (m ResampleMode) String() string {
	if m == Bilinear {
		return "bilinear"
	}
	return "nearest"
}

// Upsample2D enlarges images by an integer factor: (N,C,H,W) →
// (N,C,Scale·H,Scale·W). It is linear; its adjoint is Upsample2DT. A pixel takes
// from those with a weight that is not 0 only, so infinities and NaN reach no
// others; the same holds of the adjoint.
type Upsample2D struct {
	Mode  ResampleMode
	Scale int
}

func (o Upsample2D) String() string { return fmt.Sprintf("upsample2d{%s x%d}", o.Mode, o.Scale) }

func (o Upsample2D) Infer(in []Type) ([]Type, error) {
	if err := wantInputs(in, 1); err != nil {
		return nil, err
	}
	s := in[0].Shape
	if s.Rank() != 4 || !in[0].DType.IsFloat() || o.Scale < 1 || (o.Mode != Nearest && o.Mode != Bilinear) {
		return nil, fmt.Errorf("want images (N,C,H,W), a scale of at least 1, and a mode")
	}
	return []Type{{in[0].DType, s.With(2, s.At(2)*o.Scale).With(3, s.At(3)*o.Scale)}}, nil
}

func (o Upsample2D) VJP(b *Builder, c Call, dout []ID) []ID {
	return []ID{b.apply1(Upsample2DT(o), dout[0])}
}

// Upsample2DT is the adjoint of Upsample2D: (N,C,Scale·H,Scale·W) → (N,C,H,W).
type Upsample2DT struct {
	Mode  ResampleMode
	Scale int
}

func (o Upsample2DT) String() string { return fmt.Sprintf("upsample2d_t{%s x%d}", o.Mode, o.Scale) }

func (o Upsample2DT) Infer(in []Type) ([]Type, error) {
	if err := wantInputs(in, 1); err != nil {
		return nil, err
	}
	s := in[0].Shape
	if s.Rank() != 4 || !in[0].DType.IsFloat() || o.Scale < 1 || (o.Mode != Nearest && o.Mode != Bilinear) || s.At(2)%o.Scale != 0 || s.At(3)%o.Scale != 0 {
		return nil, fmt.Errorf("want images (N,C,H,W) with H and W divisible by the scale %d", o.Scale)
	}
	return []Type{{in[0].DType, s.With(2, s.At(2)/o.Scale).With(3, s.At(3)/o.Scale)}}, nil
}

func (o Upsample2DT) VJP(b *Builder, c Call, dout []ID) []ID {
	return []ID{b.apply1(Upsample2D(o), dout[0])}
}

// Upsample2D enlarges images by an integer factor.
func (b *Builder) Upsample2D(x ID, mode ResampleMode, scale int) ID {
	return b.apply1(Upsample2D{mode, scale}, x)
}
