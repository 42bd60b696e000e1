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
	// Crop is the side of the square cut from the centre before resizing; 0
	// cuts nothing: then the shorter side is resized to Size and the centre of
	// the longer one is kept.
	Crop int
	// Pad is how many black pixels are then added on each side.
	Pad int
	// Size is the side of the result; 0 keeps what Crop and Pad leave.
	Size int
	// Channels is 3 (RGB) or 1 (grey); 0 means 3, of MNIST 1.
	Channels int

	rows, cols int // of all results where Crop and Size are 0; 0 if they may differ
}

// Validate reports sizes out of range.
func (g Geometry) Validate() error {
	switch {
	case g.Crop < 0 || g.Crop > 1<<14:
		return fmt.Errorf("crop %d, expected a side from 1 to %d, or none", g.Crop, 1<<14)
	case g.Pad < 0 || g.Pad > 1<<12:
		return fmt.Errorf("pad %d, expected 0 to %d pixels", g.Pad, 1<<12)
	case g.Size < 0 || g.Size > 1<<12:
		return fmt.Errorf("size %d, expected a side from 1 to %d", g.Size, 1<<12)
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

// side is the side of the result, 0 if it depends on the picture.
func (g Geometry) side() int {
	if g.Size > 0 || g.Crop == 0 {
		return g.Size
	}
	return g.Crop + 2*g.Pad
}

// schema is that of the results. If their size depends on the picture it is
// that which first has, and g is changed to expect it of all.
func (g *Geometry) schema(ctx context.Context, first encoded, classes []string) (data.Schema, error) {
	if g.side() > 0 {
		return g.square(g.side(), g.side(), classes), nil
	}
	h, err := look(ctx, first)
	if err != nil {
		return data.Schema{}, fmt.Errorf("%w; give --size to fix the size without the first picture", err)
	}
	g.rows, g.cols = h.h+2*g.Pad, h.w+2*g.Pad
	return g.square(g.rows, g.cols, classes), nil
}

func (g Geometry) square(rows, cols int, classes []string) data.Schema {
	return data.Schema{C: g.channels(), H: rows, W: cols, DType: safetensors.U8, Classes: classes}
}

// preprocessing describes g in an index, for encoded pictures.
func (g Geometry) preprocessing(name string) shard.Preprocessing {
	p := g.rawPreprocessing(name)
	p["decoder"] = "Go image/jpeg and image/png"
	if g.Size == 0 {
		p["resize"] = "none"
	}
	return p
}

// rawPreprocessing describes g in an index, for pictures that are stored as
// bytes. What is not done is named only where it always was: an index is part
// of a data set's digest.
func (g Geometry) rawPreprocessing(name string) shard.Preprocessing {
	p := shard.Preprocessing{"importer": name, "crop": "none", "size": "as is"}
	if g.Crop > 0 {
		p["crop"] = fmt.Sprintf("centre %d", g.Crop)
	}
	if g.Pad > 0 {
		p["pad"] = fmt.Sprint(g.Pad)
	}
	if g.Size > 0 {
		p["size"] = fmt.Sprint(g.Size)
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
	scaled         bool
}

// frame says so, or why it cannot be.
func (g Geometry) frame(r image.Rectangle) (frame, error) {
	if g.Crop > 0 {
		if g.Crop > r.Dx() || g.Crop > r.Dy() {
			return frame{}, fmt.Errorf("crop %d is larger than the picture, %d×%d", g.Crop, r.Dx(), r.Dy())
		}
		r = centre(r, g.Crop, g.Crop)
	}
	f := frame{cut: r, padW: r.Dx() + 2*g.Pad, padH: r.Dy() + 2*g.Pad}
	if g.rows > 0 && (f.padH != g.rows || f.padW != g.cols) {
		return frame{}, fmt.Errorf("a picture of %d×%d, the first has %d×%d (--size makes all alike)",
			r.Dx(), r.Dy(), g.cols-2*g.Pad, g.rows-2*g.Pad)
	}
	if f.scaled = g.Size > 0 && (f.padW != g.Size || f.padH != g.Size); f.scaled {
		f.scaleW, f.scaleH = g.Size, g.Size
		if f.padW < f.padH {
			f.scaleH = g.Size * f.padH / f.padW
		} else {
			f.scaleW = g.Size * f.padW / f.padH
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
		side := float64(min(f.scaleW, f.scaleH))
		n += 4*side*side + 32*float64(f.scaleW)*float64(f.padH) +
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
	out := image.NewRGBA(image.Rect(0, 0, g.Size, g.Size))
	// Of the scaled picture only the centre is computed.
	scaled := image.Rect(0, 0, f.scaleW, f.scaleH)
	scaled = scaled.Sub(centre(scaled, g.Size, g.Size).Min)
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
	case *image.NRGBA64: // as color.NRGBAModel converts it, without a heap value a pixel
		for i := range n {
			c := m.RGBA64At(x+i, y)
			if a := uint32(c.A); a > 0 {
				dst[4*i], dst[4*i+1], dst[4*i+2] = unmultiply(c.R, a), unmultiply(c.G, a), unmultiply(c.B, a)
			}
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

// unmultiply undoes the multiplication of a colour with its opacity a.
func unmultiply(c uint16, a uint32) uint8 { return uint8(uint32(c) * math.MaxUint16 / a >> 8) }
