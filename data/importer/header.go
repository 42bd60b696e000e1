package importer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"io"
	"strings"
)

// header is what the first bytes of an encoded picture say.
type header struct {
	w, h int
	// decoded is how many bytes decoding takes at most, the picture included.
	decoded float64
}

// encoded opens a picture as it is stored, from its beginning at each call.
type encoded func(ctx context.Context) (io.ReadCloser, error)

// look reads a picture's header and no more.
func look(ctx context.Context, open encoded) (header, error) {
	f, err := open(ctx)
	if err != nil {
		return header{}, err
	}
	h, err := readHeader(f)
	return h, errors.Join(err, f.Close())
}

func readHeader(r io.Reader) (header, error) {
	seen := &prefix{r: r}
	c, format, err := image.DecodeConfig(seen)
	if err != nil {
		return header{}, seen.explain(err)
	}
	if c.Width < 1 || c.Height < 1 {
		return header{}, fmt.Errorf("a picture of %d×%d pixels", c.Width, c.Height)
	}
	return header{c.Width, c.Height, decodedBytes(c, format, seen.head)}, nil
}

// decodedBytes bounds what image/jpeg and image/png allocate for a picture.
func decodedBytes(c image.Config, format string, head []byte) float64 {
	if format == "jpeg" {
		// Planes are whole blocks of up to 32×32.
		pixels := float64((c.Width+31)&^31) * float64((c.Height+31)&^31)
		planes, result := 3.0, 0.0
		switch c.ColorModel {
		case color.GrayModel:
			planes = 1
		case color.CMYKModel:
			planes, result = 4, 4
		case color.RGBAModel:
			result = 4
		}
		if !baselineJPEG(head) {
			planes *= 1 + 4 // the coefficients of all scans, 32 bits each
		}
		return pixels * (planes + result)
	}
	pixels := float64(c.Width) * float64(c.Height)
	size := 4.0 // grey may turn out to have a transparent colour
	switch c.ColorModel {
	case color.Gray16Model, color.RGBA64Model, color.NRGBA64Model:
		size = 8
	default:
		if _, ok := c.ColorModel.(color.Palette); ok {
			size = 1
		}
	}
	if len(head) > 28 && head[28] != 0 { // interlaced: seven parts, then the whole
		size *= 2
	}
	return pixels * size
}

// baselineJPEG says whether the frame header in the beginning of a JPEG surely
// is that of a picture in one scan a component, not a progressive one.
func baselineJPEG(head []byte) bool {
	for i := 2; i+4 <= len(head); {
		if head[i] != 0xff {
			return false
		}
		switch m := head[i+1]; {
		case m == 0xff: // fill
			i++
			continue
		case m == 0xc0 || m == 0xc1:
			return true
		case m == 0xc2 || m == 0xda || m == 0xd9:
			return false
		case m == 0x01 || m >= 0xd0 && m <= 0xd7: // without a length
			i += 2
			continue
		}
		i += 2 + int(head[i+2])<<8 + int(head[i+3])
	}
	return false
}

// maxPrefix is how much of a picture's beginning is kept to be looked at.
const maxPrefix = 1 << 20

// prefix remembers the beginning and the number of the bytes read through it,
// and stops at maxEntry.
type prefix struct {
	r    io.Reader
	head []byte
	n    int64
	err  error // other than the end
}

func (p *prefix) Read(b []byte) (int, error) {
	if p.n >= maxEntry {
		p.err = fmt.Errorf("more than %s, expected at most that for one picture as it is stored", byteText(maxEntry))
		return 0, p.err
	}
	n, err := p.r.Read(b)
	p.head = append(p.head, b[:min(n, maxPrefix-len(p.head))]...)
	p.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		p.err = err
	}
	return n, err
}

// explain says in plain words why what was read is no picture.
func (p *prefix) explain(err error) error {
	switch {
	case p.err != nil: // package image takes any error for a format it does not know
		return p.err
	case p.n == 0 && errors.Is(err, image.ErrFormat), p.n == 0 && errors.Is(err, io.EOF):
		return errors.New("empty, expected a JPEG or PNG picture")
	case errors.Is(err, image.ErrFormat):
		return fmt.Errorf("not a JPEG or PNG picture (it begins with %q)", p.head[:min(8, len(p.head))])
	case errors.Is(err, io.EOF) || strings.HasSuffix(err.Error(), io.ErrUnexpectedEOF.Error()): // image/png does not wrap it
		return fmt.Errorf("the picture is cut short: its %d bytes end too soon", p.n)
	}
	return fmt.Errorf("damaged picture (%w)", err)
}

// inMemory is a picture that an archive has been read for.
func inMemory(b []byte) encoded {
	return func(ctx context.Context) (io.ReadCloser, error) {
		return io.NopCloser(contextReader{ctx, bytes.NewReader(b)}), nil
	}
}
