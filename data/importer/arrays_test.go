package importer

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// npyFile is an array as numpy.save writes it.
func npyFile(kind, shape string, values []byte) []byte {
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", kind, shape)
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	b := append([]byte(npyMagic), 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(header)))
	return append(append(b, header...), values...)
}

// pixel is a value that says where it is: of two pictures of 3 channels, 4 rows and 5 columns.
func pixel(n, c, y, x int) byte { return byte(100*n + 30*c + 5*y + x) }

// pixels are those of two pictures, with their dimensions in that order ("nyxc").
func pixels(order string, channels int) (values []byte, shape string) {
	size := map[byte]int{'n': 2, 'c': channels, 'y': 4, 'x': 5}
	var at func(known map[byte]int, left string)
	at = func(known map[byte]int, left string) {
		if left == "" {
			values = append(values, pixel(known['n'], known['c'], known['y'], known['x']))
			return
		}
		for i := range size[left[0]] {
			known[left[0]] = i
			at(known, left[1:])
		}
	}
	at(map[byte]int{}, order)
	var words []string
	for i := range len(order) {
		words = append(words, fmt.Sprint(size[order[i]]))
	}
	return values, "(" + strings.Join(words, ", ") + ")"
}

// However pictures lie in an array, and in whatever whole numbers their classes are, the
// same samples come of it.
func TestArrays(t *testing.T) {
	labels := map[string][]byte{
		"u1": npyFile("|u1", "(2,)", []byte{1, 12}),
		"i1": npyFile("|i1", "(2, 1)", []byte{1, 12}),
		"i8": npyFile("<i8", "(2,)", append([]byte{1, 0, 0, 0, 0, 0, 0, 0, 12}, make([]byte, 7)...)),
		"u2": npyFile(">u2", "(2,)", []byte{0, 1, 0, 12}),
	}
	for _, tt := range []struct {
		order    string
		channels int
	}{{"nyx", 1}, {"nyxc", 1}, {"ncyx", 1}, {"nyxc", 3}, {"ncyx", 3}} {
		values, shape := pixels(tt.order, tt.channels)
		want, _ := pixels("ncyx", tt.channels)
		for kind, classes := range labels {
			in := t.TempDir()
			x := put(t, filepath.Join(in, "x_test.npy"), npyFile("|u1", shape, values))
			y := put(t, filepath.Join(in, "y.npy"), classes)
			s, err := Arrays(t.Context(), []string{x}, []string{y}, Geometry{})
			dir, _ := imported(t, s, err, Options{})
			schema, b := load(t, dir, "test")
			if schema.C != tt.channels || schema.H != 4 || schema.W != 5 || !bytes.Equal(b.Values, want) {
				t.Errorf("of %s, %d channels: %v\n%v, want\n%v", tt.order, tt.channels, schema, b.Values, want)
			}
			if !slices.Equal(b.Labels, []int64{1, 12}) || len(schema.Classes) != 13 || schema.Classes[12] != "12" {
				t.Errorf("of %s: labels %v of classes %v", kind, b.Labels, schema.Classes)
			}
		}
	}
}

// Files are parts of the split that their names say, in their order, with labels or without.
func TestArraysSplits(t *testing.T) {
	in := t.TempDir()
	var files []string
	for i, name := range []string{"b.npy", "a.npy", "a_val.npy"} {
		files = append(files, put(t, filepath.Join(in, name), npyFile("|u1", "(2, 1, 2)", []byte{byte(i), 1, byte(i), 2})))
	}
	s, err := Arrays(t.Context(), files, nil, Geometry{})
	dir, x := imported(t, s, err, Options{})
	if schema, b := load(t, dir, "train"); !bytes.Equal(b.Values, []byte{0, 1, 0, 2, 1, 1, 1, 2}) || b.Labels[0] != -1 || len(schema.Classes) != 0 {
		t.Errorf("train: %v, labels %v, classes %v", b.Values, b.Labels, schema.Classes)
	}
	if _, b := load(t, dir, "val"); !bytes.Equal(b.Values, []byte{2, 1, 2, 2}) || len(x.Splits) != 2 {
		t.Errorf("val: %v, of %d splits", b.Values, len(x.Splits))
	}
	s, err = Arrays(t.Context(), files, nil, Geometry{})
	if _, x = imported(t, s, err, Options{Limit: 3}); x.Splits["train"].Samples != 3 {
		t.Errorf("%d samples of 3", x.Splits["train"].Samples)
	}
}

// Version 2 has a longer header, and Python's words may have other spaces.
func TestNPYVersions(t *testing.T) {
	header := "{'shape':(3,), 'fortran_order':False,'descr':'<i4'}\n"
	b := append([]byte(npyMagic), 2, 0)
	b = append(binary.LittleEndian.AppendUint32(b, uint32(len(header))), header...)
	a, err := readNPY(bytes.NewReader(b))
	if err != nil || a.kind != "<i4" || !slices.Equal(a.shape, []int64{3}) || a.offset != int64(len(b)) || a.text() != "(3,)" {
		t.Errorf("%+v, %v", a, err)
	}
}

// Whole numbers are those of NumPy's kinds, of either order and with or without a sign.
func TestNPYIntegers(t *testing.T) {
	for _, tt := range []struct {
		kind string
		b    []byte
		want int64
	}{
		{"|u1", []byte{200}, 200},
		{"|i1", []byte{200}, -56},
		{"<u2", []byte{1, 0x80}, 0x8001},
		{"<i2", []byte{1, 0x80}, 0x8001 - 1<<16},
		{">i2", []byte{1, 0x80}, 0x180},
		{">u4", []byte{0xff, 0, 0, 2}, 0xff000002},
		{"<i8", []byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, -2},
		{"<i4", []byte{7, 0, 0, 0}, 7},
	} {
		if got := (npy{kind: tt.kind}).integer(tt.b); got != tt.want {
			t.Errorf("%v of %s is %d, want %d", tt.b, tt.kind, got, tt.want)
		}
	}
}

func TestArraysBad(t *testing.T) {
	in := t.TempDir()
	good := put(t, filepath.Join(in, "good.npy"), npyFile("|u1", "(2, 4, 5)", make([]byte, 40)))
	fortran := bytes.Replace(npyFile("|u1", "(2, 4, 5)", make([]byte, 40)), []byte("False, "), []byte("True,  "), 1)
	path := filepath.Join(in, "x.npy")
	for _, tt := range []struct {
		name   string
		x      []byte
		labels []byte // of good; then x is nil
		want   string
	}{
		{"no array", []byte("hello, I am no array"), nil, `offset 0: "hello,", expected`},
		{"a zip", []byte("PK\x03\x04 and more"), nil, "unzip it, and give the .npy files in it"},
		{"nothing", nil, nil, "offset 0: expected the header of a .npy file: the file ends too soon"},
		{"version", append([]byte(npyMagic), 9, 0), nil, "offset 6: version 9 of the format, expected 1, 2 or 3"},
		{"long header", append([]byte(npyMagic), 2, 0, 255, 255, 255, 255), nil, "a header of 4294967295 bytes, expected at most"},
		{"cut header", npyFile("|u1", "(2, 4, 5)", nil)[:40], nil, "offset 8: the header: the file ends too soon"},
		{"records", bytes.ReplaceAll(npyFile("|u1", "(2, 4, 5)", make([]byte, 40)), []byte("'|u1'"), []byte("[('']")), nil, "expected one kind of value, an order and a shape"},
		{"Fortran's order", fortran, nil, "save numpy.ascontiguousarray of the array"},
		{"no pictures", npyFile("|u1", "(0, 4, 5)", nil), nil, "gives the shape (0, 4, 5), expected dimensions of 1 and more"},
		{"many values", npyFile("|u1", "(9999999999, 9999999999, 5)", nil), nil, "of at most 1125899906842624 values in all"},
		{"floats", npyFile("<f4", "(2, 4, 5)", make([]byte, 160)), nil, `values of the kind "<f4", expected bytes (uint8): save numpy.uint8(`},
		{"signed", npyFile("|i1", "(2, 4, 5)", make([]byte, 40)), nil, `values of the kind "|i1", expected bytes`},
		{"no kind", npyFile("", "(2, 4, 5)", make([]byte, 40)), nil, `values of the kind "", expected bytes`},
		{"flat", npyFile("|u1", "(2, 20)", make([]byte, 40)), nil, "the shape (2, 20), expected (N, H, W), or (N, H, W, C) or (N, C, H, W) with 1 or 3 channels"},
		{"rows of numbers", npyFile("<f4", "(5, 2)", make([]byte, 40)), nil, "reshape it, or, if rows are no pictures, take mkshards table"},
		{"transparent", npyFile("|u1", "(2, 4, 5, 4)", make([]byte, 160)), nil, "the shape (2, 4, 5, 4), expected"},
		{"either", npyFile("|u1", "(2, 3, 5, 3)", make([]byte, 90)), nil, "the shape (2, 3, 5, 3), which may be"},
		{"high", npyFile("|u1", "(2, 20000, 1)", nil), nil, "pictures of 20000×1, expected sides of at most 16384"},
		{"cut", npyFile("|u1", "(2, 4, 5)", make([]byte, 39)), nil, "167 bytes, expected 168 for an array of the shape (2, 4, 5)"},
		{"more", npyFile("|u1", "(2, 4, 5)", make([]byte, 41)), nil, "169 bytes, expected 168"},
		{"another size", npyFile("|u1", "(2, 5, 4)", make([]byte, 40)), nil, "pictures of 5×4 and 1 channels, expected what " + good + " has, pictures of 4×5 and 1 channels"},
		{"labels of floats", nil, npyFile("<f8", "(2,)", make([]byte, 16)), `values of the kind "<f8", expected whole numbers`},
		{"labels of more", nil, npyFile("|u1", "(3,)", make([]byte, 3)), "the shape (3,), expected (2,): " + good + " has so many samples"},
		{"labels of one each", nil, npyFile("|u1", "(2, 10)", make([]byte, 20)), "the shape (2, 10), expected (2,)"},
		{"labels below 0", nil, npyFile("|i1", "(2,)", []byte{3, 255}), "label 1 is -1, expected 0 to 65535"},
		{"labels above", nil, npyFile("<i4", "(2,)", []byte{0, 0, 1, 0, 0, 0, 0, 0}), "label 0 is 65536, expected 0 to 65535"},
	} {
		put(t, path, append(tt.x, tt.labels...))
		xs, ys := []string{good, path}, []string(nil)
		if tt.labels != nil {
			xs, ys = []string{good}, []string{path}
		}
		if _, err := Arrays(t.Context(), xs, ys, Geometry{}); err == nil || !strings.HasPrefix(err.Error(), path+": ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
	if _, err := Arrays(t.Context(), []string{good, good}, []string{good}, Geometry{}); err == nil || !strings.HasPrefix(err.Error(), "1 arrays of labels and 2 of pictures") {
		t.Errorf("error %v", err)
	}
}

// An array that changes while it is imported is no data set.
func TestArrayChanges(t *testing.T) {
	path := put(t, filepath.Join(t.TempDir(), "x.npy"), npyFile("|u1", "(2, 4, 5)", make([]byte, 40)))
	s, err := Arrays(t.Context(), []string{path}, nil, Geometry{})
	if err != nil {
		t.Fatal(err)
	}
	put(t, path, npyFile("|u1", "(2, 5, 4)", make([]byte, 40)))
	out := filepath.Join(t.TempDir(), "out")
	if _, err := Run(t.Context(), s, Options{Out: out, SkipBad: true}); err == nil || !strings.Contains(err.Error(), path+": another array than a moment ago") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Errorf("%s is there: %v", out, err)
	}
}

// FuzzNPY reads any header.
func FuzzNPY(f *testing.F) {
	f.Add(npyFile("|u1", "(2, 4, 5)", []byte{1, 2}))
	f.Add(npyFile("<i8", "()", nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := readNPY(bytes.NewReader(b))
		if err != nil {
			return
		}
		if n := a.values(); n < 1 || n > npyValues || a.offset > int64(len(b)) || a.width() < 0 || a.width() > 8 {
			t.Errorf("%+v of %d values", a, n)
		}
		var x array
		if x.lies(a, Geometry{}) == nil && (x.n < 1 || x.n*int64(x.planes*x.h*x.w) != a.values()) {
			t.Errorf("%+v of %+v", x, a)
		}
	})
}
