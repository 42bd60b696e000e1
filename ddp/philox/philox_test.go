package philox

import (
	"math"
	"testing"
)

// Known answers of the Random123 distribution (kat_vectors, philox4x32 10).
func TestKnownAnswers(t *testing.T) {
	tests := []struct {
		name      string
		ctr, want [4]uint32
		key       [2]uint32
	}{
		{"zeros", [4]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}, [2]uint32{}},
		{"ones", [4]uint32{^uint32(0), ^uint32(0), ^uint32(0), ^uint32(0)},
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}, [2]uint32{^uint32(0), ^uint32(0)}},
		{"pi", [4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}, [2]uint32{0xa4093822, 0x299f31d0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Rounds(tt.ctr, tt.key); got != tt.want {
				t.Errorf("got %08x, want %08x", got, tt.want)
			}
		})
	}
}

// Numbers of purposes name the draws of runs that are on disk.
func TestPurposesKeepTheirNumbers(t *testing.T) {
	for i, p := range []Purpose{Init, Latent, Posterior, DataOrder, Augment, Sampling, Synthetic, Power, Testing,
		Perturb, Hidden, Projection, Chain, Negative, Contrast, Generated, Refine, Langevin, Dropout} {
		if int(p) != i+1 {
			t.Errorf("purpose %d of the list has number %d", i+1, p)
		}
	}
}

func TestNormalMoments(t *testing.T) {
	const n = 1 << 16 // standard errors: mean 1/256, variance √2/256, fourth moment √96/256
	z := make([]float64, n)
	Name{Seed: 1, Purpose: Testing}.Normal(z)
	var m1, m2, m4 float64
	for _, v := range z {
		m1 += v / n
		m2 += v * v / n
		m4 += v * v * v * v / n
	}
	if !(math.Abs(m1) <= 4.0/256 && math.Abs(m2-1) <= 4*math.Sqrt2/256 && math.Abs(m4-3) <= 4*math.Sqrt(96)/256) {
		t.Errorf("moments %.4f %.4f %.4f, want 0 1 3", m1, m2, m4)
	}
}

// A longer stream starts with the shorter one, and distinct names differ.
func TestStreamsAreNames(t *testing.T) {
	base := Name{Seed: 7, Purpose: Testing, Step: 3, Sample: 5}
	short, long := make([]float64, 5), make([]float64, 11)
	base.Uniform(short)
	base.Uniform(long)
	for i := range short {
		if short[i] != long[i] || long[i] != Float64(base.Uint32(i)) {
			t.Fatalf("element %d depends on the length of the stream", i)
		}
	}
	seen := map[[4]uint32]Name{base.Block(0): base}
	for _, n := range []Name{
		{Seed: 8, Purpose: Testing, Step: 3, Sample: 5}, {Seed: 7 << 32, Purpose: Testing, Step: 3, Sample: 5},
		{Seed: 7, Purpose: Latent, Step: 3, Sample: 5}, {Seed: 7, Purpose: Testing, Sub: 1, Step: 3, Sample: 5},
		{Seed: 7, Purpose: Testing, Step: 5, Sample: 3}, {Seed: 7, Purpose: Testing, Step: 3, Sample: 6},
	} {
		if other, ok := seen[n.Block(0)]; ok {
			t.Errorf("%+v and %+v share draws", n, other)
		}
		seen[n.Block(0)] = n
	}
}

func TestPermIsUniform(t *testing.T) {
	const trials = 6000 // each of 6 orders: 1000 ± √(6000·5/36) = 29
	count := map[[3]int]int{}
	for i := range trials {
		p := Name{Seed: 1, Purpose: DataOrder, Step: uint32(i)}.Perm(3)
		count[[3]int(p)]++
	}
	for p, c := range count {
		if !(math.Abs(float64(c)-trials/6) <= 5*29) {
			t.Errorf("order %v seen %d times, want 1000 ± 29", p, c)
		}
	}
	if len(count) != 6 {
		t.Errorf("%d orders seen, want 6", len(count))
	}
}
