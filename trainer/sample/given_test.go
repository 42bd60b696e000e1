package main

import (
	"cmp"
	"image"
	"image/color"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/data/dataset"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/launch/progressbar"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/internal/toy"
	"ebtrain/trainer/method/sm"
	"ebtrain/trainer/trained"
)

func TestBetween(t *testing.T) {
	ends := latents{[]float32{0, 10, 4, 30, -1, -1, -1, 7}, 2}
	for k, want := range [][]float32{{0, 10, -1, -1}, {2, 20, -1, 3}, {4, 30, -1, 7}} {
		if got := between(ends, k, 3); got.dim != 2 || !slices.Equal(got.x, want) {
			t.Errorf("%d: got %v, want %v", k, got, want)
		}
	}
}

const (
	pictures = "synth:size=8,test=9"
	side     = 8
	cell     = side + 2 // with the padding beside it
)

// toyDrawing draws from a toy, whose samples with given latents are the pictures
// that the latents are of, and for whom the middle between two latents is that
// between two pictures.
func toyDrawing(t *testing.T, o options) *drawing {
	t.Helper()
	backend := ref.New()
	t.Cleanup(func() {
		if err := backend.Close(); err != nil {
			t.Error(err)
		}
	})
	model := toy.Config{C: 3, H: side, W: side}
	run := &trained.Run{Path: "runs/a", Model: model, Vars: backend.NewVars()}
	for name, v := range map[string]float64{"gauss.mean": 0.5, "gauss.log_sd": math.Log(0.25)} {
		x := exec.NewTensor(graph.T(graph.F32, 3*side*side))
		for i := range 3 * side * side {
			x.SetAt(i, v)
		}
		if err := run.Vars.Set(name, x); err != nil {
			t.Fatal(err)
		}
	}
	o.run, o.scale = "runs/a", 1
	return &drawing{o: o, backend: backend, run: run, takes: model.Takes(), show: progressbar.NewPhases(io.Discard)}
}

// testPictures are the pictures of the test split, as bytes.
func testPictures(t *testing.T) []byte {
	t.Helper()
	src, err := dataset.Open(pictures, "test")
	if err != nil {
		t.Fatal(err)
	}
	var b data.Block
	if err := src.ReadBlock(0, &b); err != nil {
		t.Fatal(err)
	}
	return b.Values
}

// red compares the red of the cell at (column, row) with that of each pixel.
func red(t *testing.T, m image.Image, column, row int, want func(i int) float64) {
	t.Helper()
	for i := range side * side {
		r, _, _, _ := m.At(2+column*cell+i%side, 2+row*cell+i/side).RGBA()
		if !(math.Abs(float64(r>>8)-want(i)) <= 2) { // the toy adds a little noise
			t.Errorf("column %d, row %d, pixel %d: %d, want %v", column, row, i, r>>8, want(i))
			return
		}
	}
}

func TestBelow(t *testing.T) {
	out, err := toyDrawing(t, options{n: 6, given: pictures, split: "test"}).draw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := "6 samples below the pictures of " + pictures + "/test whose latents they have,"; out.what != want {
		t.Errorf("%q, want %q", out.what, want)
	}
	if cols, rows := 4, 4; out.picture.Bounds().Size() != image.Pt(cols*cell+2, rows*cell+2) {
		t.Fatalf("a picture of %v", out.picture.Bounds())
	}
	raw := testPictures(t)
	for n := range 6 {
		of := func(i int) float64 { return float64(raw[n*3*side*side+i]) }
		red(t, out.picture, n%4, n/4*2, of)
		red(t, out.picture, n%4, n/4*2+1, of)
	}
}

func TestRows(t *testing.T) {
	out, err := toyDrawing(t, options{n: 2, given: pictures, split: "test", interpolate: 3}).draw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if cols, rows := 5, 2; out.picture.Bounds().Size() != image.Pt(cols*cell+2, rows*cell+2) {
		t.Fatalf("a picture of %v", out.picture.Bounds())
	}
	raw := testPictures(t)
	for row := range 2 {
		for column, part := range []float64{0, 0, 0.5, 1, 1} {
			red(t, out.picture, column, row, func(i int) float64 {
				a, b := raw[2*row*3*side*side+i], raw[(2*row+1)*3*side*side+i]
				return (1-part)*float64(a) + part*float64(b)
			})
		}
	}
}

// Latents of a toy are its pictures, so that of 0 times the latents is the grey middle.
func TestMirrored(t *testing.T) {
	if got := opposite(latents{[]float32{1, -2, 3, 0}, 2}, 3); got.dim != 2 || !slices.Equal(got.x, []float32{3, -6, -3, 6, 9, 0, -9, 0}) {
		t.Errorf("got %v", got)
	}
	out, err := toyDrawing(t, options{n: 2, given: pictures, split: "test", interpolate: 3, mirror: 1}).draw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := "2 rows of 3 samples from 1 to -1 times the latents of pictures of " + pictures + "/test,"; out.what != want {
		t.Errorf("%q, want %q", out.what, want)
	}
	raw := testPictures(t)
	for row := range 2 {
		of := func(i int) float64 { return float64(raw[row*3*side*side+i]) }
		for column, sign := range []float64{1, 1, 0, -1} {
			red(t, out.picture, column, row, func(i int) float64 { return 127.5 + sign*(of(i)-127.5) })
		}
	}
}

// Samples of a row have the same noise: between a picture and itself, all are equal.
func TestRowsHaveOneNoise(t *testing.T) {
	d := toyDrawing(t, options{n: 2, interpolate: 4})
	first, err := d.run.First(t.Context(), pictures, "test", 2)
	if err != nil {
		t.Fatal(err)
	}
	dim := len(first) / 2
	h := latents{slices.Concat(first[:dim], first[:dim], first[dim:], first[dim:]), dim}
	var columns [][]float32
	for k := range 4 {
		column, err := d.given(t.Context(), between(h, k, 4))
		if err != nil {
			t.Fatal(err)
		}
		columns = append(columns, column)
	}
	if !slices.Equal(columns[0], columns[3]) {
		t.Error("the first and the last sample of a row differ, and their latents do not")
	}
	if slices.Equal(columns[0], first) {
		t.Error("the toy adds no noise, so this test shows nothing")
	}
	d.o.seed++
	if other, err := d.given(t.Context(), between(h, 0, 4)); err != nil || slices.Equal(other, columns[0]) {
		t.Errorf("two seeds have the same noise, %v", err)
	}
}

// Two seeds draw other samples.
func TestSeeds(t *testing.T) {
	var drawn [2][]color.Color
	for i := range drawn {
		d := toyDrawing(t, options{n: 4, stats: "batch", seed: uint64(1 + i)})
		out, err := d.draw(t.Context())
		if err != nil || out.what != "4 samples" {
			t.Fatal(out.what, err)
		}
		if size := out.picture.Bounds().Size(); size != image.Pt(2*cell+2, 2*cell+2) { // --scale 1 is as they are
			t.Errorf("a picture of %v", size)
		}
		for y := range out.picture.Bounds().Dy() {
			drawn[i] = append(drawn[i], out.picture.At(y, y))
		}
	}
	if slices.Equal(drawn[0], drawn[1]) {
		t.Error("two seeds draw the same")
	}
}

// What cannot be drawn is said in a sentence.
func TestCheck(t *testing.T) {
	for _, o := range []options{{scale: 1}, {given: "shards"}} {
		o.out = "a.txt"
		takes := algo.Inputs{Shape: graph.D(1, 1, 9), Words: data.ReservedWords()}
		if err := (&drawing{o: o, takes: takes}).check(); err == nil || !strings.HasPrefix(err.Error(), "--scale and --given are of pictures") {
			t.Errorf("sentences with %+v: %v", o, err)
		}
	}
	for _, tt := range []struct {
		c, h, w int
		o       options
		want    string
	}{
		{1, 1, 3, options{}, "--out a.png: the samples of runs/a are points of 3 values, and only those of 2 have a picture: give a name that ends in .csv, .tsv or .npy"},
		{1, 1, 2, options{scale: 2}, "--scale 2 magnifies pictures, and the samples of runs/a are points"},
		{1, 1, 2, options{given: "checkerboard"}, "--given shows samples below pictures, and the samples of runs/a are points"},
		{1, 1, 2, options{}, ""},
		{1, 1, 2, options{out: "a.csv"}, ""},
		{1, 1, 3, options{out: "a.npy"}, ""},
		{1, 1, 3, options{out: "a.csv", given: "checkerboard"}, "--given shows samples below pictures, and the samples of runs/a are points"},
		{3, 4, 4, options{out: "a.csv"}, "--out a.csv: the samples of runs/a are pictures: sentences go into"},
		{1, 1, 2, options{out: "a.txt"}, "--out a.txt: the samples of runs/a are points: sentences go into a file whose name ends in .txt, pictures into a .png, and points"},
	} {
		tt.o.run, tt.o.out = "runs/a", cmp.Or(tt.o.out, "a.png")
		d := &drawing{o: tt.o, takes: toy.Config{C: tt.c, H: tt.h, W: tt.w}.Takes()}
		if err := d.check(); (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.o, err, tt.want)
		}
	}
	d := toyDrawing(t, options{n: 6, given: pictures, split: "test"})
	d.run.Model = sm.Method().Presets[0].Config.Model()
	d.run.Settings.Algo = "sm"
	if _, err := d.draw(t.Context()); err == nil || err.Error() != "the model of runs/a, of --algo sm, does not draw samples with given latents: leave --given out" {
		t.Errorf("a model without latents: %v", err)
	}
	if _, err := toyDrawing(t, options{n: 10, given: pictures, split: "test"}).draw(t.Context()); err == nil || !strings.Contains(err.Error(), "/test holds 9 pictures, and 10 are asked for") {
		t.Errorf("10 of 9: %v", err)
	}
}
