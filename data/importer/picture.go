package importer

import (
	"context"
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg" // registers the decoder
	_ "image/png"  // registers the decoder
	"math"

	"golang.org/x/image/draw"

	"ebtrain/data"
	"ebtrain/data/safetensors"
	"ebtrain/data/shard"
)

// Geometry says how a picture becomes a sample.
type Geometry struct {
	// Crop is what is cut from the centre before resizing; the zero value cuts
	// nothing.
	Crop data.Size
	// Pad is how many black pixels are then added on each side.
	Pad int
	// Size is that of the result: a picture of another shape is resized until it
	// covers it, and the centre is kept. The zero value keeps what Crop and Pad
	// leave.
	Size data.Size
	// Channels is 3 (RGB) or 1 (grey); 0 means 3, of MNIST 1.
	Channels int

	all data.Size // of all results where Crop and Size are none; none if they may differ
}

// none is a size that is not given.
var none data.Size

// Validate reports sizes out of range.
func (g Geometry) Validate() error {
	switch {
	case g.Crop != none && !g.Crop.Within(1, 1<<14):
		return fmt.Errorf("crop %v, expected sides from 1 to %d, or none", g.Crop, 1<<14)
	case g.Pad < 0 || g.Pad > 1<<12:
		return fmt.Errorf("pad %d, expected 0 to %d pixels", g.Pad, 1<<12)
	case g.Size != none && !g.Size.Within(1, 1<<12):
		return fmt.Errorf("size %v, expected sides from 1 to %d", g.Size, 1<<12)
	case g.Channels != 0 && g.Channels != 1 && g.Channels != 3:
		return fmt.Errorf("%d channels, expected 1 or 3", g.Channels)
	}
	return nil
}

// channels is Channels with its default.
func (g Geometry) channels() int {
	if g.Channels == 0 {
		return 3
	}
	return g.Channels
}

// size is that of the result, none if it depends on the picture.
func (g Geometry) size() data.Size {
	if g.Size != none || g.Crop == none {
		return g.Size
	}
	return g.padded(g.Crop)
}

// padded is s with its margins.
func (g Geometry) padded(s data.Size) data.Size { return data.Size{H: s.H + 2*g.Pad, W: s.W + 2*g.Pad} }

// schema is that of the results. If their size depends on the picture it is
// that which first has, and g is changed to expect it of all.
func (g *Geometry) schema(ctx context.Context, first encoded, classes []string) (data.Schema, error) {
	if g.size() == none {
		h, err := look(ctx, first)
		if err != nil {
			return data.Schema{}, fmt.Errorf("%w; give --size to fix the size without the first picture", err)
		}
		g.all = g.padded(data.Size{H: h.h, W: h.w})
	}
	return g.of(g.fixed(), classes), nil
}

// fixed is the size of all results, when it is known.
func (g Geometry) fixed() data.Size {
	if g.all != none {
		return g.all
	}
	return g.size()
}

// of is the schema of results of size s.
func (g Geometry) of(s data.Size, classes []string) data.Schema {
	return data.Schema{C: g.channels(), H: s.H, W: s.W, DType: safetensors.U8, Classes: classes}
}

// preprocessing describes g in an index, for encoded pictures.
func (g Geometry) preprocessing(name string) shard.Preprocessing {
	p := g.rawPreprocessing(name)
	p["decoder"] = "Go image/jpeg and image/png"
	if g.Size == none {
		p["resize"] = "none"
	}
	return p
}

// rawPreprocessing describes g in an index, for pictures that are stored as
// bytes. What is not done is named only where it always was: an index is part
// of a data set's digest.
func (g Geometry) rawPreprocessing(name string) shard.Preprocessing {
	p := shard.Preprocessing{"importer": name, "crop": "none", "size": "as is"}
	if g.Crop != none {
		p["crop"] = fmt.Sprintf("centre %v", g.Crop)
	}
	if g.Pad > 0 {
		p["pad"] = fmt.Sprint(g.Pad)
	}
	if g.Size != none {
		p["size"] = g.Size.String()
		p["resize"] = "bilinear, antialiased (golang.org/x/image/draw)"
	}
	return p
}

// frame is how a picture of w×h pixels becomes a sample: the part that is cut
// out, and the size that this, padded, is scaled to.
type frame struct {
	cut            image.Rectangle
	padW, padH     int // the part with its margins
	scaleW, scaleH int // of the whole, before its centre is cut out
	out            data.Size
	scaled         bool
}

// frame says so, or why it cannot be.
func (g Geometry) frame(r image.Rectangle) (frame, error) {
	if g.Crop != none {
		if g.Crop.W > r.Dx() || g.Crop.H > r.Dy() {
			return frame{}, fmt.Errorf("crop %v is larger than the picture, %d rows of %d pixels", g.Crop, r.Dy(), r.Dx())
		}
		r = centre(r, g.Crop.W, g.Crop.H)
	}
	p := g.padded(data.Size{H: r.Dy(), W: r.Dx()})
	f := frame{cut: r, padW: p.W, padH: p.H, out: p}
	if g.all != none && p != g.all {
		return frame{}, fmt.Errorf("a picture of %d×%d, the first has %d×%d (--size makes all alike)",
			r.Dx(), r.Dy(), g.all.W-2*g.Pad, g.all.H-2*g.Pad)
	}
	if f.scaled = g.Size != none && p != g.Size; f.scaled {
		f.out, f.scaleW, f.scaleH = g.Size, g.Size.W, g.Size.H
		if p.W*g.Size.H < p.H*g.Size.W { // narrower than the result
			f.scaleH = g.Size.W * p.H / p.W
		} else {
			f.scaleW = g.Size.H * p.W / p.H
		}
	}
	return f, nil
}

// bytes bounds what it takes to make a sample so, besides the decoded picture
// and the sample: the part in RGBA and, if it is scaled, the result in RGBA and
// what package draw allocates, rows of four float64 and weights of all rows and
// columns.
func (f frame) bytes() float64 {
	n := 4 * float64(f.padW) * float64(f.padH)
	if f.scaled {
		n += 4*float64(f.out.W)*float64(f.out.H) + 32*float64(f.scaleW)*float64(f.padH) +
			24*float64(f.scaleW+f.scaleH) + 16*float64(3*(f.scaleW+f.scaleH)+2*(f.padW+f.padH))
	}
	return n
}

// centre is the w×h rectangle in the middle of r; of an odd margin the larger
// half is right and below.
func centre(r image.Rectangle, w, h int) image.Rectangle {
	x, y := r.Min.X+(r.Dx()-w)/2, r.Min.Y+(r.Dy()-h)/2
	return image.Rect(x, y, x+w, y+h)
}

// resize cuts, pads and scales m to an RGBA image without gaps between rows.
func (g Geometry) resize(m image.Image) (*image.RGBA, error) {
	f, err := g.frame(m.Bounds())
	if err != nil {
		return nil, err
	}
	full := opaque(m, f.cut, g.Pad)
	if !f.scaled {
		return full, nil
	}
	out := image.NewRGBA(image.Rect(0, 0, f.out.W, f.out.H))
	// Of the scaled picture only the centre is computed.
	scaled := image.Rect(0, 0, f.scaleW, f.scaleH)
	scaled = scaled.Sub(centre(scaled, f.out.W, f.out.H).Min)
	draw.BiLinear.Scale(out, scaled, full, full.Rect, draw.Src, nil)
	return out, nil
}

// planes are the (C, H, W) bytes of m.
func (g Geometry) planes(m *image.RGBA) []byte {
	n := m.Rect.Dx() * m.Rect.Dy()
	out := make([]byte, g.channels()*n)
	for i := range n {
		p := m.Pix[4*i : 4*i+3]
		if g.channels() == 1 {
			out[i] = byte((299*int(p[0]) + 587*int(p[1]) + 114*int(p[2]) + 500) / 1000)
			continue
		}
		out[i], out[n+i], out[2*n+i] = p[0], p[1], p[2]
	}
	return out
}

// opaque copies the part r of m, with a black margin of pad pixels.
// Transparency is dropped: colours stay as they are stored.
func opaque(m image.Image, r image.Rectangle, pad int) *image.RGBA {
	dst := image.NewRGBA(image.Rect(0, 0, r.Dx()+2*pad, r.Dy()+2*pad))
	inner := image.Rect(pad, pad, pad+r.Dx(), pad+r.Dy())
	if pad > 0 {
		draw.Draw(dst, dst.Rect, image.Black, image.Point{}, draw.Src)
	}
	if o, ok := m.(interface{ Opaque() bool }); ok && o.Opaque() {
		draw.Draw(dst, inner, m, r.Min, draw.Src)
		return dst
	}
	for y := range r.Dy() {
		colours(dst.Pix[dst.PixOffset(pad, pad+y):], m, r.Min.X, r.Min.Y+y, r.Dx())
	}
	return dst
}

// colours writes those of n pixels of a row of m, from (x, y), as RGBA
// without transparency.
func colours(dst []byte, m image.Image, x, y, n int) {
	switch m := m.(type) {
	case *image.NRGBA:
		copy(dst[:4*n], m.Pix[m.PixOffset(x, y):])
	case *image.NRGBA64: // big-endian; its RGBA64At has lost colours that are not seen
		for i := range n {
			p := m.Pix[m.PixOffset(x+i, y):]
			dst[4*i], dst[4*i+1], dst[4*i+2] = p[0], p[2], p[4]
		}
	default:
		for i := range n {
			c := color.NRGBAModel.Convert(m.At(x+i, y)).(color.NRGBA)
			dst[4*i], dst[4*i+1], dst[4*i+2] = c.R, c.G, c.B
		}
	}
	for i := range n {
		dst[4*i+3] = math.MaxUint8
	}
}
