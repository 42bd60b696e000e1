// Package picture makes pictures of batches of images (grids of samples, and
// reconstructions below their inputs) and of distributions in the plane (maps of
// a density, scatters of samples), as PNG files that are complete or absent.
//
// Images are (N,C,H,W) float32, row-major, C 1 (grey) or 3 (RGB). Values are
// mapped from [Lo, Hi] to 0…255, rounded to nearest; what lies outside is
// clipped, NaN is black. Cells are magnified by repeating pixels, never
// smoothed, and stand 2 pixels apart and from the edge, on mid-grey. Images need
// not be square.
//
// Plots of the plane have x to the right and y upwards, and say their range at
// the ends of the axes.
//
// The functions keep no state and may be called from any goroutine.
package picture

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"io/fs"
	"math"
	"os"

	"ebtrain/data/atomicfile"
)

const (
	padding = 2  // pixels between cells and around the grid
	minCell = 64 // pixels: smaller cells are magnified if the scale is chosen here
	// maxCell is where that ends: the longer side of a magnified cell is no longer.
	maxCell = 512
)

var background = color.Gray{128}

// Images is a batch of N images of C channels, H rows, W columns: Pix has
// N·C·H·W values, of which Lo is black and Hi is white.
type Images struct {
	Pix        []float32
	N, C, H, W int
	Lo, Hi     float32
}

// Signed is a batch of values in [−1, 1], as networks see them.
func Signed(pix []float32, n, c, h, w int) Images { return Images{pix, n, c, h, w, -1, 1} }

// Unit is a batch of values in [0, 1].
func Unit(pix []float32, n, c, h, w int) Images { return Images{pix, n, c, h, w, 0, 1} }

func (m Images) check() error {
	switch {
	case m.N < 1 || m.H < 1 || m.W < 1 || (m.C != 1 && m.C != 3):
		return fmt.Errorf("picture: images are (N,C,H,W) = (%d,%d,%d,%d), expected N, H, W of 1 or more and C of 1 or 3", m.N, m.C, m.H, m.W)
	case len(m.Pix) != m.N*m.C*m.H*m.W:
		return fmt.Errorf("picture: %d values, expected %d for (N,C,H,W) = (%d,%d,%d,%d)", len(m.Pix), m.N*m.C*m.H*m.W, m.N, m.C, m.H, m.W)
	case !(m.Lo < m.Hi):
		return fmt.Errorf("picture: range [%v, %v] is empty", m.Lo, m.Hi)
	}
	return nil
}

// Grid is the images in rows of ⌈√N⌉, each pixel scale×scale. Scale 0 chooses
// the smallest that makes both sides of a cell 64 pixels or more, or the longer
// one no more than 512. The picture is an *image.Gray or an opaque *image.NRGBA.
func Grid(m Images, scale int) (image.Image, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	return layOut(m, nil, columns(m.N), scale)
}

// Rows is the images in rows of cols, drawn as those of Grid.
func Rows(m Images, cols, scale int) (image.Image, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	if cols < 1 {
		return nil, fmt.Errorf("picture: rows of %d images, expected at least 1", cols)
	}
	return layOut(m, nil, min(cols, m.N), scale)
}

// SideBySide is a grid of pairs: a row of images of top, below it those of
// bottom with the same numbers. Both batches must agree in N, C, H and W.
func SideBySide(top, bottom Images, scale int) (image.Image, error) {
	if err := errors.Join(top.check(), bottom.check()); err != nil {
		return nil, err
	}
	if top.N != bottom.N || top.C != bottom.C || top.H != bottom.H || top.W != bottom.W {
		return nil, fmt.Errorf("picture: (%d,%d,%d,%d) above (%d,%d,%d,%d): the batches differ in shape",
			top.N, top.C, top.H, top.W, bottom.N, bottom.C, bottom.H, bottom.W)
	}
	return layOut(top, &bottom, min(top.N, columns(2*top.N)), scale)
}

// magnification is the scale that is chosen for images of h×w pixels.
func magnification(h, w int) int {
	short, long := min(h, w), max(h, w)
	return max(1, min((minCell+short-1)/short, maxCell/long))
}

// columns makes a grid of n cells nearly square.
func columns(n int) int { return int(math.Ceil(math.Sqrt(float64(n)))) }

// layOut draws top, and bottom if there is one, in alternating rows.
func layOut(top Images, bottom *Images, cols, scale int) (image.Image, error) {
	if scale < 0 {
		return nil, fmt.Errorf("picture: scale %d, expected 1 or more, or 0 to have it chosen", scale)
	}
	if scale == 0 {
		scale = magnification(top.H, top.W)
	}
	layers := []Images{top}
	if bottom != nil {
		layers = append(layers, *bottom)
	}
	rows := (top.N + cols - 1) / cols * len(layers)
	dx, dy := top.W*scale+padding, top.H*scale+padding
	canvas := blank(top.C, image.Rect(0, 0, padding+cols*dx, padding+rows*dy))
	for k, layer := range layers {
		for n := range layer.N {
			row := n/cols*len(layers) + k
			layer.draw(canvas, n, image.Pt(padding+n%cols*dx, padding+row*dy), scale)
		}
	}
	return canvas, nil
}

func blank(channels int, r image.Rectangle) draw.Image {
	var canvas draw.Image = image.NewNRGBA(r)
	if channels == 1 {
		canvas = image.NewGray(r)
	}
	draw.Draw(canvas, r, image.NewUniform(background), image.Point{}, draw.Src)
	return canvas
}

// draw puts image n with its upper left corner at p.
func (m Images) draw(canvas draw.Image, n int, p image.Point, scale int) {
	plane := m.H * m.W
	first := m.Pix[n*m.C*plane:]
	for y := range m.H * scale {
		for x := range m.W * scale {
			i := y/scale*m.W + x/scale
			switch c := canvas.(type) {
			case *image.Gray:
				c.SetGray(p.X+x, p.Y+y, color.Gray{m.level(first[i])})
			case *image.NRGBA:
				c.SetNRGBA(p.X+x, p.Y+y, color.NRGBA{m.level(first[i]), m.level(first[plane+i]), m.level(first[2*plane+i]), 255})
			}
		}
	}
}

// level maps [Lo, Hi] to 0…255.
func (m Images) level(v float32) uint8 {
	f := math.Round(255 * (float64(v) - float64(m.Lo)) / (float64(m.Hi) - float64(m.Lo)))
	switch {
	case f >= 255:
		return 255
	case f > 0:
		return uint8(f)
	}
	return 0 // below Lo, or NaN
}

// WritePNG writes a picture to the file at path, which is replaced as a whole.
func WritePNG(path string, m image.Image) error {
	return atomicfile.Write(path, func(w io.Writer) error { return png.Encode(w, m) })
}

// CheckReplace reports a file that is there and is no PNG, nor empty: WritePNG would replace it.
func CheckReplace(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	begins := make([]byte, len(signature))
	switch n, err := io.ReadFull(f, begins); {
	case errors.Is(err, io.EOF): // empty
		return nil
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case string(begins[:n]) != signature:
		return errors.New("it is there already, and no PNG, so it is not replaced")
	}
	return nil
}

// signature is what every PNG begins with.
const signature = "\x89PNG\r\n\x1a\n"

// PNG is a picture as the contents of a file.
func PNG(m image.Image) ([]byte, error) {
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
