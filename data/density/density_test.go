package density

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strings"
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

// bytesOf are all points of a set.
func bytesOf(t *testing.T, s *Set) []byte {
	t.Helper()
	var all []byte
	var b data.Block
	for i := range s.spans {
		if err := s.ReadBlock(i, &b); err != nil {
			t.Fatal(err)
		}
		for _, l := range b.Labels {
			if l != -1 {
				t.Fatalf("label %d", l)
			}
		}
		all = append(all, b.Values...)
	}
	return all
}

// points are those of bytesOf, by coordinate.
func points(t *testing.T, d Density, n int64) [][]float64 {
	t.Helper()
	raw := bytesOf(t, open(t, Config{Density: d, Seed: 5, Train: n}, "train"))
	x := make([][]float64, d.Dim())
	for i := 0; i < len(raw); i += 4 {
		k := i / 4 % len(x)
		x[k] = append(x[k], float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[i:]))))
	}
	return x
}

// The points are part of every recorded run: their bytes must not change unless
// version does.
func TestGolden(t *testing.T) {
	for want, d := range map[string]Density{
		"11681c64d207c244": Checkerboard{Cols: 2},
		"a988710d407564ce": Checkerboard{Cols: 5},
		"8b26d7ae0db1058c": UsualGauss(),
		"338acf1b0de91254": Gauss{D: 3, Modes: 1, SD: 2},
	} {
		sum := sha256.Sum256(bytesOf(t, open(t, Config{Density: d, Train: 1000}, "train")))
		if got := hex.EncodeToString(sum[:8]); got != want {
			t.Errorf("%v hashes to %s, want %s", d, got, want)
		}
	}
}

func TestPureFunctionOfIndex(t *testing.T) {
	for _, d := range []Density{Checkerboard{Cols: 4}, Gauss{D: 2000, Modes: 3, Radius: 1, SD: 1}} {
		short := bytesOf(t, open(t, Config{Density: d, Train: 40}, "train"))
		long := bytesOf(t, open(t, Config{Density: d, Train: 90, Val: 7}, "train"))
		if string(long[:len(short)]) != string(short) {
			t.Errorf("%v: points depend on their number", d)
		}
	}
}

func TestSplitsSeedsAndDensitiesDiffer(t *testing.T) {
	seen := map[string]string{}
	for _, d := range []Density{Checkerboard{Cols: 2}, UsualGauss()} {
		for _, split := range Splits() {
			for seed := range uint64(2) {
				s := open(t, Config{Density: d, Seed: seed, Train: 50, Val: 50, Test: 50}, split)
				raw := bytesOf(t, s)
				for i := 0; i < len(raw); i += 8 {
					p := string(raw[i : i+8])
					if other, ok := seen[p]; ok {
						t.Fatalf("a point of %s is also in %s", s.Digest(), other)
					}
					seen[p] = s.Digest()
				}
				if seen[s.Digest()] != "" {
					t.Fatalf("%s names two sets", s.Digest())
				}
				seen[s.Digest()] = "digest"
			}
		}
	}
}

// chiSquare is the statistic of counts that should all be equal, less its mean,
// in standard deviations.
func chiSquare(count []int) float64 {
	var n, sum float64
	for _, c := range count {
		n += float64(c)
	}
	want := n / float64(len(count))
	for _, c := range count {
		sum += (float64(c) - want) * (float64(c) - want) / want
	}
	free := float64(len(count) - 1)
	return (sum - free) / math.Sqrt(2*free)
}

// Every point lies on a cell that it may lie on, and all places are as likely.
func TestCheckerboardIsUniform(t *testing.T) {
	const parts = 6 // of each side of a cell
	for _, cols := range []int{1, 2, 3, 4, 7} {
		x := points(t, Checkerboard{Cols: cols}, 40000)
		fine := cols * parts
		count := map[[2]int]int{}
		for i := range x[0] {
			place := [2]int{}
			for k := range place {
				v := x[k][i]
				if v < 0 || v > 1 {
					t.Fatalf("coordinate %g", v)
				}
				place[k] = min(int(v*float64(fine)), fine-1)
			}
			if (place[0]/parts+place[1]/parts)%2 != 0 {
				t.Fatalf("%d columns: %g, %g lies on an empty cell", cols, x[0][i], x[1][i])
			}
			count[place]++
		}
		var all []int
		for _, c := range count {
			all = append(all, c)
		}
		if want := (cols*cols + 1) / 2 * parts * parts; len(all) != want {
			t.Errorf("%d columns: %d places have points, want %d", cols, len(all), want)
		}
		if z := chiSquare(all); !(math.Abs(z) <= 4) {
			t.Errorf("%d columns: %.1f standard deviations from uniform", cols, z)
		}
	}
}

// The usual board: two cells, on the diagonal that rises.
func TestUsualBoard(t *testing.T) {
	x := points(t, Checkerboard{Cols: 2}, 1000)
	for i := range x[0] {
		if a, b := x[0][i], x[1][i]; a < 0.5 != (b < 0.5) {
			t.Fatalf("%g, %g", a, b)
		}
	}
}

// Modes are as likely as each other; around each, coordinates are independent
// normals of the deviation that was asked for.
func TestGaussMoments(t *testing.T) {
	const n = 60000
	for _, g := range []Gauss{UsualGauss(), {D: 5, Modes: 3, Radius: 4, SD: 0.25}, {D: 1, Modes: 1, SD: 3}, {D: 2, Modes: 1, Radius: 7, SD: 1}} {
		x := points(t, g, n)
		count := make([]int, g.Modes)
		var sum, square, fourth, inside float64
		var cross float64
		for i := range n {
			z := make([]float64, g.D)
			for k := range z {
				z[k] = x[k][i]
			}
			if g.Modes > 1 {
				mode := int(math.Round(math.Atan2(z[1], z[0])/(2*math.Pi)*float64(g.Modes))+float64(g.Modes)) % g.Modes
				count[mode]++
				a := 2 * math.Pi * float64(mode) / float64(g.Modes)
				z[0] -= g.Radius * math.Cos(a)
				z[1] -= g.Radius * math.Sin(a)
			}
			for _, v := range z {
				v /= g.SD
				sum += v
				square += v * v
				fourth += v * v * v * v
				if math.Abs(v) < 1 {
					inside++
				}
			}
			cross += z[0] * z[g.D-1] / (g.SD * g.SD)
		}
		all := float64(n * g.D)
		// Five standard errors of each moment of a normal.
		for name, m := range map[string][3]float64{
			"mean": {sum, 0, 1}, "variance": {square, 1, math.Sqrt(2)}, "fourth moment": {fourth, 3, math.Sqrt(96)},
			"share within one deviation": {inside, math.Erf(math.Sqrt(0.5)), 0.5},
		} {
			if got := m[0] / all; !(math.Abs(got-m[1]) <= 5*m[2]/math.Sqrt(all)) {
				t.Errorf("%v: %s %.4f, want %.4f", g, name, got, m[1])
			}
		}
		if g.D > 1 && !(math.Abs(cross/n) <= 5/math.Sqrt(n)) {
			t.Errorf("%v: the first and last coordinates correlate by %.4f", g, cross/n)
		}
		if g.Modes > 1 && !(math.Abs(chiSquare(count)) <= 4) {
			t.Errorf("%v: modes have %v points", g, count)
		}
	}
}

func TestBadConfig(t *testing.T) {
	ok := Checkerboard{Cols: 2}
	for want, f := range map[string]func() (*Set, error){
		`checkerboard cols=2: no split "dev"; it has train, val, test`: func() (*Set, error) { return Open(Config{Density: ok, Train: 1}, "dev") },
		"val is 0, expected 1 to 4294967295 samples":                   func() (*Set, error) { return Open(Config{Density: ok, Train: 1}, "val") },
		"train is -1, expected 1 to":                                   func() (*Set, error) { return Open(Config{Density: ok, Train: -1}, "train") },
		"train is 8589934592, expected 1 to":                           func() (*Set, error) { return Open(Config{Density: ok, Train: 1 << 33}, "train") },
		"cols is 0, expected 1 to 1024":                                func() (*Set, error) { return Open(Config{Density: Checkerboard{}, Train: 1}, "train") },
		"dim is 0, expected 1 to":                                      func() (*Set, error) { return Open(Config{Density: Gauss{Modes: 1, SD: 1}, Train: 1}, "train") },
		"modes is 0, expected 1 to 1024":                               func() (*Set, error) { return Open(Config{Density: Gauss{D: 1, SD: 1}, Train: 1}, "train") },
		"dim is 1, expected at least 2 for 2 modes": func() (*Set, error) {
			return Open(Config{Density: Gauss{D: 1, Modes: 2, Radius: 1, SD: 1}, Train: 1}, "train")
		},
		"radius is 0": func() (*Set, error) { return Open(Config{Density: Gauss{D: 2, Modes: 2, SD: 1}, Train: 1}, "train") },
		"sd is NaN": func() (*Set, error) {
			return Open(Config{Density: Gauss{D: 2, Modes: 1, SD: math.NaN()}, Train: 1}, "train")
		},
	} {
		if _, err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := open(t, Config{Density: ok, Train: 1}, "train").ReadBlock(1, &data.Block{}); err == nil {
		t.Error("a block out of range gives no error")
	}
}

func BenchmarkReadBlock(b *testing.B) {
	s, err := Open(Config{Density: Checkerboard{Cols: 2}, Train: Train}, "train")
	if err != nil {
		b.Fatal(err)
	}
	var dst data.Block
	for b.Loop() {
		if err := s.ReadBlock(0, &dst); err != nil {
			b.Fatal(err)
		}
	}
}
