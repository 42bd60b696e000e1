package picture

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"math"
	"strconv"

	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"
)

// Region is the part of the plane that a plot shows: X0 < X1, Y0 < Y1.
type Region struct{ X0, X1, Y0, Y1 float64 }

// Centres are the centres of the w×h cells that the region is cut into, as
// (h·w, 2) pairs (x, y): rows of rising x, the first at the least y. A model's
// log densities there, in this order, are a Map.
func (r Region) Centres(w, h int) []float32 {
	at := make([]float32, 0, 2*w*h)
	for j := range h {
		for i := range w {
			x, y := (float64(i)+0.5)/float64(w), (float64(j)+0.5)/float64(h)
			at = append(at, float32(r.X0+x*(r.X1-r.X0)), float32(r.Y0+y*(r.Y1-r.Y0)))
		}
	}
	return at
}

func (r Region) check() error {
	for _, side := range []float64{r.X1 - r.X0, r.Y1 - r.Y0} {
		if !(side > 0) || math.IsInf(side, 1) {
			return fmt.Errorf("picture: region [%v, %v] × [%v, %v], expected finite ranges that rise", r.X0, r.X1, r.Y0, r.Y1)
		}
	}
	return nil
}

const (
	plotSize = 400 // pixels of the longer side of a plot, about
	letterW  = 7   // pixels of a letter
	letterH  = 13
	gap      = 6 // pixels between things
)

// plane is a plot under way: a frame around an area, with room for what is said.
type plane struct {
	*image.NRGBA
	area image.Rectangle
}

// newPlane has an area of w×h pixels, and right more pixels of room beside it.
func newPlane(r Region, w, h, right int) *plane {
	left := gap*2 + letterW*max(len(number(r.Y0)), len(number(r.Y1)))
	top := gap*2 + letterH
	canvas := image.NewNRGBA(image.Rect(0, 0, left+w+gap*2+right, top+h+gap*2+letterH))
	draw.Draw(canvas, canvas.Bounds(), image.White, image.Point{}, draw.Src)
	p := &plane{canvas, image.Rect(left, top, left+w, top+h)}
	p.box(p.area)
	below := p.area.Max.Y + gap/2 + letterH
	p.write(number(r.X0), p.area.Min.X, below)
	p.write(number(r.X1), p.area.Max.X-letterW*len(number(r.X1)), below)
	p.write(number(r.Y1), left-gap-letterW*len(number(r.Y1)), p.area.Min.Y+letterH)
	p.write(number(r.Y0), left-gap-letterW*len(number(r.Y0)), p.area.Max.Y)
	return p
}

// box draws a frame of one pixel around r.
func (p *plane) box(r image.Rectangle) {
	outer := r.Inset(-1)
	for _, side := range []image.Rectangle{
		{outer.Min, image.Pt(outer.Max.X, r.Min.Y)}, {image.Pt(outer.Min.X, r.Max.Y), outer.Max},
		{outer.Min, image.Pt(r.Min.X, outer.Max.Y)}, {image.Pt(r.Max.X, outer.Min.Y), outer.Max},
	} {
		draw.Draw(p, side, image.Black, image.Point{}, draw.Src)
	}
}

// title writes above the area.
func (p *plane) title(s string) { p.write(s, p.area.Min.X, p.area.Min.Y-gap) }

// write writes s from x on, above the line y.
func (p *plane) write(s string, x, y int) {
	d := font.Drawer{Dst: p, Src: image.NewUniform(color.Gray{40}), Face: basicfont.Face7x13, Dot: fixed.P(x, y-2)}
	d.DrawString(s)
}

// number is v in three digits.
func number(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }
