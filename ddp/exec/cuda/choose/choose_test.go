//go:build cgo

package choose_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ebtrain/collective"
	"ebtrain/collective/cuda"
	"ebtrain/collective/cuda/cudatest"
	"ebtrain/ddp/exec/cuda/choose"
	"ebtrain/ddp/exec/cuda/cublaslt"
	"ebtrain/ddp/exec/cuda/cudnn"
	"ebtrain/ddp/exec/cuda/linalg"
	"ebtrain/ddp/exec/cuda/linalg/linalgtest"
	"ebtrain/ddp/graph"
)

// device is a rank's: a GPU, both libraries, and what it was told.
type device struct {
	m    *cudatest.Machine
	s    *cuda.Stream
	o    choose.Options
	said []string
}

const workspace = 1 << 20

// open is a device on the machine of doubles, closed when the test ends, with nothing
// left.
func open(t *testing.T) *device {
	t.Helper()
	m := cudatest.Use(t)
	dev, s := linalgtest.Device(t, m.Clean)
	conv, err := cudnn.New(dev, workspace)
	if err != nil {
		t.Fatal(err)
	}
	prod, err := cublaslt.New(dev, workspace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(conv.Close(), prod.Close()); err != nil {
			t.Error(err)
		}
	})
	d := &device{m: m, s: s}
	d.o = choose.Options{
		Device: dev, Stream: s, Convolutions: conv, Products: prod, Plain: linalgtest.NewPlain, Cast: linalgtest.Cast, Move: linalgtest.Move,
		Say: func(text string) { d.said = append(d.said, text) },
	}
	return d
}

// chooser is a Chooser that is closed when the test ends.
func (d *device) chooser(t *testing.T, change func(*choose.Options)) *choose.Chooser {
	t.Helper()
	o := d.o
	if change != nil {
		change(&o)
	}
	c := choose.New(o)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// problems are one of each kind that programs ask for, and random ones, of all types
// that a program has.
func problems(seed uint64, n int) (list []linalg.Problem) {
	rnd := rand.New(rand.NewPCG(seed, 5))
	floats := []graph.DType{graph.F32, graph.BF16}
	for range n {
		t := linalg.Types{Dst: floats[rnd.IntN(2)], A: floats[rnd.IntN(2)], B: floats[rnd.IntN(2)], Math: linalg.Math(rnd.IntN(3))}
		if rnd.IntN(5) == 0 {
			t = linalg.Types{Dst: graph.F64, A: graph.F64, B: graph.F64}
		}
		if rnd.IntN(4) == 0 {
			list = append(list, linalgtest.Product(rnd, t))
		} else {
			list = append(list, linalgtest.Conv(rnd, linalg.ConvOp(1+rnd.IntN(3)), t))
		}
	}
	return list
}

func names(list []choose.Kernel) (s []string) {
	for _, k := range list {
		s = append(s, k.String())
	}
	return s
}

// bits are what kernels compute of their problems, on numbers of a seed.
func (d *device) bits(t *testing.T, ps []linalg.Problem, ks []choose.Kernel) (list [][]float64) {
	t.Helper()
	for i, p := range ps {
		rnd := rand.New(rand.NewPCG(uint64(i), 6))
		_, na, nb := p.Lens()
		a, b := linalgtest.Numbers(rnd, na, p.Types().A), linalgtest.Numbers(rnd, nb, p.Types().B)
		got := linalgtest.Compute(t, d.s, ks[i], p, a, b)
		if err := linalgtest.Check(asRounded(p, ks[i]), a, b, got); err != nil {
			t.Fatalf("%v: %v", ks[i], err)
		}
		list = append(list, got)
	}
	return list
}

// asRounded is a problem with the type that a kernel says it rounds results to: that of the
// gradients of weights which TestRounded is about, as the clock may choose it.
func asRounded(p linalg.Problem, k choose.Kernel) linalg.Problem {
	c, ok := p.(linalg.Conv)
	if !ok || c.Op != linalg.GradW || !strings.HasSuffix(k.String(), "cast from bf16,bf16 to bf16, bf16") {
		return p
	}
	c.T.Dst = graph.BF16
	return c
}

func equal(a, b [][]float64) bool { return slices.EqualFunc(a, b, slices.Equal[[]float64]) }

// TestChoose: what is chosen computes the problem; the other ranks and a resumed run
// have the same kernels and bits, and time nothing.
func TestChoose(t *testing.T) {
	d := open(t)
	ps := problems(1, 60)
	file := filepath.Join(t.TempDir(), "kernels.json")
	var wire []byte
	zero := d.chooser(t, func(o *choose.Options) {
		o.File = file
		o.Share = func(b []byte) ([]byte, error) { wire = b; return b, nil }
	})
	first, err := zero.Choose(ps)
	if err != nil {
		t.Fatal(err)
	}
	want := d.bits(t, ps, first)
	by := map[string]int{}
	casts := 0
	for _, n := range names(first) {
		by[strings.Fields(n)[0]]++
		if strings.Contains(n, "cast") {
			casts++
		}
	}
	if by["cudnn"] < 5 || by["cublaslt"] < 5 || casts < 5 {
		t.Errorf("the problems are one-sided: %v, %d with casts", by, casts)
	}
	second := filepath.Join(t.TempDir(), "second.json")
	for name, change := range map[string]func(*choose.Options){
		"another rank": func(o *choose.Options) { o.Rank, o.Share = 1, func([]byte) ([]byte, error) { return wire, nil } },
		"a resume":     func(o *choose.Options) { o.File = file },
		"another run":  func(o *choose.Options) { o.Cache, o.File = file, second },
	} {
		d.keeps(t, name, change, ps, first, want)
	}
	ran := d.runs()
	resumed, err := d.chooser(t, func(o *choose.Options) { o.File = second }).Choose(ps)
	if err != nil || d.runs() != ran || !slices.Equal(names(resumed), names(first)) {
		t.Errorf("a run whose kernels came from the cache did not keep them: %v", err)
	}
	if again, err := zero.Choose(ps); err != nil || !slices.Equal(names(again), names(first)) || d.runs() != ran {
		t.Errorf("asked again: %v", err)
	}
	if len(d.said) > 0 {
		t.Errorf("said %q", d.said)
	}
}

// TestDelays: streams that take their time change nothing: casts, kernels and memory
// are in order.
func TestDelays(t *testing.T) {
	ps := problems(3, 20)
	var want [][]float64
	for seed := range 3 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			d := open(t)
			d.m.Set("SEED", fmt.Sprint(seed))
			d.m.Set("DELAY", "300")
			list, err := d.chooser(t, func(o *choose.Options) { o.Untimed = seed > 0 }).Choose(ps)
			if err != nil {
				t.Fatal(err)
			}
			got := d.bits(t, ps, list)
			if seed == 1 {
				want = got
			}
			if seed == 2 && !equal(got, want) {
				t.Error("other delays, other bits")
			}
		})
	}
}

func (d *device) runs() int { return d.m.Calls("cudnnBackendExecute") + d.m.Calls("cublasLtMatmul") }

// TestUntimed: the libraries' first kernel that runs is taken, whatever a file says.
func TestUntimed(t *testing.T) {
	d := open(t)
	file := filepath.Join(t.TempDir(), "kernels.json")
	c := d.chooser(t, func(o *choose.Options) { o.Untimed, o.File = true, file })
	ps := []linalg.Problem{conv(f32), conv(ty(graph.F32, graph.F32, graph.F32, linalg.TF32)), linalg.Product{Batch: 1, M: 2, N: 3, K: 4, T: f32}, cover()}
	list, err := c.Choose(ps)
	if err != nil {
		t.Fatal(err)
	}
	lt := "cublaslt algorithm 21, tile 20, stages 15, split 3"
	if want := []string{"cudnn engine 2, knobs 2=1", "cudnn engine 1", lt, lt}; !slices.Equal(names(list), want) {
		t.Errorf("got %q, want %q", names(list), want)
	}
	if d.runs() != len(ps) {
		t.Errorf("%d runs, want one of each kernel", d.runs())
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a file was written")
	}
}

// keeps says that a changed chooser takes the kernels of the first, times none, and computes
// the same bits.
func (d *device) keeps(t *testing.T, name string, change func(*choose.Options), ps []linalg.Problem, first []choose.Kernel, want [][]float64) {
	t.Helper()
	ran := d.runs()
	list, err := d.chooser(t, change).Choose(ps)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if now := d.runs(); now != ran {
		t.Errorf("%s timed kernels", name)
	}
	if !slices.Equal(names(list), names(first)) || !equal(d.bits(t, ps, list), want) {
		t.Errorf("%s has other kernels or bits", name)
	}
}

func ty(dst, a, b graph.DType, m linalg.Math) linalg.Types {
	return linalg.Types{Dst: dst, A: a, B: b, Math: m}
}

var f32 = ty(graph.F32, graph.F32, graph.F32, linalg.Full)

func conv(t linalg.Types) linalg.Conv {
	return linalg.Conv{Op: linalg.Forward, Conv: graph.NewConv(3, 1, 1), N: 2, C: 3, H: 5, W: 4, O: 4, OH: 5, OW: 4, T: t}
}

// cover is a convolution whose kernel covers the image.
func cover() linalg.Conv {
	return linalg.Conv{Op: linalg.GradX, Conv: graph.NewConv(4, 1, 0), N: 2, C: 3, H: 4, W: 4, O: 5, OH: 1, OW: 1, T: f32}
}

// TestFiles: a file that is not of this machine, or no file of choices, is said once and
// not used, and written anew; one that cannot be written is said. Who may read it, the umask
// says.
func TestFiles(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o027))
	d := open(t)
	d.o.Move, d.o.Plain = nil, nil // which might be the fastest
	dir := t.TempDir()
	good := filepath.Join(dir, "good.json")
	ps := []linalg.Problem{conv(f32)}
	if _, err := d.chooser(t, func(o *choose.Options) { o.File = good }).Choose(ps); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(good); err != nil || st.Mode() != 0o640 {
		t.Errorf("mode %v, %v; want 0640", st.Mode(), err)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"another device":   {`"device": "`, `"device": "Other `, "it is of Other"},
		"another cuDNN":    {"cuDNN 9.19.0", "cuDNN 9.13.0", "with cuDNN 9.13.0"},
		"a larger GPU":     {"4 multi", "5 multi", "5 multiprocessors"},
		"another cuBLASLt": {`cuBLASLt \d+`, "cuBLASLt 77", "with cuBLASLt 77"},
		"another format":   {`"version": 1`, `"version": 2`, "its format is 2"},
		"torn":             {"}", "", "unexpected end"},
		"another engine":   {`"engine": \d+`, `"engine": 77`, "cannot be had any more"},
		"another library":  {`"by": "cudnn"`, `"by": "cublaslt"`, "cannot be had any more"},
	} {
		d.said = nil
		file := filepath.Join(dir, "file.json")
		changed := regexp.MustCompile(c.old).ReplaceAllLiteralString(string(text), c.new)
		if changed == string(text) {
			t.Fatalf("%s: there is no %q in %s", name, c.old, text)
		}
		if err := os.WriteFile(file, []byte(changed), 0o644); err != nil {
			t.Fatal(err)
		}
		ran := d.runs()
		if _, err := d.chooser(t, func(o *choose.Options) { o.File = file }).Choose(ps); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(d.said) != 1 || !strings.Contains(d.said[0], c.want) || d.runs() == ran {
			t.Errorf("%s: said %q, want %q; %d runs", name, d.said, c.want, d.runs()-ran)
		}
		d.said = nil
		if _, err := d.chooser(t, func(o *choose.Options) { o.File = file }).Choose(ps); err != nil || len(d.said) > 0 {
			t.Errorf("%s: then %v, said %q", name, err, d.said)
		}
	}
	other := filepath.Join(dir, "cache.json")
	if err := os.WriteFile(other, []byte(strings.ReplaceAll(string(text), "cuDNN 9.19.0", "cuDNN 9.13.0")), 0o644); err != nil {
		t.Fatal(err)
	}
	d.said = nil
	if _, err := d.chooser(t, func(o *choose.Options) { o.Cache = other }).Choose(ps); err != nil || len(d.said) > 0 {
		t.Errorf("of a cache of another machine: %v, said %q", err, d.said)
	}
	if now, err := os.ReadFile(other); err != nil || !strings.Contains(string(now), "cuDNN 9.19.0") {
		t.Errorf("the cache is not written anew: %v", err)
	}
	if _, err := d.chooser(t, func(o *choose.Options) { o.File = filepath.Join(dir, "none", "file.json") }).Choose(ps); err != nil {
		t.Fatal(err)
	}
	if len(d.said) != 1 || !strings.Contains(d.said[0], "are not kept") {
		t.Errorf("of a folder that is not there: said %q", d.said)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*.json.*")); err != nil || len(left) > 0 {
		t.Errorf("left beside the files: %v, %v", left, err)
	}
}

// TestFileBeforeCache: what the run's own file says counts, whatever was chosen since for other
// runs, or a resumed run would have other bits.
func TestFileBeforeCache(t *testing.T) {
	d := open(t)
	d.o.Move, d.o.Plain = nil, nil
	ps := []linalg.Problem{conv(ty(graph.F32, graph.F32, graph.F32, linalg.TF32))}
	dir := t.TempDir()
	second, first := filepath.Join(dir, "second.json"), filepath.Join(dir, "first.json")
	d.m.Fail("cudnnBackendExecute", 1, 5000) // of the first engine
	if _, err := d.chooser(t, func(o *choose.Options) { o.File = second }).Choose(ps); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(second)
	if err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`"engine": 2,\s*"knobs": \[[\d\s,\[]*\]\s*\]`).ReplaceAll(text, []byte(`"engine": 1, "knobs": null`))
	if err := os.WriteFile(first, text, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ file, cache, want string }{{first, second, "cudnn engine 1"}, {second, first, "cudnn engine 2, knobs 2=1"}} {
		list, err := d.chooser(t, func(o *choose.Options) { o.File, o.Cache = c.file, c.cache }).Choose(ps)
		if err != nil || list[0].String() != c.want {
			t.Errorf("got %v, %v, want %s", list, err, c.want)
		}
	}
}

// TestPlain: where no library has a kernel the caller's is taken; without one it is an
// error that names the problem.
func TestPlain(t *testing.T) {
	d := open(t)
	t.Setenv("EBDOUBLE_CUDNN_LACKS", "all")
	t.Setenv("EBDOUBLE_CUBLASLT_LACKS", "all")
	ps := append(problems(2, 12), cover())
	list, err := d.chooser(t, nil).Choose(ps)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names(list) {
		if n != "plain reference" {
			t.Errorf("got %q", n)
		}
	}
	d.bits(t, ps, list)
	_, err = d.chooser(t, func(o *choose.Options) { o.Plain = nil }).Choose(ps[:1])
	if err == nil || !strings.Contains(err.Error(), ps[0].String()) {
		t.Errorf("without one: got %v", err)
	}
}

// TestWithoutCast: only problems whose types a library takes have a kernel.
func TestWithoutCast(t *testing.T) {
	d := open(t)
	c := d.chooser(t, func(o *choose.Options) { o.Cast, o.Move, o.Plain = nil, nil, nil })
	if _, err := c.Choose([]linalg.Problem{conv(ty(graph.BF16, graph.BF16, graph.BF16, linalg.Full))}); err != nil {
		t.Error(err)
	}
	if _, err := c.Choose([]linalg.Problem{conv(ty(graph.F32, graph.BF16, graph.F32, linalg.Full))}); err == nil {
		t.Error("mixed operands have a kernel")
	}
}

// TestWide: where cuDNN has no engine from bfloat16 to float32, operands are widened,
// which loses nothing, and may be multiplied as TF32, which loses nothing either.
func TestWide(t *testing.T) {
	d := open(t)
	t.Setenv("EBDOUBLE_CUDNN_LACKS", "wide")
	ps := []linalg.Problem{conv(ty(graph.F32, graph.BF16, graph.BF16, linalg.Full))}
	list, err := d.chooser(t, func(o *choose.Options) { o.Untimed = true }).Choose(ps)
	if err != nil {
		t.Fatal(err)
	}
	if n := list[0].String(); n != "cudnn engine 1, cast from f32,f32 to f32, tf32" {
		t.Errorf("got %q", n)
	}
	d.bits(t, ps, list)
}

// TestRounded: gradients of weights may be rounded once, after they were added up in
// float32, where cuDNN has no engine that leaves them in float32. Nothing else may.
func TestRounded(t *testing.T) {
	d := open(t)
	d.o.Untimed = true
	p := conv(ty(graph.F32, graph.BF16, graph.BF16, linalg.BF16))
	forward := p
	p.Op = linalg.GradW
	_, na, nb := p.Lens()
	rnd := rand.New(rand.NewPCG(1, 7))
	a, b := linalgtest.Numbers(rnd, na, graph.BF16), linalgtest.Numbers(rnd, nb, graph.BF16)
	compute := func(want string, p linalg.Problem) []float64 {
		list, err := d.chooser(t, nil).Choose([]linalg.Problem{p})
		if err != nil {
			t.Fatal(err)
		}
		if got := list[0].String(); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
		return linalgtest.Compute(t, d.s, list[0], p, a, b)
	}
	exact := compute("cudnn engine 1", p)
	t.Setenv("EBDOUBLE_CUDNN_LACKS", "wide")
	for i, v := range compute("cudnn engine 1, cast from bf16,bf16 to bf16, bf16", p) {
		if want := float64(collective.FromBF16(collective.ToBF16(float32(exact[i])))); v != want {
			t.Errorf("element %d is %v, want %v, rounded", i, v, want)
		}
	}
	compute("cudnn engine 1, cast from f32,f32 to f32, tf32", forward)
	for _, m := range []linalg.Math{linalg.Full, linalg.TF32} { // who asks for these wants more digits
		p.T.Math = m
		compute("cudnn engine 1, cast from f32,f32 to f32, tf32", p)
	}
}

// TestLate: where cuDNN would have to compile an engine from bfloat16 to float32, it is
// timed beside those that are there for widened operands.
func TestLate(t *testing.T) {
	d := open(t)
	t.Setenv("EBDOUBLE_CUDNN_LACKS", "ready")
	p := conv(ty(graph.F32, graph.BF16, graph.BF16, linalg.Full))
	list, err := d.chooser(t, func(o *choose.Options) { o.Untimed = true }).Choose([]linalg.Problem{p})
	if err != nil || list[0].String() != "cudnn engine 3" {
		t.Errorf("untimed: got %v, %v", list, err)
	}
	ran := d.runs()
	if _, err = d.chooser(t, nil).Choose([]linalg.Problem{p}); err != nil {
		t.Fatal(err)
	}
	if ran = d.runs() - ran; ran < 3*6 { // engines 3, and 1 and 2 widened; a plain kernel is not counted
		t.Errorf("%d runs, want 6 of each of 3 engines", ran)
	}
}

// TestQuickRuns: before each run that is timed the GPU has something to do, so that what
// the host does for the run is not timed.
func TestQuickRuns(t *testing.T) {
	d := open(t)
	before := d.m.Calls("cuMemsetD8Async")
	if _, err := d.chooser(t, func(o *choose.Options) { o.Plain = nil }).Choose([]linalg.Problem{conv(f32)}); err != nil {
		t.Fatal(err)
	}
	if n := d.m.Calls("cuMemsetD8Async") - before; n < d.runs() || n == 0 {
		t.Errorf("the GPU was busy before %d of %d runs", n, d.runs())
	}
}
