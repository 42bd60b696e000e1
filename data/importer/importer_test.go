package importer

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/data/shard"
)

// The order in which a folder's pictures are mixed is part of every data set made of one,
// and no two splits have the same.
func TestMixIsFrozen(t *testing.T) {
	dir := t.TempDir()
	for _, split := range []string{"train", "val", "test"} {
		for i := range 9 {
			put(t, filepath.Join(dir, split, fmt.Sprintf("%d.png", i)), dot(t))
		}
	}
	s, err := Folder(t.Context(), dir, Geometry{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range []string{"763582401", "240631758", "027581436"} {
		got := ""
		for it, err := range s.Splits[k].Items(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			got += strings.TrimSuffix(filepath.Base(it.Name), ".png")
		}
		if got != want {
			t.Errorf("%s is mixed as %s, want %s", s.Splits[k].Name, got, want)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestCIFARBinary(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "data_batch_1.bin"), cifarFile(12))
	put(t, filepath.Join(dir, "data_batch_2.bin"), cifarFile(3))
	put(t, filepath.Join(dir, "test_batch.bin"), cifarFile(4))
	put(t, filepath.Join(dir, "batches.meta.txt"), nil)
	put(t, filepath.Join(dir, "readme.html"), nil) // behind some batches
	s, err := CIFAR10(t.Context(), []string{dir}, Geometry{})
	out, x := imported(t, s, err, Options{})
	if x.Splits["train"].Samples != 15 || x.Splits["test"].Samples != 4 {
		t.Errorf("splits %+v", x.Splits)
	}
	_, b := load(t, out, "train")
	if !slices.Equal(b.Labels, []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 0, 1, 2}) || b.Values[11*cifarPixels] != 11 {
		t.Errorf("labels %v", b.Labels)
	}
}

// Of stored pictures, too, each plane is made of its own colour, and grey of all.
func TestStoredColours(t *testing.T) {
	record := []byte{3}
	for _, v := range []byte{10, 100, 200} { // red, green, blue
		record = append(record, bytes.Repeat([]byte{v}, cifarSide*cifarSide)...)
	}
	path := put(t, filepath.Join(t.TempDir(), "data_batch_1.bin"), record)
	for want, g := range map[string]Geometry{
		"3×8×8 U8": {Size: data.Square(8)}, "3×20×20 U8": {Crop: data.Square(20)}, "1×32×32 U8": {Channels: 1},
	} {
		s, err := CIFAR10(t.Context(), []string{path}, g)
		out, _ := imported(t, s, err, Options{})
		schema, b := load(t, out, "train")
		if schema.String() != want || b.Labels[0] != 3 {
			t.Errorf("%v of label %d, want %s", schema, b.Labels[0], want)
		}
		for i, v := range b.Values {
			colour := []byte{10, 100, 200}[i*schema.C/len(b.Values)]
			if schema.C == 1 {
				colour = 84 // 0.299·10 + 0.587·100 + 0.114·200 = 84.49
			}
			if v != colour {
				t.Fatalf("%s: value %d is %d, want %d", want, i, v, colour)
			}
		}
	}
}

// CIFAR-100 has two labels a record: read as CIFAR-10 its pictures are noise, and --on-bad skip
// would keep those whose label is of ten.
func TestCIFAR100(t *testing.T) {
	path := put(t, filepath.Join(t.TempDir(), "train.bin"), make([]byte, 7*(cifarRecord+1)))
	if _, err := CIFAR10(t.Context(), []string{path}, Geometry{}); err == nil || !strings.HasPrefix(err.Error(), path+": 7 records of 3074 bytes, as CIFAR-100 has") {
		t.Errorf("%v", err)
	}
}

func TestWebDataset(t *testing.T) {
	red, blue := color.RGBA{R: 255, A: 255}, color.RGBA{B: 255, A: 255}
	body := tarOf(t,
		file{"set/000.png", pngOf(t, plain(6, 6, red))}, file{"set/000.cls", []byte("1\n")}, file{"set/000.other.json", []byte("{}")},
		file{"set/001.cls", []byte("0")}, file{"set/001.JPG", jpegOf(t, plain(6, 6, blue))},
	)
	for name, b := range map[string][]byte{"a.tar": body, "a.tar.gz": gz(t, body), "a.tar.zst": zst(t, body)} {
		dir := t.TempDir()
		put(t, filepath.Join(dir, name), b)
		s, err := WebDataset(t.Context(), []string{dir}, Geometry{})
		out, _ := imported(t, s, err, Options{})
		schema, got := load(t, out, "train")
		if schema.H != 6 || !slices.Equal(got.Labels, []int64{1, 0}) || !slices.Equal(schema.Classes, []string{"0", "1"}) {
			t.Errorf("%s: schema %v, labels %v", name, schema, got.Labels)
		}
		if p := got.Values; p[0] != 255 || p[36] != 0 || p[108] > 3 || p[108+72] < 252 {
			t.Errorf("%s: first pixels %d %d, %d %d", name, p[0], p[36], p[108], p[108+72])
		}
	}
}

func celebaZip(t testing.TB, names ...string) string {
	t.Helper()
	var files []file
	for i, n := range names {
		m := plain(178, 218, color.Gray{uint8(20 * i)})
		files = append(files, file{"img/" + n, jpegOf(t, m)})
	}
	return put(t, filepath.Join(t.TempDir(), "celeba.zip"), zipOf(t, files...))
}

// The official splits are of 162,770 pictures, 19,867 and 19,962, numbered from 1.
func TestOfficialSplit(t *testing.T) {
	sizes, last := [3]int{}, 0
	for n := 1; n <= 202_599; n++ {
		split, err := officialSplit(fmt.Sprintf("%06d.jpg", n))
		if err != nil || split < last {
			t.Fatalf("picture %d: split %d after %d, %v", n, split, last, err)
		}
		sizes[split]++
		last = split
	}
	if want := [3]int{162_770, 19_867, 19_962}; sizes != want {
		t.Errorf("sizes %v, want %v", sizes, want)
	}
	if _, err := officialSplit("000000.jpg"); err == nil {
		t.Error("picture 0 has a split")
	}
}

// A partition has a name and its split, 0 to 2, on each line.
func TestPartition(t *testing.T) {
	list, err := parsePartition(strings.NewReader("1.jpg 0\r\n\n2.jpg  1\n3.jpg 2"))
	if err != nil || !maps.Equal(list, map[string]int{"1.jpg": 0, "2.jpg": 1, "3.jpg": 2}) {
		t.Errorf("%v, %v", list, err)
	}
	for text, want := range map[string]string{
		"1.jpg 3": "line 1: \"1.jpg 3\", expected a file name and 0, 1 or 2", "\n1.jpg /": "line 2: \"1.jpg /\", expected", "1.jpg 10": "line 1: \"1.jpg 10\", expected",
		"1.jpg": "line 1: \"1.jpg\", expected", "1.jpg 0 1": "line 1: \"1.jpg 0 1\", expected", "1.jpg 0\n1.jpg 0": "line 2: 1.jpg is listed twice",
	} {
		if _, err := parsePartition(strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestCelebA(t *testing.T) {
	src := celebaZip(t, "000001.jpg", "000002.jpg", "162771.jpg", "182638.jpg")
	list := put(t, filepath.Join(t.TempDir(), "list.txt"), []byte("000001.jpg 2\r\n000002.jpg 0\r\n162771.jpg 0\r\n182638.jpg 1\r\n999999.jpg 0\r\n"))
	for _, tt := range []struct {
		partition        string
		train, val, test int
	}{{"", 2, 1, 1}, {list, 2, 1, 1}} {
		s, err := CelebA(t.Context(), src, tt.partition, Geometry{Crop: data.Square(160), Size: data.Square(32)})
		out, x := imported(t, s, err, Options{})
		for split, n := range map[string]int{"train": tt.train, "val": tt.val, "test": tt.test} {
			if got := x.Splits[split].Samples; got != uint64(n) {
				t.Errorf("partition %q: %s has %d, want %d", tt.partition, split, got, n)
			}
		}
		_, b := load(t, out, "test")
		want := byte(60) // 182638 by number
		if tt.partition != "" {
			want = 0
		}
		if b.Labels[0] != -1 || b.Values[500] != want {
			t.Errorf("partition %q: test is picture of grey %d, want %d", tt.partition, b.Values[500], want)
		}
	}
}

// The crop is the centre square, and it is part of the digest.
func TestCropIsCentredAndNamed(t *testing.T) {
	m := image.NewRGBA(image.Rect(0, 0, 178, 218))
	for y := range 218 {
		for x := range 178 {
			m.Set(x, y, color.RGBA{uint8(x), uint8(y), 0, 255})
		}
	}
	p, err := Geometry{Crop: data.Square(160)}.decodeNow(t.Context(), inMemory(pngOf(t, m)))
	if err != nil || p[0] != 9 || p[160*160] != 29 || p[160*160-1] != 168 || p[2*160*160-1] != 188 {
		t.Errorf("crop 160: corner %d,%d, opposite %d,%d, %v", p[0], p[160*160], p[160*160-1], p[2*160*160-1], err)
	}
	digests := map[string]int{}
	for _, crop := range []int{0, 140, 160, 178} {
		s, err := CelebA(t.Context(), celebaZip(t, "000001.jpg"), "", Geometry{Crop: data.Square(crop), Size: data.Square(8)}) // of one grey: the same samples
		dir, _ := imported(t, s, err, Options{})
		r, err := shard.Open(dir, "train")
		if err != nil {
			t.Fatal(err)
		}
		digests[r.Digest()] = crop
	}
	if len(digests) != 4 {
		t.Errorf("4 crops have %d digests", len(digests))
	}
}

// Without a crop the shorter side is resized and the longer one cut.
func TestResizeThenCut(t *testing.T) {
	m := plain(20, 40, color.White)
	for y := range 10 { // a black margin of a quarter, cut away with the top
		for x := range 20 {
			m.(*image.RGBA).Set(x, y, color.Black)
		}
	}
	p, err := Geometry{Size: data.Square(10), Channels: 1}.decodeNow(t.Context(), inMemory(pngOf(t, m)))
	if err != nil || len(p) != 100 || p[50] != 255 || p[0] < 200 {
		t.Errorf("%v, %v", p, err)
	}
}

// Shrinking is antialiased: a fine chequerboard becomes grey.
func TestResizeIsAntialiased(t *testing.T) {
	m := image.NewGray(image.Rect(0, 0, 64, 64))
	for i := range m.Pix {
		m.Pix[i] = 255 * uint8((i%64+i/64)%2)
	}
	p, err := Geometry{Size: data.Square(8), Channels: 1}.decodeNow(t.Context(), inMemory(pngOf(t, m)))
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range p {
		if v < 120 || v > 135 {
			t.Fatalf("pixel %d is %d, want about 128", i, v)
		}
	}
}

func TestColourModels(t *testing.T) {
	cmyk := image.NewCMYK(image.Rect(0, 0, 2, 2))
	cmyk.Set(0, 0, color.CMYK{C: 255})
	half := image.NewNRGBA(image.Rect(0, 0, 1, 1))
	half.Set(0, 0, color.NRGBA{R: 200, G: 100, B: 50, A: 10})
	deep := image.NewNRGBA64(image.Rect(0, 0, 1, 1))
	deep.Set(0, 0, color.NRGBA64{R: 0xffff, A: 0x8000})
	clear := image.NewNRGBA64(image.Rect(0, 0, 1, 1))
	clear.Set(0, 0, color.NRGBA64{R: 200<<8 | 17, G: 100<<8 | 250, B: 50 << 8})
	palette := image.NewPaletted(image.Rect(0, 0, 1, 1), color.Palette{color.NRGBA{1, 2, 3, 255}})
	tests := []struct {
		name string
		m    image.Image
		want []byte
	}{
		{"grey", plain(1, 1, color.Gray{77}), []byte{77, 77, 77}},
		{"transparency is dropped", half, []byte{200, 100, 50}},
		{"16 bits", deep, []byte{255, 0, 0}},
		{"16 bits, quite transparent", clear, []byte{200, 100, 50}},
		{"palette", palette, []byte{1, 2, 3}},
		{"cmyk", cmyk.SubImage(image.Rect(0, 0, 1, 1)), []byte{0, 255, 255}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := opaque(tt.m, tt.m.Bounds(), 0)
			if got := m.Pix[:3]; !bytes.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	p, err := Geometry{}.decodeNow(t.Context(), inMemory(jpegOf(t, image.NewGray(image.Rect(0, 0, 8, 8))))) // a greyscale JPEG
	if err != nil || len(p) != 3*64 {
		t.Errorf("greyscale JPEG: %d bytes, %v", len(p), err)
	}
}

// Grey is ITU-R 601's luma, as of PIL's convert("L").
func TestGreyWeights(t *testing.T) {
	for c, want := range map[color.RGBA]byte{
		{R: 255, A: 255}: 76, {G: 255, A: 255}: 150, {B: 255, A: 255}: 29,
		{R: 255, G: 255, B: 255, A: 255}: 255, {R: 10, G: 20, B: 30, A: 255}: 18,
	} {
		p, err := Geometry{Channels: 1}.decodeNow(t.Context(), inMemory(pngOf(t, plain(1, 1, c))))
		if err != nil || !bytes.Equal(p, []byte{want}) {
			t.Errorf("%v: %v, %v; want %d", c, p, err, want)
		}
	}
}

// Whatever form a picture has, its colours are the first eight bits of those stored.
func TestColoursAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	deep, half := image.NewNRGBA64(image.Rect(0, 0, 40, 30)), image.NewNRGBA(image.Rect(0, 0, 40, 30))
	for _, pix := range [][]byte{deep.Pix, half.Pix} {
		for i := range pix {
			pix[i] = byte(r.Uint32())
			if i%16 < 4 { // some opaque, some clear
				pix[i] = byte(255 * (i & 1))
			}
		}
	}
	few := image.NewPaletted(image.Rect(0, 0, 5, 4), color.Palette{color.NRGBA{200, 100, 50, 0}, color.NRGBA{1, 2, 3, 128}})
	for i := range few.Pix {
		few.Pix[i] = byte(r.Uint32() & 1)
	}
	for _, m := range []image.Image{deep, half, few, deep.SubImage(image.Rect(3, 4, 20, 25)), half.SubImage(image.Rect(3, 4, 20, 25))} {
		b := m.Bounds()
		got := opaque(m, b, 0)
		for y := range b.Dy() {
			for x := range b.Dx() {
				var want color.NRGBA
				switch c := m.At(b.Min.X+x, b.Min.Y+y).(type) {
				case color.NRGBA:
					want = c
				case color.NRGBA64:
					want = color.NRGBA{R: uint8(c.R >> 8), G: uint8(c.G >> 8), B: uint8(c.B >> 8)}
				}
				if c := got.RGBAAt(x, y); c != (color.RGBA{want.R, want.G, want.B, 255}) {
					t.Fatalf("%T at %d, %d: %v, want %v", m, x, y, c, want)
				}
			}
		}
	}
}
