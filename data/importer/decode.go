package importer

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"

	"ebtrain/data"
)

// decode makes (C, H, W) bytes of an encoded picture, when the budget has room
// for it.
func (g Geometry) decode(ctx context.Context, b *budget, open encoded) ([]byte, error) {
	h, err := look(ctx, open)
	if err != nil {
		return nil, err
	}
	n, err := g.need(h, b.limit)
	if err != nil {
		return nil, err
	}
	if err := b.take(ctx, n); err != nil {
		return nil, err
	}
	defer b.give(n)
	return g.decodeNow(ctx, open)
}

// need is how many bytes it takes to make a sample of a picture, or why it
// cannot be made within limit.
func (g Geometry) need(h header, limit int64) (int64, error) {
	f, err := g.frame(image.Rect(0, 0, h.w, h.h))
	if err != nil {
		return 0, err
	}
	n := h.decoded + f.bytes()
	if n <= float64(limit) {
		return int64(n), nil
	}
	what := fmt.Sprintf("a picture of %d×%d", h.w, h.h)
	if f.scaled {
		what += fmt.Sprintf(", scaled to %d×%d,", f.scaleW, f.scaleH)
	}
	return 0, fmt.Errorf("%s needs %s of memory, expected at most %s", what, byteText(n), byteText(float64(limit)))
}

// decodeNow is decode without asking for memory.
func (g Geometry) decodeNow(ctx context.Context, open encoded) (_ []byte, err error) {
	f, err := open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	seen := &prefix{r: f}
	m, _, err := image.Decode(seen)
	if err != nil {
		return nil, seen.explain(err)
	}
	if _, err := io.Copy(io.Discard, seen); err != nil { // archives have a checksum at the end
		return nil, seen.explain(err)
	}
	rgba, err := g.resize(m)
	if err != nil {
		return nil, err
	}
	return g.planes(rgba), nil
}

// stored are pictures that are stored as bytes, all of the same size: planes of
// rows of pixels.
type stored struct {
	geometry     Geometry
	planes, h, w int
}

// fit changes the geometry to expect one size of all results and says which.
func (s *stored) fit() data.Size {
	if s.geometry.size() == none {
		s.geometry.all = s.geometry.padded(data.Size{H: s.h, W: s.w})
	}
	return s.geometry.fixed()
}

// asIs says whether the samples are the pictures themselves.
func (s *stored) asIs() bool {
	g := s.geometry
	return g.Crop == none && g.Pad == 0 && g.Size == none && g.channels() == s.planes
}

// need is how many bytes it takes to read a picture and make a sample of it.
func (s *stored) need(limit int64) (int64, error) {
	area := int64(s.h) * int64(s.w)
	n := int64(s.planes) * area
	if s.asIs() {
		return n, nil
	}
	more, err := s.geometry.need(header{w: s.w, h: s.h, decoded: 4 * float64(area)}, limit-n)
	return n + more, err
}

// sample makes (C, H, W) bytes of a picture.
func (s *stored) sample(pixels []byte) ([]byte, error) {
	if s.asIs() {
		return pixels, nil
	}
	m := image.NewRGBA(image.Rect(0, 0, s.w, s.h))
	area := s.w * s.h
	for i := range area {
		r, g, b := i, i, i
		if s.planes == 3 {
			g, b = area+i, 2*area+i
		}
		p := m.Pix[4*i : 4*i+4]
		p[0], p[1], p[2], p[3] = pixels[r], pixels[g], pixels[b], 255
	}
	rgba, err := s.geometry.resize(m)
	if err != nil {
		return nil, err
	}
	return s.geometry.planes(rgba), nil
}
