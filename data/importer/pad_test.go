package importer

import (
	"bytes"
	"image"
	"image/color"
	"path/filepath"
	"testing"

	"ebtrain/data"
)

// mnist28 has two digits of 28×28, all 0 and all 1 but for their corners, 200.
func mnist28(t *testing.T) string {
	t.Helper()
	pictures := idxFile(idxPictures, 2, 28, 28)
	for i := range 2 {
		pictures[16+784*i], pictures[16+784*i+783] = 200, 200
	}
	dir := t.TempDir()
	put(t, filepath.Join(dir, "train-images-idx3-ubyte"), pictures)
	put(t, filepath.Join(dir, "train-labels-idx1-ubyte"), idxFile(idxLabels, 2))
	return dir
}

// Every importer fits its pictures to a network's size, with --pad or --size.
func TestEveryImporterFits(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "bin", "data_batch_1.bin"), cifarFile(3))
	var entries []file
	for i := range 10 {
		entries = append(entries, file{string(rune('0'+i)) + ".png", pngOf(t, plain(32, 32, color.Gray{uint8(i)}))},
			file{string(rune('0'+i)) + ".cls", []byte{byte('0' + i)}})
	}
	put(t, filepath.Join(dir, "tar", "a.tar"), tarOf(t, entries...))
	put(t, filepath.Join(dir, "folder", "a.png"), pngOf(t, plain(20, 28, color.White)))
	grey := put(t, filepath.Join(dir, "grey.npy"), npyFile("|u1", "(2, 4, 5)", make([]byte, 40)))
	for _, tt := range []struct {
		name    string
		open    func(g Geometry) (*Set, error)
		g       Geometry
		c, h, w int
	}{
		{"mnist as it is", func(g Geometry) (*Set, error) { return MNIST(t.Context(), mnist28(t), g) }, Geometry{}, 1, 28, 28},
		{"mnist padded", func(g Geometry) (*Set, error) { return MNIST(t.Context(), mnist28(t), g) }, Geometry{Pad: 2}, 1, 32, 32},
		{"mnist resized", func(g Geometry) (*Set, error) { return MNIST(t.Context(), mnist28(t), g) }, Geometry{Size: data.Square(32)}, 1, 32, 32},
		{"mnist cropped, padded, resized, in colour", func(g Geometry) (*Set, error) { return MNIST(t.Context(), mnist28(t), g) }, Geometry{Crop: data.Square(20), Pad: 4, Size: data.Square(16), Channels: 3}, 3, 16, 16},
		{"cifar10 resized", func(g Geometry) (*Set, error) { return CIFAR10(t.Context(), []string{filepath.Join(dir, "bin")}, g) }, Geometry{Size: data.Square(64)}, 3, 64, 64},
		{"cifar10 padded", func(g Geometry) (*Set, error) { return CIFAR10(t.Context(), []string{filepath.Join(dir, "bin")}, g) }, Geometry{Pad: 16}, 3, 64, 64},
		{"cifar10 in grey", func(g Geometry) (*Set, error) { return CIFAR10(t.Context(), []string{filepath.Join(dir, "bin")}, g) }, Geometry{Channels: 1}, 1, 32, 32},
		{"cifar10 tar resized", func(g Geometry) (*Set, error) { return CIFAR10(t.Context(), []string{filepath.Join(dir, "tar")}, g) }, Geometry{Size: data.Square(64)}, 3, 64, 64},
		{"cifar10 tar padded", func(g Geometry) (*Set, error) { return CIFAR10(t.Context(), []string{filepath.Join(dir, "tar")}, g) }, Geometry{Pad: 16}, 3, 64, 64},
		{"wds padded", func(g Geometry) (*Set, error) { return WebDataset(t.Context(), []string{filepath.Join(dir, "tar")}, g) }, Geometry{Pad: 1}, 3, 34, 34},
		{"celeba padded", func(g Geometry) (*Set, error) { return CelebA(t.Context(), celebaZip(t, "000001.jpg"), "", g) }, Geometry{Crop: data.Square(140), Pad: 10, Size: data.Square(32)}, 3, 32, 32},
		{"celeba padded to a side", func(g Geometry) (*Set, error) { return CelebA(t.Context(), celebaZip(t, "000001.jpg"), "", g) }, Geometry{Crop: data.Square(28), Pad: 2}, 3, 32, 32},
		{"arrays padded", func(g Geometry) (*Set, error) { return Arrays(t.Context(), []string{grey}, nil, g) }, Geometry{Pad: 3}, 1, 10, 11},
		{"arrays resized, in colour", func(g Geometry) (*Set, error) { return Arrays(t.Context(), []string{grey}, nil, g) }, Geometry{Size: data.Square(8), Channels: 3}, 3, 8, 8},
		{"folder padded", func(g Geometry) (*Set, error) { return Folder(t.Context(), filepath.Join(dir, "folder"), g, 0) }, Geometry{Pad: 3}, 3, 34, 26},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := tt.open(tt.g)
			out, x := imported(t, s, err, Options{})
			schema, b := load(t, out, "train")
			if schema.C != tt.c || schema.H != tt.h || schema.W != tt.w {
				t.Errorf("samples of %v, want %d×%d×%d", schema, tt.c, tt.h, tt.w)
			}
			if _, ok := x.Preprocessing["pad"]; ok != (tt.g.Pad > 0) {
				t.Errorf("the index says %v", x.Preprocessing)
			}
			if len(b.Values) != len(b.Labels)*schema.SampleBytes() {
				t.Errorf("%d bytes of %d samples", len(b.Values), len(b.Labels))
			}
		})
	}
}

// The margin is black and the picture in its middle unchanged.
func TestPad(t *testing.T) {
	s, err := MNIST(t.Context(), mnist28(t), Geometry{Pad: 2})
	out, _ := imported(t, s, err, Options{})
	_, b := load(t, out, "train")
	want := make([]byte, 2*32*32)
	for i := range 2 {
		digit := bytes.Repeat([]byte{byte(i)}, 784)
		digit[0], digit[783] = 200, 200
		for row := range 28 {
			copy(want[1024*i+32*(row+2)+2:], digit[28*row:28*row+28])
		}
	}
	if !bytes.Equal(b.Values, want) {
		t.Errorf("got %v", b.Values)
	}
	clear := image.NewNRGBA(image.Rect(0, 0, 1, 1))
	clear.Set(0, 0, color.NRGBA{R: 200, A: 10})
	half, err := Geometry{Pad: 1}.decodeNow(t.Context(), inMemory(pngOf(t, clear)))
	if want := []byte{0, 0, 0, 0, 200, 0, 0, 0, 0}; err != nil || !bytes.Equal(half[:9], want) {
		t.Errorf("of a transparent picture: %v, %v", half, err)
	}
}
