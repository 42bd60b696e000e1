package graph

import "fmt"

// Window is the geometry of a sliding window over images: kernel extent,
// stride, padding on each side, dilation.
type Window struct {
	KH, KW                 int
	StrideH, StrideW       int
	PadT, PadB, PadL, PadR int
	DilH, DilW             int
}

// SquareWindow is the usual window: kernel k×k, stride s, padding p all around.
func SquareWindow(k, s, p int) Window {
	return Window{KH: k, KW: k, StrideH: s, StrideW: s, PadT: p, PadB: p, PadL: p, PadR: p, DilH: 1, DilW: 1}
}

// Out is the number of window positions over an h×w image.
func (w Window) Out(h, wd int) (int, int) {
	return (h+w.PadT+w.PadB-w.DilH*(w.KH-1)-1)/w.StrideH + 1, (wd+w.PadL+w.PadR-w.DilW*(w.KW-1)-1)/w.StrideW + 1
}

// In is the smallest image that has oh×ow window positions: the output of a
// transposed convolution.
func (w Window) In(oh, ow int) (int, int) {
	return (oh-1)*w.StrideH + w.DilH*(w.KH-1) + 1 - w.PadT - w.PadB, (ow-1)*w.StrideW + w.DilW*(w.KW-1) + 1 - w.PadL - w.PadR
}

// check says what is wrong with the window over h×wd images.
func (w Window) check(h, wd int) error {
	if w.KH < 1 || w.KW < 1 || w.StrideH < 1 || w.StrideW < 1 || w.DilH < 1 || w.DilW < 1 ||
		w.PadT < 0 || w.PadB < 0 || w.PadL < 0 || w.PadR < 0 {
		return fmt.Errorf("the window %v has a kernel, stride or dilation below 1 or a negative padding", w)
	}
	if h < 1 || wd < 1 {
		return fmt.Errorf("a %dx%d image is empty", h, wd)
	}
	if h+w.PadT+w.PadB < w.DilH*(w.KH-1)+1 || wd+w.PadL+w.PadR < w.DilW*(w.KW-1)+1 {
		return fmt.Errorf("the window %v does not fit into a %dx%d image", w, h, wd)
	}
	return nil
}

func (w Window) String() string {
	return fmt.Sprintf("%dx%d stride %dx%d pad %d,%d,%d,%d dilation %dx%d",
		w.KH, w.KW, w.StrideH, w.StrideW, w.PadT, w.PadB, w.PadL, w.PadR, w.DilH, w.DilW)
}

// Conv is the geometry of a convolution. Its three ops are the derivatives of
// one trilinear form t(x, w, y) = Σ y·conv(x, w), so each one's derivatives
// are the other two.
type Conv struct {
	Window
	Groups int
}

// NewConv is a convolution with a k×k kernel, stride s, padding p, one group.
func NewConv(k, s, p int) Conv { return Conv{SquareWindow(k, s, p), 1} }

func (c Conv) String() string { return fmt.Sprintf("%v groups %d", c.Window, c.Groups) }

// shapes checks that x, w, y belong together: x (N, C, H, W),
// w (O, C/Groups, KH, KW), y (N, O, OH, OW).
func (c Conv) shapes(x, w, y Type) error {
	if x.Shape.Rank() != 4 || w.Shape.Rank() != 4 || y.Shape.Rank() != 4 {
		return fmt.Errorf("want images (N,C,H,W) and weights (O,C/groups,KH,KW)")
	}
	if x.DType != w.DType || w.DType != y.DType || !x.DType.IsFloat() {
		return fmt.Errorf("want one floating-point type")
	}
	h, wd := x.Shape.At(2), x.Shape.At(3)
	if err := c.check(h, wd); err != nil {
		return err
	}
	oh, ow := c.Out(h, wd)
	g := c.Groups
	switch {
	case g < 1 || w.Shape.At(0)%g != 0:
		return fmt.Errorf("%d groups do not divide %d output channels", g, w.Shape.At(0))
	case x.Shape.At(1) != g*w.Shape.At(1):
		return fmt.Errorf("the image has %d channels, the weight wants %d", x.Shape.At(1), g*w.Shape.At(1))
	case w.Shape.At(2) != c.KH || w.Shape.At(3) != c.KW:
		return fmt.Errorf("the weight %v does not have a %dx%d kernel", w.Shape, c.KH, c.KW)
	case y.Shape != D(x.Shape.At(0), w.Shape.At(0), oh, ow):
		return fmt.Errorf("the output side is %v, want %v", y.Shape, D(x.Shape.At(0), w.Shape.At(0), oh, ow))
	}
	return nil
}

// Conv2D is the convolution y of x by w, as PyTorch's conv2d:
//
//	y[n,o,i,j] = Σ x[n, c, i·stride + p·dilation − pad, j·stride + q·dilation − pad] · w[o,c,p,q]
//
// over c in o's group, p, q; x is 0 outside its bounds.
type Conv2D struct{ Conv }

func (o Conv2D) String() string { return fmt.Sprintf("conv2d{%v}", o.Conv) }

func (o Conv2D) Infer(in []Type) ([]Type, error) {
	if err := wantInputs(in, 2); err != nil {
		return nil, err
	}
	x, w := in[0], in[1]
	y := Type{x.DType, fill(4, 0)}
	if x.Shape.Rank() == 4 && w.Shape.Rank() == 4 && o.check(x.Shape.At(2), x.Shape.At(3)) == nil {
		oh, ow := o.Out(x.Shape.At(2), x.Shape.At(3))
		y.Shape = D(x.Shape.At(0), w.Shape.At(0), oh, ow)
	}
	return []Type{y}, o.shapes(x, w, y)
}

func (o Conv2D) VJP(b *Builder, c Call, dout []ID) []ID {
	x, w, d := c.In[0], c.In[1], dout[0]
	return []ID{o.gradX(b, w, d, b.Shape(x)), o.gradW(b, x, d)}
}

// gradX and gradW are the other two of the three ops, see Conv; x is the shape of the image.
func (c Conv) gradX(b *Builder, w, dy ID, x Shape) ID {
	return b.apply1(Conv2DGradX{c, x.At(2), x.At(3)}, w, dy)
}

func (c Conv) gradW(b *Builder, x, dy ID) ID { return b.apply1(Conv2DGradW{c}, x, dy) }

// Conv2DGradX is the derivative of Conv2D with respect to the image: inputs w
// and dy, output of extent H×W. It is also the transposed convolution.
type Conv2DGradX struct {
	Conv
	H, W int
}

func (o Conv2DGradX) String() string {
	return fmt.Sprintf("conv2d_grad_x{%v to %dx%d}", o.Conv, o.H, o.W)
}

func (o Conv2DGradX) Infer(in []Type) ([]Type, error) {
	if err := wantInputs(in, 2); err != nil {
		return nil, err
	}
	w, dy := in[0], in[1]
	if w.Shape.Rank() != 4 || dy.Shape.Rank() != 4 {
		return nil, fmt.Errorf("want weights (O,C/groups,KH,KW) and images (N,O,OH,OW)")
	}
	x := T(dy.DType, dy.Shape.At(0), o.Groups*w.Shape.At(1), o.H, o.W)
	return []Type{x}, o.shapes(x, w, dy)
}

func (o Conv2DGradX) VJP(b *Builder, c Call, dout []ID) []ID {
	w, dy, d := c.In[0], c.In[1], dout[0]
	return []ID{o.gradW(b, d, dy), b.apply1(Conv2D{o.Conv}, d, w)}
}

// Conv2DGradW is the derivative of Conv2D with respect to the weight: inputs x
// and dy.
type Conv2DGradW struct{ Conv }

func (o Conv2DGradW) String() string { return fmt.Sprintf("conv2d_grad_w{%v}", o.Conv) }

func (o Conv2DGradW) Infer(in []Type) ([]Type, error) {
	if err := wantInputs(in, 2); err != nil {
		return nil, err
	}
	x, dy := in[0], in[1]
	if x.Shape.Rank() != 4 || dy.Shape.Rank() != 4 || o.Groups < 1 || x.Shape.At(1)%o.Groups != 0 {
		return nil, fmt.Errorf("want images (N,C,H,W) and (N,O,OH,OW) with C divisible by %d groups", o.Groups)
	}
	w := T(x.DType, dy.Shape.At(1), x.Shape.At(1)/o.Groups, o.KH, o.KW)
	return []Type{w}, o.shapes(x, w, dy)
}

func (o Conv2DGradW) VJP(b *Builder, c Call, dout []ID) []ID {
	x, dy, d := c.In[0], c.In[1], dout[0]
	return []ID{o.gradX(b, d, dy, b.Shape(x)), b.apply1(Conv2D(o), x, d)}
}

// Conv2D is the convolution of the images x (N,C,H,W) by w (O,C/groups,KH,KW).
func (b *Builder) Conv2D(x, w ID, c Conv) ID { return b.apply1(Conv2D{c}, x, w) }

// ConvTranspose2D is the transposed convolution of x (N,C,H,W) by
// w (C,O/groups,KH,KW), as PyTorch's conv_transpose2d with output padding 0.
func (b *Builder) ConvTranspose2D(x, w ID, c Conv) ID {
	if b.err != nil {
		return 0
	}
	if b.Shape(x).Rank() != 4 {
		b.Fail(fmt.Errorf("conv_transpose2d: want images (N,C,H,W), got %v", b.Type(x)))
		return 0
	}
	h, wd := c.In(b.Shape(x).At(2), b.Shape(x).At(3))
	return b.apply1(Conv2DGradX{c, h, wd}, w, x)
}
