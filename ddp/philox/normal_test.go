package philox

import (
	"math"
	"testing"
)

// BoxMuller against the functions of package math.
func TestBoxMuller(t *testing.T) {
	words := []uint32{0, 1, 255, 256, 511, 1 << 29, 1 << 30, 1 << 31, 3 << 30, 0x7fffffff, 0xfffffeff, 0xffffffff}
	for i := range uint32(20000) {
		b := Name{Seed: 3, Purpose: Testing}.Block(i)
		words = append(words, b[0], b[1])
	}
	for i, w := range words {
		for _, v := range []uint32{words[(i*7+1)%len(words)], words[i%12]} {
			r := math.Sqrt(-2 * math.Log(Float64(w)))
			s, c := math.Sincos(2 * math.Pi * Float64(v))
			z0, z1 := BoxMuller(w, v)
			if !(math.Abs(z0-r*c) <= 4e-15 && math.Abs(z1-r*s) <= 4e-15) {
				t.Fatalf("words %#x, %#x: got %v, %v, want %v, %v", w, v, z0, z1, r*c, r*s)
			}
		}
	}
}

// Eight blocks at a time make the same bits as one, wherever a stream begins
// and ends.
func TestWide(t *testing.T) {
	for _, n := range []Name{
		{Seed: 7, Purpose: Testing, Step: 3, Sample: 5, Sub: 2},
		{Seed: math.MaxUint64, Purpose: math.MaxUint16, Sub: math.MaxUint16, Step: math.MaxUint32, Sample: math.MaxUint32},
		{Seed: 1 << 40, Sample: 1 << 31},
	} {
		for _, length := range []int{0, 1, 4, 31, 32, 33, 64, 100, 4099} {
			for _, block := range []uint32{0, 1, 9, 1<<32 - 3} {
				checkStreams(t, n, length, block)
			}
		}
	}
	const one = 4099370 // a block with a word so great that its uniform is rounded to 1
	n, uniform := Name{Seed: 1, Purpose: Testing}, make([]float32, 32)
	if n.UniformFrom32(uniform, one); uniform[2] != 1 {
		t.Errorf("the greatest uniform is %v in float32, want 1", uniform[2])
	}
	checkStreams(t, n, 32, one)
}

// checkStreams compares the first elements of n from the block on with what each block
// makes by itself.
func checkStreams(t *testing.T, n Name, length int, block uint32) {
	t.Helper()
	normal, uniform := make([]float64, length), make([]float64, length)
	n.NormalFrom(normal, block)
	n.UniformFrom(uniform, block)
	normal32, uniform32 := guarded(length), guarded(length)
	n.NormalFrom32(normal32[:length], block)
	n.UniformFrom32(uniform32[:length], block)
	if normal32[length] != guard || uniform32[length] != guard {
		t.Fatalf("%+v, %d from block %d: the element behind was written", n, length, block)
	}
	for i := range length {
		b := n.Block(block + uint32(i/4))
		z := [4]float64{}
		z[0], z[1] = BoxMuller(b[0], b[1])
		z[2], z[3] = BoxMuller(b[2], b[3])
		for _, c := range []struct {
			what      string
			got, want float64
		}{
			{"normal", normal[i], z[i%4]},
			{"uniform", uniform[i], Float64(b[i%4])},
			{"normal in float32", float64(normal32[i]), float64(float32(z[i%4]))},
			{"uniform in float32", float64(uniform32[i]), float64(float32(Float64(b[i%4])))},
		} {
			if math.Float64bits(c.got) != math.Float64bits(c.want) {
				t.Fatalf("%+v, %s %d of %d from block %d is %v, want %v", n, c.what, i, length, block, c.got, c.want)
			}
		}
	}
}

// Draws allocate nothing. What the runtime has for itself meanwhile, a dozen objects of a
// thread, is less than one a time.
func TestAllocations(t *testing.T) {
	n, single, double := Name{Seed: 1, Purpose: Testing}, make([]float32, 100), make([]float64, 100)
	if a := testing.AllocsPerRun(100, func() {
		n.NormalFrom32(single, 0)
		n.UniformFrom32(single, 0)
		n.NormalFrom(double, 0)
		n.UniformFrom(double, 0)
	}); a != 0 {
		t.Errorf("%v allocations", a)
	}
}

const guard = 77

// guarded is memory for so many elements and one behind.
func guarded(n int) []float32 {
	x := make([]float32, n+1)
	x[n] = guard
	return x
}

func BenchmarkNormal32(b *testing.B) { bench32(b, Name.NormalFrom32) }

func BenchmarkUniform32(b *testing.B) { bench32(b, Name.UniformFrom32) }

func bench32(b *testing.B, fill func(Name, []float32, uint32)) {
	dst := make([]float32, 4096)
	for b.Loop() {
		fill(Name{Seed: 1, Purpose: Testing}, dst, 0)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(dst)), "ns/number")
}

func BenchmarkNormal(b *testing.B) {
	dst := make([]float64, 4096)
	for b.Loop() {
		Name{Seed: 1, Purpose: Testing}.Normal(dst)
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/4096, "ns/number")
}
