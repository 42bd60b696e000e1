//go:build amd64 && !noasm

package transpose

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/cpu"
)

const lanes = 16

// untouched is what guard words hold.
const untouched = -77

func guarded(n int) []float32 {
	v := make([]float32, n+2*lanes)
	for i := range v {
		v[i] = untouched
	}
	return v
}

func sameBits(t *testing.T, got, want []float32, what string) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: word %d is %08x, want %08x", what, i-lanes, math.Float32bits(got[i]), math.Float32bits(want[i]))
		}
	}
}

// FuzzTranspositions: rows become columns and columns rows, exactly. Columns beyond
// the taps, up to 16, may be overwritten.
func FuzzTranspositions(f *testing.F) {
	type set struct {
		name string
		min  int
		Kernels
	}
	var list []set
	if cpu.X86.HasAVX512F {
		list = append(list, set{"AVX-512", 1, AVX512()})
	}
	if cpu.X86.HasAVX2 {
		list = append(list, set{"AVX2", 4, AVX2()})
	}
	if len(list) == 0 {
		f.Skip("this CPU has neither AVX-512 nor AVX2")
	}
	for taps := range uint8(16) {
		f.Add(uint64(taps), taps, taps%4)
	}
	f.Fuzz(func(t *testing.T, seed uint64, n, pad uint8) {
		taps, rng := 1+int(n)%16, rand.New(rand.NewPCG(seed, 4))
		step := taps + int(pad)%20
		rows, want := guarded(lanes*step), guarded(lanes*lanes)
		for r := range lanes {
			for e := range taps {
				rows[lanes+r*step+e] = math.Float32frombits(rng.Uint32())
				want[lanes+e*lanes+r] = rows[lanes+r*step+e]
			}
		}
		for _, k := range list {
			if taps < k.min {
				continue
			}
			columns, back := guarded(lanes*lanes), guarded(lanes*step)
			k.Columns(&columns[lanes], &rows[lanes], step, taps)
			copy(columns[(1+taps)*lanes:17*lanes], want[(1+taps)*lanes:])
			sameBits(t, columns, want, k.name+", columns")
			k.Rows(&back[lanes], step, &columns[lanes], taps)
			sameBits(t, back, rows, k.name+", rows")
			if taps == lanes && k.Strided != nil {
				down := lanes + int(pad)
				got, want := guarded(lanes*down), guarded(lanes*down)
				for e := range taps {
					copy(want[lanes+e*down:][:lanes], columns[(1+e)*lanes:])
				}
				k.Strided(&got[lanes], down, &rows[lanes], step)
				sameBits(t, got, want, k.name+", strided")
			}
		}
	})
}

// TestGenerated: what the generator writes is what is here.
func TestGenerated(t *testing.T) {
	const name = "avx512_amd64.s"
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "run", "./_gen", dir).CombinedOutput(); err != nil {
		t.Fatalf("go run ./_gen: %v\n%s", err, out)
	}
	want, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the generator writes now (%v): run go generate", name, err)
	}
}
