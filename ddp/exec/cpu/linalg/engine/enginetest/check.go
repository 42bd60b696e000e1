package enginetest

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"unsafe"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/philox"
)

// expectation is a problem with inputs, its result, and how far off it may be.
// What may be multiplied as bfloat16 has a second result, of rounded operands.
type expectation struct {
	a, b      []float32
	want, tol []float64
	most      float64 // the biggest sum of absolute terms
	bf16      *expectation
	tiled     bool
}

func newExpectation(r reference, bf16 bool) expectation {
	x := expectation{a: random(1, r.a), b: random(2, r.b)}
	x.want, x.tol, x.most = expect(r, x.a, x.b)
	if bf16 {
		x.bf16 = &expectation{}
		x.bf16.want, x.bf16.tol, x.bf16.most = expect(r, rounded(x.a), rounded(x.b))
	}
	return x
}

// near says whether got is right.
func (x expectation) near(got []float32) error {
	if x.bf16 != nil && x.bf16.near(got) == nil || x.tiled && x.asExactAsBF16(got) {
		return nil
	}
	return near(got, x.want, x.tol)
}

// asExactAsBF16 says whether the root mean square of got's errors is not above
// that of rounded operands', and the biggest not above what theirs may be:
// rounding two factors costs 2⁻⁸ of each term.
func (x expectation) asExactAsBF16(got []float32) bool {
	if x.bf16 == nil {
		return false
	}
	var ours, theirs float64
	for i, want := range x.want {
		d, e := float64(got[i])-want, x.bf16.want[i]-want
		if !(math.Abs(d) <= x.most*0x1p-8) { // also NaN
			return false
		}
		ours += d * d
		theirs += e * e
	}
	return ours <= theirs
}

// level allows every element the error of the one that may be off most, and that
// of a tile.
func (x *expectation) level(r reference) {
	x.tiled = true
	most := slices.Max(x.tol)
	if r.mixed != nil {
		most += mixedRoundings * 0x1p-23 * r.mixed(x.a, x.b)
	}
	for i := range x.tol {
		x.tol[i] = most
	}
}

// rounded is v in bfloat16: 8 bits, to nearest, ties to even.
func rounded(v []float32) []float32 {
	r := make([]float32, len(v))
	for i, x := range v {
		u := math.Float32bits(x)
		r[i] = math.Float32frombits((u + 0x7fff + u>>16&1) &^ 0xffff)
	}
	return r
}

// poisons fill dst and scratch before the runs of a kernel, one in turn: NaN as
// float32, as bfloat16 and as either half of a float32 (-1 as an integer), and
// numbers so big that no sum with one of them is small (127 as a byte). What a
// kernel reads without having written it spoils its result, and differently.
var poisons = [...]uint32{0xffffffff, 0x7f7f7f7f}

// check holds kernels of the problem to x.
func (x expectation) check(newKernel func() (engine.Kernel, error)) error {
	var first []float32
	for pass := range 2 { // two kernels, at two alignments
		k, err := newKernel()
		if err != nil {
			return err
		}
		for run, poison := range poisons {
			got, err := runGuarded(k, len(x.want), x.a, x.b, pass, poison)
			if err != nil {
				return fmt.Errorf("kernel %d, run %d: %w", pass, run, err)
			}
			if first == nil {
				first = got
				if err := x.near(got); err != nil {
					return err
				}
			}
			if i := firstDifference(got, first); i >= 0 {
				return fmt.Errorf("kernel %d, run %d: element %d is %v, was %v: not deterministic", pass, run, i, got[i], first[i])
			}
		}
		for range 2 { // Close is idempotent
			if err := k.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// random are n standard normal numbers of stream s.
func random(s, n int) []float32 {
	v := make([]float64, n)
	philox.Name{Seed: 20, Purpose: philox.Testing, Sample: uint32(s)}.Normal(v)
	f := make([]float32, n)
	for i := range v {
		f[i] = float32(v[i])
	}
	return f
}

// expect is the result in float64, how far float32 may be from it, and the
// biggest Σ|terms|: K terms summed in any order are wrong by less than about
// √K·2⁻²³·Σ|terms|.
func expect(r reference, a, b []float32) (want, tol []float64, most float64) {
	want, tol = make([]float64, r.dst), make([]float64, r.dst)
	terms := make([]int, r.dst)
	r.walk(func(d, i, j int) {
		v := float64(a[i]) * float64(b[j])
		want[d] += v
		tol[d] += math.Abs(v)
		terms[d]++
	})
	most = slices.Max(tol)
	for d := range tol {
		tol[d] *= (2 + math.Sqrt(float64(terms[d]))) * 0x1p-23
	}
	return want, tol, most
}

func near(got []float32, want, tol []float64) error {
	for i := range want {
		if d := math.Abs(float64(got[i]) - want[i]); !(d <= tol[i]) { // also NaN
			return fmt.Errorf("element %d of %d is %v, want %v ± %.2g", i, len(want), got[i], want[i], tol[i])
		}
	}
	return nil
}

// guardWords surround every buffer; they are NaNs of a rare pattern, so that a
// kernel that reads them spoils its result.
const (
	guardWords = 64
	guardBits  = 0x7fc0beef
)

// buffer is n float32 with guards on both sides.
type buffer struct {
	all      []float32
	start, n int
}

// newBuffer aligns its data to 64 bytes plus shift words.
func newBuffer(n, shift int) buffer {
	all := make([]float32, n+2*guardWords+32)
	for i := range all {
		all[i] = math.Float32frombits(guardBits)
	}
	start := guardWords
	for uintptr(unsafe.Pointer(&all[start]))%64 != uintptr(4*shift%64) {
		start++
	}
	return buffer{all, start, n}
}

func (b buffer) data() []float32 { return b.all[b.start : b.start+b.n] }

// fill sets every word of the data.
func (b buffer) fill(bits uint32) {
	for i := range b.data() {
		b.data()[i] = math.Float32frombits(bits)
	}
}

func (b buffer) pointer() unsafe.Pointer { return unsafe.Pointer(&b.all[b.start]) }

// intact says whether all words outside data are as they were.
func (b buffer) intact() bool {
	for i, v := range b.all {
		if (i < b.start || i >= b.start+b.n) && math.Float32bits(v) != guardBits {
			return false
		}
	}
	return true
}

// runGuarded runs k once in fresh guarded buffers, dst, a and b shifted from
// the 64-byte grid by so many words, dst and scratch full of poison.
func runGuarded(k engine.Kernel, n int, a, b []float32, shift int, poison uint32) ([]float32, error) {
	if k.Scratch() < 0 {
		return nil, fmt.Errorf("scratch is %d bytes", k.Scratch())
	}
	dst, ga, gb := newBuffer(n, shift), newBuffer(len(a), shift), newBuffer(len(b), 3*shift)
	scratch := newBuffer((k.Scratch()+3)/4, 0)
	copy(ga.data(), a)
	copy(gb.data(), b)
	dst.fill(poison)
	scratch.fill(poison)
	if err := k.Run(dst.pointer(), ga.pointer(), gb.pointer(), scratch.pointer()); err != nil {
		return nil, err
	}
	for name, buf := range map[string]buffer{"dst": dst, "a": ga, "b": gb, "scratch": scratch} {
		if !buf.intact() {
			return nil, fmt.Errorf("memory around %s was written", name)
		}
	}
	if firstDifference(ga.data(), a) >= 0 || firstDifference(gb.data(), b) >= 0 {
		return nil, fmt.Errorf("an input was written")
	}
	return dst.data(), nil
}

// firstDifference is the first element whose bits differ, or -1.
func firstDifference(x, y []float32) int {
	for i := range x {
		if math.Float32bits(x[i]) != math.Float32bits(y[i]) {
			return i
		}
	}
	return -1
}

// Allocs is the average number of Go allocations of a run of a convolution. The least of
// a few measurements counts: a thread that the runtime starts meanwhile has objects, too.
func Allocs(k engine.Kernel, op engine.ConvOp, p engine.ConvProblem) float64 {
	r := convReference(op, p)
	dst, a, b, scratch := newBuffer(r.dst, 0), newBuffer(r.a, 0), newBuffer(r.b, 0), newBuffer((k.Scratch()+3)/4, 0)
	least := math.Inf(1)
	for range 4 {
		least = min(least, testing.AllocsPerRun(5, func() {
			if err := k.Run(dst.pointer(), a.pointer(), b.pointer(), scratch.pointer()); err != nil {
				panic(err)
			}
		}))
		if least == 0 {
			break
		}
	}
	return least
}
