package loader

import (
	"testing"

	"ebtrain/data/synth"
)

// Pictures that are not square are mirrored row by row, and stay as they are
// otherwise.
func TestFlipOfOblongs(t *testing.T) {
	src, err := synth.Open(synth.Config{Size: 12, Cols: 8, Train: 40}, "train")
	if err != nil {
		t.Fatal(err)
	}
	batch := func(flip bool) []float32 {
		l, err := New(src, Config{Batch: 40, World: 1, Flip: flip, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}()
		b, err := l.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return append([]float32(nil), b.X...)
	}
	plain, mixed := batch(false), batch(true)
	size, mirrored := src.Schema().Elems(), 0
	for i := range 40 {
		same, turned := true, true
		for k := range size {
			v := mixed[i*size+k]
			same = same && v == plain[i*size+k]
			turned = turned && v == plain[i*size+k/8*8+7-k%8]
		}
		if !same && !turned {
			t.Errorf("sample %d is neither as it was nor mirrored", i)
		}
		if !(same && turned) && turned != flipped(1, 0, int64(i)) {
			t.Errorf("sample %d is mirrored: %v, against the seed's will", i, turned)
		}
		if turned {
			mirrored++
		}
	}
	if mirrored < 8 || mirrored > 32 { // 20 ± 4 standard deviations
		t.Errorf("%d of 40 are mirrored", mirrored)
	}
}
