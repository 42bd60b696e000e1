package importer

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg" // registers the decoder
	_ "image/png"  // registers the decoder
	"io"
	"math"
	"strings"

	"golang.org/x/image/draw"

	"ebtrain/data"
	"ebtrain/data/safetensors"
	"ebtrain/data/shard"
)

// maxPixels limits a picture, so that a few bytes cannot ask for all memory.
const maxPixels = 1 << 26

// Geometry says how a picture becomes a sample.
type Geometry struct {
	// Crop is the side of the square cut from the centre before resizing; 0
	// cuts nothing: then the shorter side is resized to Size and the centre of
	// the longer one is kept.
	Crop int
	// Size is the side of the result; 0 keeps what Crop leaves.
	Size int
	// Channels is 3 (RGB) or 1 (grey); 0 means 3.
	Channels int
}

// Validate reports sizes out of range.
func (g Geometry) Validate() error {
	switch {
	case g.Crop < 0 || g.Crop > 1<<14:
		return fmt.Errorf("crop %d, expected a side from 1 to %d, or none", g.Crop, 1<<14)
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
	if g.Size > 0 {
		return g.Size
	}
	return g.Crop
}

// schema is that of the results; first is a picture to take the size from if
// it depends on the picture.
func (g Geometry) schema(first func() ([]byte, error), classes []string) (data.Schema, error) {
	s := data.Schema{C: g.channels(), H: g.side(), W: g.side(), DType: safetensors.U8, Classes: classes}
	if s.H > 0 {
		return s, nil
	}
	b, err := first()
	if err != nil {
		return s, err
	}
	c, err := config(b)
	if err != nil {
		return s, fmt.Errorf("%w; give --size to fix the size without the first picture", err)
	}
	s.H, s.W = c.Height, c.Width
	return s, nil
}

// preprocessing describes g in an index.
func (g Geometry) preprocessing(name string) shard.Preprocessing {
	p := shard.Preprocessing{
		"importer": name, "crop": "none", "size": "as is",
		"decoder": "Go image/jpeg and image/png", "resize": "none",
	}
	if g.Crop > 0 {
		p["crop"] = fmt.Sprintf("centre %d", g.Crop)
	}
	if g.Size > 0 {
		p["size"] = fmt.Sprint(g.Size)
		p["resize"] = "bilinear, antialiased (golang.org/x/image/draw)"
	}
	return p
}

// config reads a picture's header and checks its size.
func config(b []byte) (image.Config, error) {
	c, _, err := image.DecodeConfig(bytes.NewReader(b))
	if err != nil {
		return c, decodeError(b, err)
	}
	if c.Width < 1 || c.Height < 1 || c.Width > maxPixels/c.Height {
		return c, fmt.Errorf("a picture of %d×%d, expected at most %d pixels", c.Width, c.Height, maxPixels)
	}
	return c, nil
}

func decodeError(b []byte, err error) error {
	switch {
	case len(b) == 0:
		return errors.New("empty, expected a JPEG or PNG picture")
	case errors.Is(err, image.ErrFormat):
		return fmt.Errorf("not a JPEG or PNG picture (it begins with %q)", b[:min(8, len(b))])
	case errors.Is(err, io.EOF) || strings.HasSuffix(err.Error(), io.ErrUnexpectedEOF.Error()): // image/png does not wrap it
		return fmt.Errorf("the picture is cut short: its %d bytes end too soon", len(b))
	}
	return fmt.Errorf("damaged picture (%w)", err)
}

// decode makes (C, H, W) bytes of an encoded picture.
func (g Geometry) decode(b []byte) ([]byte, error) {
	if _, err := config(b); err != nil {
		return nil, err
	}
	m, _, err := image.Decode(bytes.NewReader(b))
	if err != nil {
		return nil, decodeError(b, err)
	}
	rgba, err := g.resize(m)
	if err != nil {
		return nil, err
	}
	n := rgba.Rect.Dx() * rgba.Rect.Dy()
	out := make([]byte, g.channels()*n)
	for i := range n {
		p := rgba.Pix[4*i : 4*i+3]
		if g.channels() == 1 {
			out[i] = byte((299*int(p[0]) + 587*int(p[1]) + 114*int(p[2]) + 500) / 1000)
			continue
		}
		out[i], out[n+i], out[2*n+i] = p[0], p[1], p[2]
	}
	return out, nil
}

// resize crops and scales m to an RGBA image without gaps between rows.
func (g Geometry) resize(m image.Image) (*image.RGBA, error) {
	r := m.Bounds()
	if g.Crop > 0 {
		if g.Crop > r.Dx() || g.Crop > r.Dy() {
			return nil, fmt.Errorf("crop %d is larger than the picture, %d×%d", g.Crop, r.Dx(), r.Dy())
		}
		r = centre(r, g.Crop, g.Crop)
	}
	full := opaque(m, r)
	if g.Size == 0 || r.Dx() == g.Size && r.Dy() == g.Size {
		return full, nil
	}
	w, h := g.Size, g.Size
	if r.Dx() < r.Dy() {
		h = g.Size * r.Dy() / r.Dx()
	} else {
		w = g.Size * r.Dx() / r.Dy()
	}
	scaled := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.BiLinear.Scale(scaled, scaled.Rect, full, full.Rect, draw.Src, nil)
	return opaque(scaled, centre(scaled.Rect, g.Size, g.Size)), nil
}

// centre is the w×h rectangle in the middle of r; of an odd margin the larger
// half is right and below.
func centre(r image.Rectangle, w, h int) image.Rectangle {
	x, y := r.Min.X+(r.Dx()-w)/2, r.Min.Y+(r.Dy()-h)/2
	return image.Rect(x, y, x+w, y+h)
}

// opaque copies the part r of m. Transparency is dropped: colours stay as they
// are stored.
func opaque(m image.Image, r image.Rectangle) *image.RGBA {
	dst := image.NewRGBA(image.Rect(0, 0, r.Dx(), r.Dy()))
	if o, ok := m.(interface{ Opaque() bool }); ok && o.Opaque() {
		draw.Draw(dst, dst.Rect, m, r.Min, draw.Src)
		return dst
	}
	for y := range r.Dy() {
		for x := range r.Dx() {
			c := color.NRGBAModel.Convert(m.At(r.Min.X+x, r.Min.Y+y)).(color.NRGBA)
			c.A = math.MaxUint8
			dst.SetRGBA(x, y, color.RGBA(c))
		}
	}
	return dst
}
