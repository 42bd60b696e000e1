package importer

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"ebtrain/data"
)

// What decoding and scaling allocate is within what is taken for it.
func TestNeedBoundsAllocations(t *testing.T) {
	square := image.Rect(0, 0, 200, 200)
	clear64 := image.NewNRGBA64(square)
	clear64.Set(0, 0, color.NRGBA64{A: 1})
	clear8 := image.NewNRGBA(square)
	for name, b := range map[string][]byte{
		"grey": pngOf(t, image.NewGray(square)), "grey 16": pngOf(t, image.NewGray16(square)),
		"rgb": pngOf(t, plain(200, 200, color.White)), "rgba": pngOf(t, clear8), "rgba 16": pngOf(t, clear64),
		"palette":   pngOf(t, image.NewPaletted(square, color.Palette{color.Black, color.White})),
		"grey jpeg": jpegOf(t, image.NewGray(square)), "jpeg": jpegOf(t, plain(200, 200, color.White)),
		"thin jpeg":   jpegOf(t, image.NewGray(image.Rect(0, 0, 3, 4000))),
		"progressive": mustRead(t, "progressive.jpeg"), "cmyk": mustRead(t, "cmyk.jpeg"), "rgb jpeg": mustRead(t, "rgb.jpeg"), "interlaced": mustRead(t, "interlaced.png"),
	} {
		for _, g := range []Geometry{{}, {Size: data.Square(16)}, {Size: data.Square(300)}, {Pad: 50, Size: data.Square(100)}, {Crop: data.Square(2), Size: data.Square(40)}, {Size: data.Size{H: 7, W: 90}}, {Crop: data.Size{H: 3, W: 1}, Size: data.Size{H: 200, W: 31}}} {
			h, err := readHeader(bytes.NewReader(b))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if g.Crop.W > h.w || g.Crop.H > h.h {
				continue
			}
			need, err := g.need(h, MemoryLimit)
			if err != nil && name == "thin jpeg" && g.Size.H > 200 {
				continue // rightly too much
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			out, err := g.decodeNow(t.Context(), inMemory(b))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			runtime.ReadMemStats(&after)
			took := int64(after.TotalAlloc-before.TotalAlloc) - int64(len(out))
			const tables = 400 << 10 // of the decoders
			if took > need+tables {
				t.Errorf("%s, %+v: %d bytes, only %d were taken", name, g, took, need)
			}
		}
	}
}

func TestBaselineJPEG(t *testing.T) {
	for name, want := range map[string]bool{"progressive.jpeg": false, "cmyk.jpeg": true, "rgb.jpeg": true, "interlaced.png": false} {
		if baselineJPEG(mustRead(t, name)) != want {
			t.Errorf("%s: baseline %v", name, !want)
		}
	}
	if h, err := readHeader(bytes.NewReader(mustRead(t, "interlaced.png"))); err != nil || h.decoded != 2*4*float64(h.w*h.h) {
		t.Errorf("interlaced: %+v, %v", h, err)
	}
}

func mustRead(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// counted counts how often its picture is being decoded at the same time. A
// decoder opens it twice: the header is read before there is memory.
type counted struct {
	body      []byte
	now, most *atomic.Int64
}

func (c counted) open(context.Context) (io.ReadCloser, error) {
	return &countedReader{Reader: bytes.NewReader(c.body), c: c}, nil
}

type countedReader struct {
	io.Reader
	c    counted
	read int
}

func (r *countedReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if r.read += n; r.read == n { // the first read
		r.c.most.Store(max(r.c.most.Load(), r.c.now.Add(1)))
		runtime.Gosched()
	}
	return n, err
}

func (r *countedReader) Close() error { r.c.now.Add(-1); return nil }

// However many workers there are, no more pictures are decoded at a time than
// memory is for, and every picture gets its turn.
func TestBudgetHoldsWorkersBack(t *testing.T) {
	body := pngOf(t, plain(200, 200, color.White)) // 4 bytes a pixel, decoded and copied, and more for scaling
	g := Geometry{Size: data.Square(8)}
	h, err := readHeader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	need, err := g.need(h, MemoryLimit)
	if err != nil {
		t.Fatal(err)
	}
	b := newBudget(2*need + need/2)
	var headers, now, most atomic.Int64
	done := make(chan error)
	const workers = 16
	for range workers {
		go func() {
			first := true
			_, err := g.decode(t.Context(), b, func(ctx context.Context) (io.ReadCloser, error) {
				c := counted{body, &headers, new(atomic.Int64)}
				if !first {
					c.now, c.most = &now, &most
				}
				first = false
				return c.open(ctx)
			})
			done <- err
		}()
	}
	for range workers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if most.Load() > 2 || most.Load() < 1 {
		t.Errorf("%d pictures at a time, want 1 or 2", most.Load())
	}
}

// Imports of all kinds end although memory is for one picture only.
func TestTightMemory(t *testing.T) {
	const n = 30
	dir := t.TempDir()
	var entries []file
	for i := range n {
		b := pngOf(t, plain(100+i, 100, color.Gray{uint8(i)}))
		name := fmt.Sprintf("%03d", i)
		entries = append(entries, file{name + ".jpg", b}, file{name + ".png", b}) // the last of a sample counts
		put(t, filepath.Join(dir, "folder", name+".png"), b)
	}
	put(t, filepath.Join(dir, "tars", "a.tar"), tarOf(t, entries...))
	put(t, filepath.Join(dir, "cifar", "data_batch_1.bin"), cifarFile(n))
	idx := filepath.Join(dir, "mnist")
	put(t, filepath.Join(idx, "train-images-idx3-ubyte"), idxFile(idxPictures, n, 100, 100))
	put(t, filepath.Join(idx, "train-labels-idx1-ubyte"), append(idxFile(idxLabels, n)[:8], make([]byte, n)...))
	digits, classes := svhnLike(t, n)
	put(t, filepath.Join(dir, "svhn", "train_32x32.mat"), matOf(digits, classes))
	g := Geometry{Size: data.Square(20), Channels: 3}
	open := map[string]func() (*Set, error){
		"folder": func() (*Set, error) { return Folder(t.Context(), filepath.Join(dir, "folder"), g, 0) },
		"tars":   func() (*Set, error) { return WebDataset(t.Context(), []string{filepath.Join(dir, "tars")}, g) },
		"cifar":  func() (*Set, error) { return CIFAR10(t.Context(), []string{filepath.Join(dir, "cifar")}, g) },
		"mnist":  func() (*Set, error) { return MNIST(t.Context(), idx, g) },
		"svhn":   func() (*Set, error) { return SVHN(t.Context(), filepath.Join(dir, "svhn"), g) },
	}
	for name, f := range open {
		t.Run(name, func(t *testing.T) {
			var sums []string
			for _, memory := range []int64{0, 256 << 10} {
				s, err := f()
				_, x := imported(t, s, err, Options{Workers: 8, memory: memory})
				if x.Splits["train"].Samples != n {
					t.Errorf("%d samples, want %d", x.Splits["train"].Samples, n)
				}
				sums = append(sums, x.Splits["train"].Shards[0].SHA256["images"])
			}
			if sums[0] != sums[1] {
				t.Error("the samples depend on the memory")
			}
		})
	}
}

// A picture that needs more than there is is named with its size; the rest can
// be had without it.
func TestPictureTooLarge(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a.png"), pngOf(t, plain(10, 10, color.White)))
	thin := put(t, filepath.Join(dir, "b.png"), pngOf(t, image.NewGray(image.Rect(0, 0, 1, 60000))))
	tar := put(t, filepath.Join(t.TempDir(), "a.tar"), tarOf(t, file{"a.png", pngOf(t, plain(10, 10, color.White))}, file{"b.png", pngOf(t, image.NewGray(image.Rect(0, 0, 1, 60000)))}))
	for src, name := range map[string]string{dir: thin, tar: tar + ": b"} {
		open := func() (*Set, error) {
			if src == tar {
				return WebDataset(t.Context(), []string{tar}, Geometry{Size: data.Square(512)})
			}
			return Folder(t.Context(), dir, Geometry{Size: data.Square(512)}, 0)
		}
		s, err := open()
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "out")
		_, err = Run(t.Context(), s, Options{Out: out, Workers: 2})
		want := name + ": a picture of 1×60000, scaled to 512×30720000, needs "
		if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "expected at most ") {
			t.Errorf("%v, want %s…", err, want)
		}
		if left, err := os.ReadDir(filepath.Dir(out)); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		s, err = open()
		_, x := imported(t, s, err, Options{SkipBad: true})
		if x.Splits["train"].Samples != 1 || len(x.Skipped) != 1 || x.Skipped[0].Name != name {
			t.Errorf("%d samples, skipped %v", x.Splits["train"].Samples, x.Skipped)
		}
	}
}

// What can never be had is refused, not waited for.
func TestBudgetRefuses(t *testing.T) {
	if err := newBudget(10).take(t.Context(), 11); err == nil || !strings.Contains(err.Error(), "expected at most") {
		t.Errorf("%v", err)
	}
	dir := t.TempDir()
	put(t, filepath.Join(dir, "train-images-idx3-ubyte"), idxFile(idxPictures, 1, 300, 300))
	put(t, filepath.Join(dir, "train-labels-idx1-ubyte"), idxFile(idxLabels, 1))
	for _, g := range []Geometry{{}, {Size: data.Square(8)}} {
		s, err := MNIST(t.Context(), dir, g)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Run(t.Context(), s, Options{Out: filepath.Join(t.TempDir(), "out"), memory: 100 << 10})
		if err == nil || !strings.Contains(err.Error(), "of memory, expected at most") {
			t.Errorf("%+v: %v", g, err)
		}
	}
}
