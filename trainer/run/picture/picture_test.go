package picture

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// text is the picture as rows of hex levels; a colour is r/g/b.
func text(m image.Image) string {
	var b strings.Builder
	r := m.Bounds()
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			if g, ok := m.At(x, y).(color.Gray); ok {
				fmt.Fprintf(&b, "%02x ", g.Y)
				continue
			}
			c := color.NRGBAModel.Convert(m.At(x, y)).(color.NRGBA)
			fmt.Fprintf(&b, "%02x/%02x/%02x ", c.R, c.G, c.B)
		}
		b.WriteByte('\n')
	}
	return strings.ReplaceAll(b.String(), " \n", "\n")
}

// written is the picture after a trip through a file.
func written(t *testing.T, m image.Image) image.Image {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.png")
	if err := WritePNG(path, m); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	m, err = png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestGridGray(t *testing.T) { // three 1×2 images, two columns, doubled
	m, err := Grid(Signed([]float32{-1, 1, 0, -0.5, 7, float32(math.NaN())}, 3, 1, 1, 2), 2)
	if err != nil {
		t.Fatal(err)
	}
	const want = `80 80 80 80 80 80 80 80 80 80 80 80 80 80
80 80 80 80 80 80 80 80 80 80 80 80 80 80
80 80 00 00 ff ff 80 80 80 80 40 40 80 80
80 80 00 00 ff ff 80 80 80 80 40 40 80 80
80 80 80 80 80 80 80 80 80 80 80 80 80 80
80 80 80 80 80 80 80 80 80 80 80 80 80 80
80 80 ff ff 00 00 80 80 80 80 80 80 80 80
80 80 ff ff 00 00 80 80 80 80 80 80 80 80
80 80 80 80 80 80 80 80 80 80 80 80 80 80
80 80 80 80 80 80 80 80 80 80 80 80 80 80
`
	if got := text(written(t, m)); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestGridColour(t *testing.T) { // one 1×2 image, planes r, g, b
	m, err := Grid(Unit([]float32{0, 1, 0.2, -3, 0.4, 0.6}, 1, 3, 1, 2), 1)
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(text(written(t, m)), "\n")
	if want := "80/80/80 80/80/80 00/33/66 ff/00/99 80/80/80 80/80/80"; len(rows) != 6 || rows[2] != want {
		t.Errorf("%d rows, the third is %s, want %s", len(rows)-1, rows[2], want)
	}
	if n, ok := m.(*image.NRGBA); !ok || !n.Opaque() {
		t.Errorf("%T, want an opaque *image.NRGBA", m)
	}
}

func TestSideBySide(t *testing.T) { // 3 pairs in 3 columns: inputs 0 1 2, below them 3 4 5
	in := Images{[]float32{0, 1, 2}, 3, 1, 1, 1, 0, 255}
	out := Images{[]float32{3, 4, 5}, 3, 1, 1, 1, 0, 255}
	m, err := SideBySide(in, out, 1)
	if err != nil {
		t.Fatal(err)
	}
	const pad = "80 80 80 80 80 80 80 80 80 80 80\n"
	want := pad + pad + "80 80 00 80 80 01 80 80 02 80 80\n" + pad + pad + "80 80 03 80 80 04 80 80 05 80 80\n" + pad + pad
	if got := text(m); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	// 8 pairs: 4 columns, two double rows. Pair 5 is in the second double row.
	pix := make([]float32, 8)
	low, high := Unit(pix, 8, 1, 1, 1), Unit([]float32{0, 0, 0, 0, 0, 1, 0, 0}, 8, 1, 1, 1)
	m, err = SideBySide(low, high, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Bounds().Size(); got != image.Pt(2+4*3, 2+4*3) {
		t.Errorf("size %v, want 14×14", got)
	}
	if got := m.At(2+1*3, 2+3*3); got != (color.Gray{255}) {
		t.Errorf("reconstruction 5 is %v", got)
	}
}

// Pictures of 3×2 pixels in [−0.5, 1.5]: each pixel where it belongs, above and
// below.
func TestNotSquare(t *testing.T) {
	top, bottom := make([]float32, 2*6), make([]float32, 2*6)
	for i := range top {
		top[i] = -0.5 + 2*float32(i)/255
		bottom[i] = 1.5 - 2*float32(i)/255
	}
	in, out := Images{top, 2, 1, 3, 2, -0.5, 1.5}, Images{bottom, 2, 1, 3, 2, -0.5, 1.5}
	const pad = "80 80 80 80 80 80 80 80 80 80\n"
	above := "80 80 00 01 80 80 06 07 80 80\n80 80 02 03 80 80 08 09 80 80\n80 80 04 05 80 80 0a 0b 80 80\n"
	below := "80 80 ff fe 80 80 f9 f8 80 80\n80 80 fd fc 80 80 f7 f6 80 80\n80 80 fb fa 80 80 f5 f4 80 80\n"
	if m, err := SideBySide(in, out, 1); err != nil || text(m) != pad+pad+above+pad+pad+below+pad+pad {
		t.Errorf("%v\n%s", err, text(m))
	}
	if m, err := Grid(in, 1); err != nil || text(m) != pad+pad+above+pad+pad {
		t.Errorf("%v\n%s", err, text(m))
	}
}

func TestSizes(t *testing.T) {
	tests := []struct {
		n, h, w, scale int
		want           image.Point
	}{
		{1, 64, 64, 0, image.Pt(68, 68)},
		{64, 32, 32, 0, image.Pt(8*66+2, 8*66+2)},
		{10, 28, 28, 0, image.Pt(4*86+2, 3*86+2)}, // 28·3 = 84
		{10, 28, 28, 1, image.Pt(4*30+2, 3*30+2)},
		{2, 100, 200, 0, image.Pt(2*202+2, 104)},
		{6, 28, 20, 0, image.Pt(3*82+2, 2*114+2)}, // 20·4 = 80
		{1, 1, 2, 0, image.Pt(132, 68)},           // a pair of numbers
		{1, 1, 100, 0, image.Pt(504, 9)},          // no longer than 512
		{1, 1000, 2, 0, image.Pt(6, 1004)},        // as it is
	}
	for _, tt := range tests {
		m, err := Grid(Signed(make([]float32, tt.n*tt.h*tt.w), tt.n, 1, tt.h, tt.w), tt.scale)
		if err != nil || m.Bounds().Size() != tt.want {
			t.Errorf("%+v: size %v, %v", tt, m.Bounds().Size(), err)
		}
	}
}

func TestErrors(t *testing.T) {
	ok := Signed(make([]float32, 4), 1, 1, 2, 2)
	tests := []struct {
		name  string
		m     Images
		scale int
		want  string
	}{
		{"no images", Signed(nil, 0, 1, 2, 2), 1, "(0,1,2,2)"},
		{"two channels", Signed(make([]float32, 8), 1, 2, 2, 2), 1, "C of 1 or 3"},
		{"too few values", Signed(make([]float32, 3), 1, 1, 2, 2), 1, "3 values, expected 4"},
		{"no range", Images{make([]float32, 4), 1, 1, 2, 2, 1, 1}, 1, "range"},
		{"negative scale", ok, -1, "scale -1"},
	}
	for _, tt := range tests {
		if _, err := Grid(tt.m, tt.scale); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
	}
	if _, err := SideBySide(ok, Signed(make([]float32, 4), 1, 1, 1, 4), 1); err == nil || !strings.Contains(err.Error(), "differ in shape") {
		t.Errorf("different shapes: %v", err)
	}
	if err := WritePNG(filepath.Join(t.TempDir(), "no", "a.png"), image.NewGray(image.Rect(0, 0, 1, 1))); err == nil {
		t.Error("a missing folder gives no error")
	}
}

// What is there and no PNG is somebody's, and an empty file is nothing.
func TestCheckReplace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.png")
	check := func(what string, allowed bool) {
		t.Helper()
		if err := CheckReplace(file); (err == nil) != allowed {
			t.Errorf("%s: %v, want it replaced: %v", what, err, allowed)
		}
	}
	check("nothing", true)
	for content, allowed := range map[string]bool{"": true, "text\n": false, "\x89PNG": false} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		check(fmt.Sprintf("%q", content), allowed)
	}
	if err := WritePNG(file, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	check("a PNG", true)
}
