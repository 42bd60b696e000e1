package trained

import (
	"fmt"
	"image"
	"strings"

	"github.com/dustin/go-humanize/english"

	"ebtrain/data"
	"ebtrain/data/loader"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/run/picture"
)

// Pictures says whether a model's samples are pictures, and not points.
func Pictures(in algo.Inputs) bool {
	s := in.Shape
	return (s.At(0) == 1 || s.At(0) == 3) && s.At(1) > 1 && s.At(2) > 1
}

// Planar says whether a model's samples are points of the plane, 1×1×2.
func Planar(in algo.Inputs) bool { return in.Shape == graph.D(1, 1, 2) }

// Noun is what a model's samples are called: "sentences", "pictures" or "points".
func Noun(in algo.Inputs) string {
	if Sentences(in) {
		return "sentences"
	}
	if Pictures(in) {
		return "pictures"
	}
	return "points"
}

// Count is n of a Noun: "1 picture", "9 pictures".
func Count(n int64, noun string) string {
	return english.Plural(int(n), strings.TrimSuffix(noun, "s"), noun)
}

// Speed is the unit of a model's speed: "images/s", "sentences/s" or "points/s".
func Speed(in algo.Inputs) string {
	if Pictures(in) {
		return "images/s"
	}
	return Noun(in) + "/s"
}

// Of are the inputs of a model that takes samples of s.
func Of(s data.Schema) algo.Inputs {
	in := algo.Inputs{Shape: graph.D(s.C, s.H, s.W)}
	if s.Text != nil {
		in.Words = s.Text.Words
	}
	return in
}

// size says in words how large one sample is: "of 1×28×20", "of 2 values".
func size(in algo.Inputs) string {
	s := in.Shape
	if Sentences(in) {
		return fmt.Sprintf("of a vocabulary of %d words", len(in.Words))
	}
	if Pictures(in) || s.At(0) > 1 || s.At(1) > 1 {
		return fmt.Sprintf("of %d×%d×%d", s.At(0), s.At(1), s.At(2))
	}
	return fmt.Sprintf("of %d values", s.Len())
}

// Drawable says whether samples can be shown by Picture.
func Drawable(in algo.Inputs) bool { return Pictures(in) || Planar(in) }

// Picture is samples (n, C, H, W) of a model as one picture: a grid of them, scale
// times as large (0 makes them visible), or, of points of the plane, a scatter
// plot: of rows of a table in the units of the model, since in their own one axis may be
// thousands of times as long as the other.
func Picture(t *exec.Tensor, in algo.Inputs, scale int) (image.Image, error) {
	switch {
	case Pictures(in):
		return picture.Grid(Images(t, in), scale)
	case Planar(in):
		const margin = 0.05
		return picture.Scatter(t.F32(), "samples", picture.Around(t.F32(), margin))
	}
	return nil, fmt.Errorf("points %s have no picture: only pictures and points of 2 values are drawn", size(in))
}

// Images are samples (n, C, H, W) of a model as pictures.
func Images(t *exec.Tensor, in algo.Inputs) picture.Images {
	return Pix(t.F32(), t.Type.Shape.At(0), in)
}

// Pix are n samples of a model as pictures, from their values.
func Pix(x []float32, n int, in algo.Inputs) picture.Images {
	show := picture.Signed
	if in.Range == loader.Unit {
		show = picture.Unit
	}
	s := in.Shape
	return show(x[:n*s.Len()], n, s.At(0), s.At(1), s.At(2))
}
