package importer

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ebtrain/data/mat5"
)

// matVariable is a compressed variable of unsigned bytes, as MATLAB's -v7 writes it.
func matVariable(t testing.TB, name string, values []byte, dims ...uint32) []byte {
	t.Helper()
	put := func(b []byte, v ...uint32) []byte {
		for _, v := range v {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
		return b
	}
	const unsigned8, signed32, unsigned32, matrix, compressed = 2, 5, 6, 14, 15
	body := put(nil, unsigned32, 8, 9, 0) // flags: class uint8
	body = put(put(body, signed32, uint32Of(4*len(dims))), dims...)
	body = append(body, make([]byte, -len(body)&7)...)
	body = append(put(body, 1, uint32Of(len(name))), name...)
	body = append(body, make([]byte, -len(body)&7)...)
	body = append(put(body, unsigned8, uint32Of(len(values))), values...)
	body = append(body, make([]byte, -len(body)&7)...)
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	for _, b := range [][]byte{put(nil, matrix, uint32Of(len(body))), body} {
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return append(put(nil, compressed, uint32Of(z.Len())), z.Bytes()...)
}

func uint32Of(n int) uint32 { return uint32(n) }

func matOf(variables ...[]byte) []byte {
	return append(append(bytes.Repeat([]byte(" "), 124), 0, 1, 'I', 'M'), bytes.Join(variables, nil)...)
}

// svhnPixel is a pixel of the pictures that tests make.
func svhnPixel(n, c, row, col int) byte { return byte(31*n + 7*c + 3*row + 5*col) }

// svhnLike are n pictures, and the digits 1, 2, … 10, 1, …
func svhnLike(t testing.TB, n int) (x, y []byte) {
	t.Helper()
	pixels, digits := make([]byte, 0, n*svhnBytes), make([]byte, n)
	for i := range n {
		for c := range 3 {
			for col := range 32 {
				for row := range 32 {
					pixels = append(pixels, svhnPixel(i, c, row, col))
				}
			}
		}
		digits[i] = byte(i%10 + 1)
	}
	return matVariable(t, "X", pixels, 32, 32, 3, uint32Of(n)), matVariable(t, "y", digits, uint32Of(n), 1)
}

func TestSVHN(t *testing.T) {
	dir := t.TempDir()
	x, y := svhnLike(t, 23)
	path := put(t, filepath.Join(dir, "train_32x32.mat"), matOf(x, y))
	x, y = svhnLike(t, 12)
	put(t, filepath.Join(dir, "test_32x32.mat"), matOf(y, x)) // in either order
	for src, splits := range map[string]map[string]int{
		dir: {"train": 23, "test": 12}, path: {"train": 23}, filepath.Join(dir, "test_32x32.mat"): {"test": 12},
	} {
		s, err := SVHN(t.Context(), src, Geometry{})
		out, index := imported(t, s, err, Options{})
		if len(index.Splits) != len(splits) || index.Preprocessing["importer"] != "svhn" {
			t.Errorf("splits %v, preprocessing %v", index.Splits, index.Preprocessing)
		}
		for split, n := range splits {
			schema, b := load(t, out, split)
			if schema.String() != "3×32×32 U8" || len(schema.Classes) != 10 || len(b.Labels) != n {
				t.Fatalf("%s: %v, %d samples", split, schema, len(b.Labels))
			}
			for i, l := range b.Labels {
				if l != int64((i+1)%10) {
					t.Errorf("%s: picture %d shows %d", split, i, l)
				}
			}
			for i, v := range b.Values {
				if n, c, row, col := i/3072, i/1024%3, i/32%32, i%32; v != svhnPixel(n, c, row, col) {
					t.Fatalf("%s: channel %d, row %d, column %d of picture %d is %d", split, c, row, col, n, v)
				}
			}
		}
	}
}

func TestSVHNBad(t *testing.T) {
	x, y := svhnLike(t, 5)
	digits := func(values ...byte) []byte { return matVariable(t, "y", values, 1, uint32Of(len(values))) }
	spoilt := matOf(x)
	spoilt[len(spoilt)-1] ^= 1 // of the checksum of all that is in X
	for name, tt := range map[string]struct {
		b    []byte
		want string
	}{
		"spoilt":       {spoilt, "checksum"},
		"another file": {[]byte("\x89PNG"), "not a MAT-file of level 5"},
		"nothing":      {matOf(), "no pictures (the variable X) in it, only nothing"},
		"digits only":  {matOf(y), "no pictures (the variable X) in it, only y (5×1 uint8)"},
		"other sizes":  {matOf(matVariable(t, "X", make([]byte, 28*28*3*2), 28, 28, 3, 2)), "X (28×28×3×2 uint8), expected 32×32×3×N"},
		"grey":         {matOf(matVariable(t, "X", make([]byte, 32*32*5), 32, 32, 5)), "X (32×32×5 uint8), expected 32×32×3×N"},
		"fewer digits": {matOf(x, digits(1, 2, 3, 4)), "5 pictures in X, but 4 digits in y"},
		"digit 0":      {matOf(x, digits(1, 2, 0, 4, 5)), "digit 2 in y is 0, expected 1 to 9, or 10 for 0"},
		"digit 11":     {matOf(digits(11, 2, 3, 4, 5), x), "digit 0 in y is 11"},
		"cut":          {matOf(x)[:len(matOf(x))-20], "the file ends too soon: it was cut short, so copy or download it again"},
	} {
		path := put(t, filepath.Join(t.TempDir(), "train_32x32.mat"), tt.b)
		s, err := SVHN(t.Context(), path, Geometry{})
		if err == nil {
			_, err = Run(t.Context(), s, Options{Out: filepath.Join(t.TempDir(), "out")})
		}
		if err == nil || !strings.Contains(err.Error(), path+": ") || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one sentence with %q", name, err, tt.want)
		}
	}
	if _, err := SVHN(t.Context(), t.TempDir(), Geometry{}); err == nil || !strings.Contains(err.Error(), "expected train_32x32.mat") {
		t.Errorf("an empty directory: %v", err)
	}
	dir := t.TempDir()
	put(t, filepath.Join(dir, "train_32x32.mat"), matOf(x, y))
	put(t, filepath.Join(dir, "test_32x32.mat"), matOf(x))
	if _, err := SVHN(t.Context(), dir, Geometry{}); err == nil || !strings.Contains(err.Error(), "1 of 2 files have digits") {
		t.Errorf("digits in one file: %v", err)
	}
}

// A file that is cut after it was looked at is an error, and not a smaller data set.
func TestSVHNChanges(t *testing.T) {
	x, y := svhnLike(t, 5)
	whole := matOf(x, y)
	path := put(t, filepath.Join(t.TempDir(), "train_32x32.mat"), whole)
	s, err := SVHN(t.Context(), path, Geometry{})
	if err != nil {
		t.Fatal(err)
	}
	put(t, path, whole[:len(matOf(x))-20])
	if _, err := Run(t.Context(), s, Options{Out: filepath.Join(t.TempDir(), "out")}); err == nil || !strings.Contains(err.Error(), "the file ends too soon") {
		t.Errorf("%v", err)
	}
}

// The real pictures, as another reader of the file has them.
func TestRealSVHN(t *testing.T) {
	path := real(t, "svhn/train_first1083_X_32x32.mat")
	s, err := SVHN(t.Context(), path, Geometry{})
	out, _ := imported(t, s, err, Options{})
	if len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "have no classes") {
		t.Errorf("notes %q", s.Notes)
	}
	schema, b := load(t, out, "train")
	if schema.String() != "3×32×32 U8" || len(b.Labels) != 1083 || slices.Max(b.Labels) != -1 {
		t.Fatalf("%v, %d samples", schema, len(b.Labels))
	}
	f, err := openRegular(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	r, err := mat5.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	values, err := r.Values()
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range b.Values {
		n, c, row, col := i/3072, i/1024%3, i/32%32, i%32
		if want := values[n*3072+c*1024+col*32+row]; float64(v) != want {
			t.Fatalf("channel %d, row %d, column %d of picture %d is %d, want %g", c, row, col, n, v, want)
		}
	}
}

func FuzzSVHN(f *testing.F) {
	x, y := svhnLike(f, 1)
	f.Add(matOf(x, y))
	f.Add(matOf(y, x))
	f.Fuzz(func(t *testing.T, b []byte) {
		if n, labels, err := parseSVHN(bytes.NewReader(b)); err == nil && (n < 1 || labels != nil && len(labels) != n) {
			t.Fatalf("%d pictures, %d digits", n, len(labels))
		}
	})
}
