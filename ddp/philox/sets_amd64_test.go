//go:build !noasm

package philox

import (
	"math"
	"math/rand/v2"
	"testing"
)

var setNames = [...]string{plain: "plain Go", avx2: "AVX2", avx512: "AVX-512"}

// use puts the set in use until the test is over.
func use(t testing.TB, s set) {
	if !available[s] {
		t.Skipf("this processor lacks %s", setNames[s])
	}
	before := wide
	t.Cleanup(func() { wide = before })
	wide = s
}

// Every set that the processor has makes the bits of plain Go.
func TestSets(t *testing.T) {
	for s, name := range setNames {
		t.Run(name, func(t *testing.T) {
			use(t, set(s))
			t.Run("streams", TestWide)
			t.Run("rows", TestRows)
			t.Run("allocations", TestAllocations)
		})
	}
}

// Eight blocks, in succession or of samples in succession, are those of Block, with
// zeros in the upper halves.
func TestBlocks(t *testing.T) {
	for _, s := range []set{avx2, avx512} {
		t.Run(setNames[s], func(t *testing.T) {
			use(t, s)
			n := Name{Seed: 0xfedcba9876543210, Purpose: 0x1234, Sub: 0x5678, Step: 0x9abcdef0, Sample: 1<<32 - 4}
			const block, tag = 1<<32 - 3, 0x12345678
			var inStream, ofSamples eight[uint64]
			blocks8(&inStream, block, n.Sample, n.Step, tag, n.Seed)
			samples8(&ofSamples, block, n.Sample, n.Step, tag, n.Seed)
			for i := range uint32(8) {
				other := n
				other.Sample += i
				next, same := n.Block(block+i), other.Block(block)
				for j := range 4 {
					if inStream[j][i] != uint64(next[j]) || ofSamples[j][i] != uint64(same[j]) {
						t.Errorf("word %d of block %d: got %#x and %#x, want %#x and %#x", j, i, inStream[j][i], ofSamples[j][i], next[j], same[j])
					}
				}
			}
		})
	}
}

// Of each word that Float64 tells apart, as the first and as the second of a pair,
// every set makes the normals of plain Go.
func TestBoxMullerOfEveryWord(t *testing.T) {
	for _, s := range []set{avx2, avx512} {
		t.Run(setNames[s], func(t *testing.T) {
			use(t, s)
			var w0, w1 [8]uint64
			var z0, z1 [8]float64
			for i := uint32(0); i < 1<<24; i += 8 {
				for j := range uint32(8) { // an odd factor makes each number of 24 bits once
					w0[j] = uint64((i+j)<<8 | i>>16)
					w1[j] = uint64((i+j)*0x9E3779B9<<8 | i>>8&255)
				}
				boxMuller8(&z0, &z1, &w0, &w1)
				for j := range w0 {
					x0, x1 := BoxMuller(uint32(w0[j]), uint32(w1[j]))
					if math.Float64bits(z0[j]) != math.Float64bits(x0) || math.Float64bits(z1[j]) != math.Float64bits(x1) {
						t.Fatalf("words %#x, %#x: got %v, %v, want %v, %v", w0[j], w1[j], z0[j], z1[j], x0, x1)
					}
				}
			}
		})
	}
}

// FuzzSets: any draws of any name are those of plain Go, in every set that the processor
// has.
func FuzzSets(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range uint32(200) {
		sample, block := rng.Uint32(), rng.Uint32()
		if i%2 == 0 { // where a word of the counter wraps around
			sample, block = -(sample % 32), -(block % 32)
		}
		f.Add(rng.Uint64(), uint16(rng.Uint32()), uint16(rng.Uint32()), rng.Uint32(), sample, block, uint8(i), uint8(rng.Uint32()))
	}
	f.Fuzz(func(t *testing.T, seed uint64, purpose, sub uint16, step, sample, block uint32, length, cols uint8) {
		n := Name{Seed: seed, Purpose: Purpose(purpose), Sub: sub, Step: step, Sample: sample}
		for s, name := range setNames {
			if !available[s] {
				continue // TestSets says so
			}
			use(t, set(s))
			t.Log("in", name)
			checkStreams(t, n, int(length)%101, block)
			checkRows(t, n, int(length)%27, 1+int(cols)%40)
		}
	})
}

// BenchmarkSets is what a number takes in each set.
func BenchmarkSets(b *testing.B) {
	for s, name := range setNames {
		b.Run(name, func(b *testing.B) {
			use(b, set(s))
			b.Run("normal32", BenchmarkNormal32)
			b.Run("uniform32", BenchmarkUniform32)
			b.Run("normal", BenchmarkNormal)
		})
	}
}
