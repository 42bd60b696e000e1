package feature

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"ebtrain/collective/host"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/eval/quality"
	"ebtrain/trainer/model/nn"
)

func pictures(n int, s Size, sample uint32) []float32 {
	x := make([]float64, n*s.Len())
	philox.Name{Seed: 1, Purpose: philox.Testing, Sample: sample}.Uniform(x)
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(2*v - 1)
	}
	return out
}

// The network by plain loops in float64, of the weights that it draws.
func slowFeatures(t *testing.T, n Net, x []float32) []float64 {
	t.Helper()
	e, err := NewExtractor(ref.New(), n, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close() //nolint:errcheck // ref has nothing to release
	in, h, w := make([]float64, len(x)), n.Size.H, n.Size.W
	for i, v := range x {
		in[i] = float64(v)
	}
	var out []float64
	c := n.Size.C
	for l, width := range n.trunk.(convolutions).Widths {
		weight, bias := n.draw(t, fmt.Sprintf("random.conv%d.weight", l+1)), n.draw(t, fmt.Sprintf("random.conv%d.bias", l+1))
		oh, ow := (h+1)/2, (w+1)/2
		y := make([]float64, width*oh*ow)
		for k := range width {
			mean := 0.0
			for i := range oh {
				for j := range ow {
					sum := bias[k]
					for a := range c {
						for di := range 3 {
							for dj := range 3 {
								if r, s := 2*i+di-1, 2*j+dj-1; r >= 0 && s >= 0 && r < h && s < w {
									sum += weight[((k*c+a)*3+di)*3+dj] * in[(a*h+r)*w+s]
								}
							}
						}
					}
					if sum < 0 {
						sum *= 0.2
					}
					y[(k*oh+i)*ow+j] = sum
					mean += sum / float64(oh*ow)
				}
			}
			out = append(out, mean)
		}
		in, h, w, c = y, oh, ow, width
	}
	return out
}

func (n Net) draw(t *testing.T, name string) []float64 {
	t.Helper()
	for _, v := range n.variables(t) {
		if v.Name == name {
			x := v.Value(n.seed)
			out := make([]float64, v.Type.Shape.Len())
			for i := range out {
				out[i] = x.At(i)
			}
			return out
		}
	}
	t.Fatalf("no variable %s", name)
	return nil
}

func near(a, b []float64, tol float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Abs(x-y) <= tol*(1+math.Abs(y)) })
}

func TestRandom(t *testing.T) {
	s := Size{3, 16, 12}
	net, x := Random(2, s), pictures(5, s, 1)
	if got := fmt.Sprint(net.trunk.(convolutions).Widths); got != "[16 32 64]" {
		t.Errorf("widths %s", got)
	}
	for name, b := range backends(t) {
		e, err := NewExtractor(b, net, 2)
		if err != nil {
			t.Fatal(err)
		}
		got, err := e.Of(t.Context(), nil, x)
		if err != nil || got.N != 5 || got.D != 112 {
			t.Fatalf("%s: %d×%d, %v", name, got.N, got.D, err)
		}
		for i := range got.N {
			if want := slowFeatures(t, net, x[i*s.Len():(i+1)*s.Len()]); !near(got.Row(i), want, 1e-4) {
				t.Errorf("%s: picture %d: %v, want %v", name, i, got.Row(i)[:3], want[:3])
			}
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	if a, b, c := Random(1, s).Digest, Random(2, s).Digest, Random(1, Size{3, 16, 16}).Digest; a == b || a == c || a != Random(1, s).Digest {
		t.Error("digests do not tell networks")
	}
}

// Layers double up to a greatest width, one for each halving of the shorter side to 2.
func TestWidths(t *testing.T) {
	for size, want := range map[Size][2]string{
		{3, 64, 64}: {"[16 32 64 64 64]", "[32 64 128 128 128]"}, {1, 9, 40}: {"[16 32 64]", "[32 64 128]"}, {1, 8, 8}: {"[16 32]", "[32 64]"},
	} {
		if r, c := fmt.Sprint(Random(1, size).trunk.(convolutions).Widths), fmt.Sprint(classifierTrunk(size).Widths); r != want[0] || c != want[1] {
			t.Errorf("%v: %s and, of a classifier, %s; want %v", size, r, c, want)
		}
	}
	for size, ok := range map[Size]bool{{1, 8, 8}: true, {1, 7, 40}: false, {1, 40, 7}: false, {0, 8, 8}: false} {
		if err := size.Validate(); (err == nil) != ok {
			t.Errorf("%v: %v", size, err)
		}
	}
}

// means is a network without weights: the mean of each channel.
type means struct{}

func (means) Dim() int { return 2 }

func (means) Features(c *nn.Context, x graph.ID) graph.ID { return c.Mean(x, 2, 3) }

// What is no whole picture, and a feature that is not finite, are errors that say which.
func TestBadPictures(t *testing.T) {
	s := Size{2, 8, 8}
	e, err := NewExtractor(ref.New(), Given("means", "m", s, 0, means{}, nil), 2)
	if err != nil {
		t.Fatal(err)
	}
	x := pictures(5, s, 3)
	if _, err := e.Of(t.Context(), nil, x[1:]); err == nil || !strings.Contains(err.Error(), "639 values are no pictures of 2×8×8") {
		t.Errorf("a picture that lacks a value: %v", err)
	}
	for _, v := range []float64{math.Inf(1), math.NaN()} {
		x[3*s.Len()+64] = float32(v)
		if _, err := e.Of(t.Context(), nil, x); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("features by means: that of picture 3 is %v", v)) {
			t.Errorf("a picture with %v: %v", v, err)
		}
	}
}

// Rows are shared in whole batches that begin where one rank's begin, so what is drawn by
// the number of a batch is the same on any number of ranks; each is made once.
func TestShared(t *testing.T) {
	const batch, dim = 3, 2
	for _, n := range []int{1, 3, 10, 12} {
		for world := 1; world <= 4; world++ {
			comms, err := host.NewLocal(t.Context(), world)
			if err != nil {
				t.Fatal(err)
			}
			made := make([]atomic.Int64, n)
			var wg sync.WaitGroup
			for r, c := range comms {
				wg.Go(func() {
					got, err := Shared(t.Context(), c, "test", n, batch, dim, func(from, to int, out []float64) error {
						if from%batch != 0 || to != min(from+batch, n) || len(out) != (to-from)*dim {
							t.Errorf("%d rows, %d ranks: rows from %d to %d into %d values", n, world, from, to, len(out))
						}
						for i := range out {
							made[from+i/dim].Add(1)
							out[i] = float64(from*dim + i)
						}
						return nil
					})
					for i, v := range got {
						if v != float64(i) {
							t.Errorf("%d rows, %d ranks: value %d is %v on rank %d", n, world, i, v, r)
						}
					}
					if err != nil || len(got) != n*dim {
						t.Errorf("%d values, %v", len(got), err)
					}
				})
			}
			wg.Wait()
			for i := range made {
				if made[i].Load() != dim {
					t.Errorf("%d rows, %d ranks: row %d was made %v times", n, world, i, float64(made[i].Load())/dim)
				}
			}
			for _, c := range comms {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func backends(t *testing.T) map[string]exec.Backend {
	t.Helper()
	c, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return map[string]exec.Backend{"cpu": c, "ref": ref.New()}
}

// Two and three ranks give the bits of one, whatever is left over.
func TestRanksShareThePictures(t *testing.T) {
	s := Size{1, 8, 8}
	net, x := Random(1, s), pictures(11, s, 2)
	of := func(comm *host.Comm, ctx context.Context) (quality.Matrix, error) {
		e, err := NewExtractor(ref.New(), net, 2)
		if err != nil {
			return quality.Matrix{}, err
		}
		if comm == nil {
			return e.Of(ctx, nil, x)
		}
		return e.Of(ctx, comm, x)
	}
	want, err := of(nil, t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, world := range []int{2, 3} {
		comms, err := host.NewLocal(t.Context(), world)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for r, c := range comms {
			wg.Go(func() {
				got, err := of(c, t.Context())
				if err != nil || !slices.Equal(got.X, want.X) {
					t.Errorf("rank %d of %d: other features, %v", r, world, err)
				}
			})
		}
		wg.Wait()
		for _, c := range comms {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestMultiplier(t *testing.T) {
	a, b := quality.NewMatrix(7, 5), quality.NewMatrix(4, 5)
	philox.Name{Seed: 1, Purpose: philox.Testing, Sample: 3}.Normal(a.X)
	philox.Name{Seed: 1, Purpose: philox.Testing, Sample: 4}.Normal(b.X)
	want, got := make([]float64, 28), make([]float64, 28)
	if err := quality.Plain(a, b, want); err != nil {
		t.Fatal(err)
	}
	for name, backend := range backends(t) {
		m := NewMultiplier(backend)
		for range 2 {
			if err := m.Products(t.Context())(a, b, got); err != nil || !near(got, want, 1e-5) {
				t.Errorf("%s: %v, %v; want %v", name, got, err, want)
			}
		}
		// Other sizes, of which two are those of before in other places.
		c, d := quality.Matrix{N: 7, D: 4, X: a.X[:28]}, quality.Matrix{N: 5, D: 4, X: b.X}
		want, got := make([]float64, 35), make([]float64, 35)
		if err := errors.Join(quality.Plain(c, d, want), m.Products(t.Context())(c, d, got)); err != nil || !near(got, want, 1e-5) {
			t.Errorf("%s, other sizes: %v, %v; want %v", name, got, err, want)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestCache(t *testing.T) {
	var said []string
	dir := filepath.Join(t.TempDir(), "new", "cache")
	c := Cache{Dir: dir, Say: func(err error) { said = append(said, err.Error()) }}
	computed := 0
	ask := func(n int, data string, number int) []float64 {
		t.Helper()
		m, err := c.Features(t.Context(), nil, n, Random(number, Size{1, 8, 8}), data, "", func() (quality.Matrix, error) {
			computed++
			m := quality.NewMatrix(n, 2)
			for i := range m.X {
				m.X[i] = float64(10*number + i)
			}
			return m, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return m.X
	}
	first := ask(3, "a", 1)
	if again := ask(3, "a", 1); computed != 1 || !slices.Equal(first, again) {
		t.Errorf("computed %d times, %v and %v", computed, first, again)
	}
	kept, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(kept) != 1 {
		t.Fatal(kept, err)
	}
	file := kept[0]
	mine, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ask(3, "b", 1)
	ask(4, "a", 1)
	ask(3, "a", 2)
	if computed != 4 || len(said) != 0 {
		t.Errorf("computed %d times, said %q", computed, said)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 4 {
		t.Fatal(files, err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for i, damaged := range [][]byte{whole[:len(whole)-3], nil, []byte("not of the format at all")} {
		for _, f := range files {
			if err := os.WriteFile(f, damaged, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		computed, said = 0, nil
		again := ask(3, "a", 1)
		if computed != 1 || len(said) != 1 || !strings.Contains(said[0], ".safetensors") || !slices.Equal(again, first) {
			t.Errorf("damage %d: computed %d times, said %q", i, computed, said)
		}
		if ask(3, "a", 1); computed != 1 {
			t.Errorf("damage %d: not repaired", i)
		}
	}
	// Nor is it taken for whole if a number is none, or if it is another's.
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	ask(3, "b", 2)
	other, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(other) != 1 {
		t.Fatal(other, err)
	}
	foreign, err := os.ReadFile(other[0])
	if err != nil {
		t.Fatal(err)
	}
	number := binary.LittleEndian.AppendUint64(nil, math.Float64bits(first[2]))
	nan := binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.NaN()))
	for name, damaged := range map[string][]byte{"another's": foreign, "NaN": bytes.Replace(mine, number, nan, 1)} {
		if bytes.Equal(damaged, mine) {
			t.Fatalf("%s: nothing is damaged", name)
		}
		if err := os.WriteFile(file, damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		computed, said = 0, nil
		if again := ask(3, "a", 1); computed != 1 || len(said) != 1 || !slices.Equal(again, first) {
			t.Errorf("%s: computed %d times, said %q, got %v", name, computed, said, again)
		}
	}
	// Nor is what a device of other digits computed.
	computed = 0
	if _, err := c.Features(t.Context(), nil, 3, Random(1, Size{1, 8, 8}), "a", "others", func() (quality.Matrix, error) {
		computed++
		return quality.Matrix{N: 3, D: 1, X: []float64{1, 2, 3}}, nil
	}); err != nil || computed != 1 {
		t.Errorf("of other digits: computed %d times, %v", computed, err)
	}
	// Where nothing can be kept, nothing is lost.
	c.Dir, said = "/proc/no/folder", nil
	if again := ask(3, "a", 1); !slices.Equal(again, first) || len(said) != 1 || !strings.Contains(said[0], "not kept for the next time: mkdir /proc/no") {
		t.Errorf("got %v, said %q", again, said)
	}
}

// Ranks that have disks of their own each keep what they lack: what is damaged on the
// second's is made again once, not every time.
func TestCacheOfOtherHosts(t *testing.T) {
	comms, err := host.NewLocal(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	dirs := []string{t.TempDir(), t.TempDir()}
	ask := func() (computed int64) {
		var n atomic.Int64
		var wg sync.WaitGroup
		for r, comm := range comms {
			wg.Go(func() {
				c := Cache{Dir: dirs[r], Say: func(err error) { t.Log(r, err) }}
				m, err := c.Features(t.Context(), comm, 3, Random(1, Size{1, 8, 8}), "a", "", func() (quality.Matrix, error) {
					n.Add(1)
					return quality.Matrix{N: 3, D: 1, X: []float64{1, 2, 3}}, nil
				})
				if err != nil || !slices.Equal(m.X, []float64{1, 2, 3}) {
					t.Errorf("rank %d: %v, %v", r, m, err)
				}
			})
		}
		wg.Wait()
		return n.Load()
	}
	if n := ask() + ask(); n != 2 {
		t.Errorf("computed by %d ranks, want by 2, once", n)
	}
	files, err := filepath.Glob(filepath.Join(dirs[1], "*.safetensors"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q on the second's disk, %v", files, err)
	}
	if err := os.WriteFile(files[0], []byte("damaged"), 0o644); err != nil {
		t.Fatal(err)
	}
	if n := ask() + ask(); n != 2 {
		t.Errorf("after damage on one disk computed by %d ranks, want by 2, once", n)
	}
	if dirs[1] = ""; ask()+ask() != 4 {
		t.Error("what the second rank does not keep is not computed by both each time")
	}
	for _, comm := range comms {
		if err := comm.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Weights begin by He et al.: N(0, 2/fan in), of a random network and of one that is to
// be trained; 6 % are four standard errors of 9,216 draws.
func TestInitialWeights(t *testing.T) {
	s := Size{3, 32, 32}
	for _, net := range []Net{Random(1, s), {Size: s, trunk: classifierTrunk(s), seed: 1}} {
		checked := 0
		for _, v := range net.variables(t) {
			if !strings.HasSuffix(v.Name, "weight") || v.Type.Shape.Len() < 64*9*16 {
				continue
			}
			checked++
			square := 0.0
			for _, w := range net.draw(t, v.Name) {
				square += w * w / float64(v.Type.Shape.Len())
			}
			if want := 2 / float64(9*v.Type.Shape.At(1)); !(math.Abs(square/want-1) <= 0.06) {
				t.Errorf("%s of %v begins with the variance %v, want %v", v.Name, v.Type.Shape, square, want)
			}
		}
		if checked < 2 {
			t.Errorf("%d weights were looked at", checked)
		}
	}
}
