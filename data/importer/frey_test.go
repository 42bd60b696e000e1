package importer

import (
	"bytes"
	"encoding/binary"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ebtrain/data"
)

// matFile is a MAT-file of level 5 with one variable, stored in doubles.
func matFile(name string, rows, cols int, values func(i int) float64) []byte {
	put := func(b []byte, v ...uint32) []byte {
		for _, v := range v {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
		return b
	}
	const double, matrix = 9, 14
	n := rows * cols
	b := append(bytes.Repeat([]byte(" "), 124), 0, 1, 'I', 'M')
	b = put(b, matrix, uint32(48+8+8*n))
	b = put(b, 6, 8, 6, 0)                            // flags: class double
	b = put(b, 5, 8, uint32(rows), uint32(cols))      // sizes
	b = append(put(b, 1, uint32(len(name))), name...) // name, up to 8 bytes
	b = append(b, make([]byte, 8-len(name))...)       //
	b = put(b, double, uint32(8*n))                   // values
	for i := range n {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(values(i)))
	}
	return b
}

// freyLike is such a file of the right size: pixel p of frame f is (3p + f) mod
// 256.
func freyLike() []byte {
	return matFile("ff", 560, 1965, func(i int) float64 { return float64(byte(3*(i%560) + i/560)) })
}

func TestFrey(t *testing.T) {
	dir := t.TempDir()
	path := put(t, filepath.Join(dir, freyFile), freyLike())
	for _, src := range []string{dir, path} {
		s, err := Frey(t.Context(), src, Geometry{})
		out, x := imported(t, s, err, Options{})
		if x.Preprocessing["importer"] != "frey" {
			t.Errorf("preprocessing %v", x.Preprocessing)
		}
		first := 0
		for _, p := range []struct {
			split string
			n     int
		}{{"train", 1400}, {"val", 300}, {"test", 265}} {
			schema, b := load(t, out, p.split)
			if schema.String() != "1×28×20 U8" || len(b.Labels) != p.n || slices.Max(b.Labels) != -1 {
				t.Fatalf("%s: %v, %d samples", p.split, schema, len(b.Labels))
			}
			for i, v := range b.Values {
				if frame, pixel := first+i/560, i%560; v != byte(3*pixel+frame) {
					t.Fatalf("%s: pixel %d of frame %d is %d", p.split, pixel, frame, v)
				}
			}
			first += p.n
		}
	}
}

// The faces fit square networks as other pictures do.
func TestFreyFits(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: how odd and damaged Frey faces are read is not looked at; TestFrey reads good ones")
	}
	path := put(t, filepath.Join(t.TempDir(), "faces.mat"), freyLike())
	for want, g := range map[string]Geometry{
		"1×32×24 U8": {Pad: 2}, "3×28×20 U8": {Channels: 3}, "1×32×32 U8": {Size: data.Square(32)}, "1×20×20 U8": {Crop: data.Square(20)},
	} {
		s, err := Frey(t.Context(), path, g)
		out, _ := imported(t, s, err, Options{Limit: 2})
		if schema, b := load(t, out, "val"); schema.String() != want || len(b.Labels) != 2 {
			t.Errorf("%v, %d samples, want %s", schema, len(b.Labels), want)
		}
	}
}

func TestFreyBad(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: how odd and damaged Frey faces are read is not looked at; TestFrey reads good ones")
	}
	whole := freyLike()
	zero := func(int) float64 { return 0 }
	one := func(at int, v float64) func(int) float64 {
		return func(i int) float64 {
			if i == at {
				return v
			}
			return 1
		}
	}
	for name, tt := range map[string]struct {
		b    []byte
		want string
	}{
		"not a MAT-file":  {pngOf(t, plain(30, 30, color.White)), "not a MAT-file of level 5"},
		"empty":           {nil, "not a MAT-file of level 5"},
		"other variable":  {matFile("faces", 2, 3, zero), "no variable ff in it, only faces (2×3 double)"},
		"no variable":     {whole[:128], "no variables in it, expected ff"},
		"transposed":      {matFile("ff", 1965, 560, zero), "ff (1965×560 double), expected 560×1965"},
		"other sizes":     {matFile("ff", 560, 12, zero), "ff (560×12 double), expected 560×1965"},
		"cut":             {whole[:len(whole)/2], "the file ends too soon: it was cut short, so copy or download it again"},
		"cut in the head": {whole[:140], "the file ends too soon: it was cut short, so copy or download it again"},
		"cut before that": {[]byte("MATLAB 5.0 MAT-file"), "it has 19 bytes, and its head alone 128: it was cut short, so copy or download it again"},
		"between 0 and 1": {matFile("ff", 560, 1965, one(561, 0.5)), "pixel 1 of frame 1 in ff is 0.5, expected a whole number from 0 to 255"},
		"negative":        {matFile("ff", 560, 1965, one(0, -1)), "pixel 0 of frame 0 in ff is -1"},
		"above 255":       {matFile("ff", 560, 1965, one(559, 256)), "pixel 559 of frame 0 in ff is 256"},
		"not a number":    {matFile("ff", 560, 1965, one(0, math.NaN())), "in ff is NaN"},
	} {
		path := put(t, filepath.Join(t.TempDir(), "x.mat"), tt.b)
		_, err := Frey(t.Context(), path, Geometry{})
		if err == nil || !strings.Contains(err.Error(), path+": ") || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one sentence with %q", name, err, tt.want)
		}
	}
	if _, err := Frey(t.Context(), t.TempDir(), Geometry{}); err == nil || !strings.Contains(err.Error(), freyFile) {
		t.Errorf("a directory without the file: %v", err)
	}
}

func TestRealFrey(t *testing.T) {
	path := real(t, "frey/frey_rawface.mat")
	s, err := Frey(t.Context(), path, Geometry{})
	out, _ := imported(t, s, err, Options{})
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw = raw[len(raw)-560*1965:] // its one variable is stored as it is
	for _, split := range []string{"train", "val", "test"} {
		_, b := load(t, out, split)
		if !bytes.Equal(b.Values, raw[:len(b.Values)]) {
			t.Errorf("%s is not the next %d frames of the file", split, len(b.Labels))
		}
		raw = raw[len(b.Values):]
	}
	_, b := load(t, out, "train")
	var sum, squares float64
	for _, v := range b.Values {
		x := float64(v) / 255
		sum, squares = sum+x, squares+x*x
	}
	n := float64(len(b.Values))
	// The training frames' mean and deviation as the authors of BiSM give them.
	mean := sum / n
	if sd := math.Sqrt(squares/n - mean*mean); !(math.Abs(mean-0.6049) <= 1e-4) || !(math.Abs(sd-0.1763) <= 1e-4) {
		t.Errorf("mean %.4f, standard deviation %.4f, want 0.6049 and 0.1763", mean, sd)
	}
	// A face is upright where rows are 20 pixels long: neighbours are alike in
	// both directions, as they are not with rows of 28.
	if down, wrong := difference(b.Values, 20), difference(b.Values, 28); wrong < 2*down {
		t.Errorf("pixels differ by %.1f from those 20 on, by %.1f from those 28 on", down, wrong)
	}
}

// difference is the mean distance of pixels of the same frame that are lag apart.
func difference(pixels []byte, lag int) float64 {
	sum, n := 0.0, 0
	for i := range pixels {
		if i%560 >= lag {
			sum += math.Abs(float64(pixels[i]) - float64(pixels[i-lag]))
			n++
		}
	}
	return sum / float64(n)
}
