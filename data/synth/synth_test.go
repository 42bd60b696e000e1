package synth

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"testing"

	"ebtrain/data"
)

func open(t *testing.T, c Config, split string) *Set {
	t.Helper()
	s, err := Open(c, split)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func read(t *testing.T, s *Set, i int) data.Block {
	t.Helper()
	var b data.Block
	if err := s.ReadBlock(i, &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// The pictures are part of every recorded run: their bytes must not change
// unless version does.
func TestGolden(t *testing.T) {
	b := read(t, open(t, Config{}, "train"), 0)
	sum := sha256.Sum256(b.Values)
	const want = "0990cb502fd6b2e0"
	if got := hex.EncodeToString(sum[:8]); got != want {
		t.Errorf("pictures hash to %s, want %s", got, want)
	}
}

func TestPureFunctionOfIndex(t *testing.T) {
	short, long := open(t, Config{Train: 70}, "train"), open(t, Config{Train: 1000}, "train")
	a, b := read(t, short, 1), read(t, long, 1)
	if len(a.Labels) != 6 || !bytes.Equal(a.Values, b.Values[:len(a.Values)]) {
		t.Errorf("picture 64 depends on the number of pictures (%d labels)", len(a.Labels))
	}
}

func TestSplitsSeedsAndIndicesDiffer(t *testing.T) {
	seen := map[string]string{}
	n := open(t, Config{}, "train").Schema().SampleBytes()
	for _, s := range []*Set{
		open(t, Config{}, "train"), open(t, Config{}, "val"), open(t, Config{}, "test"), open(t, Config{Seed: 1}, "train"),
	} {
		b := read(t, s, 0)
		for i := range b.Labels {
			p := string(b.Values[i*n : (i+1)*n])
			if other, ok := seen[p]; ok {
				t.Fatalf("a picture of %s is also in %s", s.Digest(), other)
			}
			seen[p] = s.Digest()
		}
	}
}

// Sets of other pictures, or of more, have other digests: a run goes on with those that
// it began with.
func TestDigestsDiffer(t *testing.T) {
	seen := map[string]bool{}
	sets := []*Set{
		open(t, Config{}, "train"), open(t, Config{}, "val"), open(t, Config{}, "test"), open(t, Config{Seed: 1}, "train"),
		open(t, Config{Train: 70}, "train"), open(t, Config{Size: 16}, "train"), open(t, Config{Cols: 16}, "train"),
	}
	for _, s := range sets {
		seen[s.Digest()] = true
	}
	if len(seen) != len(sets) {
		t.Errorf("%d sets have the digests %v", len(sets), seen)
	}
	if a, b := open(t, Config{}, "train").Digest(), open(t, Config{Size: 32, Train: 8192, Val: 9}, "train").Digest(); a != b {
		t.Errorf("the same pictures have the digests %s and %s", a, b)
	}
}

// Each class is drawn about equally often, figures cover some of the picture,
// and labels are in range.
func TestPicturesAreStructured(t *testing.T) {
	s := open(t, Config{Train: 1200}, "train")
	count := make([]int, len(Classes()))
	for i := range s.spans {
		for _, l := range read(t, s, i).Labels {
			count[l]++
		}
	}
	for l, c := range count {
		if c < 130 || c > 270 { // 200 ± 5 standard errors of 13
			t.Errorf("class %s has %d of 1200", Classes()[l], c)
		}
	}
	for class := range Classes() {
		f := figure{class: int64(class), x: unit / 2, y: unit / 2, r: unit / 4, period: unit / 8}
		covered := 0
		for _, y := range s.along(32, f.y, f.r) {
			for _, x := range s.along(32, f.x, f.r) {
				covered += f.cover(&x, &y)
			}
		}
		if share := float64(covered) / (32 * 32 * sub * sub); share < 0.08 || share > 0.26 {
			t.Errorf("%s covers %.2f of the picture", Classes()[class], share)
		}
	}
}

// Pictures need not be square: figures keep their shape and lie anywhere in them.
func TestNotSquare(t *testing.T) {
	for _, size := range []data.Size{{H: 28, W: 20}, {H: 8, W: 64}, {H: 80, W: 16}} {
		s := open(t, Config{Size: size.H, Cols: size.W, Train: 400}, "train")
		if got := s.Schema(); got.H != size.H || got.W != size.W || got.C != 3 {
			t.Fatalf("schema %v, want %v", got, size)
		}
		side := min(size.H, size.W)
		where := map[int]bool{} // eighths of the longer side that a disc's centre lay in
		b := make([]byte, s.Schema().SampleBytes())
		for i := range int64(400) {
			v := s.scene(i)
			if s.draw(i, b) != v.figure.class || v.figure.class != 0 { // a disc
				continue
			}
			covered, at := 0, 0
			for y, down := range s.along(size.H, v.figure.y, v.figure.r) {
				for x, right := range s.along(size.W, v.figure.x, v.figure.r) {
					if v.figure.cover(&right, &down) < sub*sub {
						continue
					}
					covered++
					if size.W > size.H {
						at += x
					} else {
						at += y
					}
					for ch := range 3 {
						if got := int(b[(ch*size.H+y)*size.W+x]); got != v.colours[2][ch] {
							t.Fatalf("%v: picture %d shows %d at row %d, column %d, want the disc's %d", size, i, got, y, x, v.colours[2][ch])
						}
					}
				}
			}
			// Whole pixels of a disc of radius r: no more than its area, and no
			// fewer than that of a disc smaller by a pixel's diagonal.
			r := float64(v.figure.r*side) / unit
			if n := float64(covered); n > math.Pi*r*r+2 || r > 1.5 && n < math.Pi*(r-1.5)*(r-1.5) {
				t.Fatalf("%v: a disc of radius %.1f covers %d whole pixels", size, r, covered)
			}
			if covered > 0 {
				where[8*at/covered/max(size.H, size.W)] = true
			}
		}
		if len(where) < 4 {
			t.Errorf("%v: discs lie in %d eighths of the longer side", size, len(where))
		}
	}
}

func TestBadConfig(t *testing.T) {
	for name, f := range map[string]func() (*Set, error){
		"split":    func() (*Set, error) { return Open(Config{}, "dev") },
		"size":     func() (*Set, error) { return Open(Config{Size: 7}, "train") },
		"columns":  func() (*Set, error) { return Open(Config{Cols: 300}, "train") },
		"negative": func() (*Set, error) { return Open(Config{Train: -1}, "train") },
		"too many": func() (*Set, error) { return Open(Config{Train: 1 << 33}, "train") },
	} {
		if _, err := f(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := open(t, Config{}, "test").ReadBlock(16, &data.Block{}); err == nil {
		t.Error("a block out of range gives no error")
	}
}

func BenchmarkDraw(b *testing.B) {
	s, err := Open(Config{}, "train")
	if err != nil {
		b.Fatal(err)
	}
	dst := make([]byte, s.Schema().SampleBytes())
	b.SetBytes(int64(len(dst)))
	for b.Loop() {
		s.draw(3, dst)
	}
}
