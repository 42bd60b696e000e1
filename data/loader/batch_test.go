package loader

import (
	"math"
	"testing"

	"ebtrain/data"
	"ebtrain/data/safetensors"
)

func TestTails(t *testing.T) {
	tests := []struct {
		tail         Tail
		items, empty int
		steps        int64
	}{
		{Mask, 240, 38, 5},
		{Drop, 192, 0, 4},
	}
	for _, tt := range tests {
		for _, world := range []int{1, 2, 4} {
			c := base()
			c.Tail, c.Passes, c.World, c.Prefetch = tt.tail, 2, world, 2
			items := global(t, source(), c, nil, 99, nil)
			empty := 0
			seen := map[[2]int64]bool{}
			for _, it := range items {
				if it.Weight == 0 {
					empty++
					if it.Index != -1 || it.Label != -1 || it.X != [4]float32{} {
						t.Fatalf("an empty slot holds %+v", it)
					}
					continue
				}
				if key := [2]int64{it.Epoch, it.Index}; seen[key] {
					t.Fatalf("sample %d comes twice in epoch %d", it.Index, it.Epoch)
				} else {
					seen[key] = true
				}
			}
			if len(items) != tt.items || empty != tt.empty {
				t.Errorf("tail %d, world %d: %d slots, %d of them empty, want %d and %d", tt.tail, world, len(items), empty, tt.items, tt.empty)
			}
			l, err := New(source(), c)
			if err != nil || l.Steps() != tt.steps {
				t.Errorf("steps %d, %v, want %d", l.Steps(), err, tt.steps)
			}
		}
	}
}

func TestValuesAndFlip(t *testing.T) {
	c := Config{Batch: 101, Tail: Mask, Flip: true, Seed: 3}
	plain := global(t, source(), Config{Batch: 101, Tail: Mask}, nil, 1, nil)
	mirrored := 0
	for i, it := range global(t, source(), c, nil, 1, nil) {
		p := plain[i].X
		if p != [4]float32{float32(i)/127.5 - 1, -1, -1, 1} {
			t.Fatalf("sample %d is %v", i, p)
		}
		switch it.X {
		case p:
		case [4]float32{p[3], p[2], p[1], p[0]}:
			mirrored++
		default:
			t.Fatalf("sample %d is %v, want %v or its mirror image", i, it.X, p)
		}
	}
	if mirrored < 30 || mirrored > 70 { // 50 ± 4 standard errors of 5
		t.Errorf("%d of 101 are mirrored", mirrored)
	}
	unit := global(t, source(), Config{Batch: 1, Range: Unit}, nil, 2, nil)[1]
	if unit.X != [4]float32{1.0 / 255, 0, 0, 1} {
		t.Errorf("in [0, 1]: %v", unit.X)
	}
}

// floats is a source whose pictures are F32.
type floats struct{ *fake }

func (f floats) Schema() data.Schema {
	return data.Schema{C: 1, H: 1, W: 1, DType: safetensors.F32, Classes: make([]string, 7)}
}

func TestFloat32PicturesAreAsStored(t *testing.T) {
	l, err := New(floats{newFake(4, 4)}, Config{Batch: 1})
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Next(t.Context())
	if err != nil || b.X[0] != math.Float32frombits(0xff000000) {
		t.Errorf("got %v, %v", b, err)
	}
}

// A data set of one pool is decoded once, not once an epoch.
func TestSmallSetsStayDecoded(t *testing.T) {
	src := source()
	global(t, src, base(), nil, 40, nil)
	if got, blocks := src.reads.Load(), int64(len(src.layout.Spans())); got > blocks {
		t.Errorf("%d reads of %d blocks", got, blocks)
	}
}

// Each epoch flips anew: a sample is not mirrored in all epochs or in none.
func TestFlipsAnewInEachEpoch(t *testing.T) {
	c := Config{Batch: 101, Tail: Mask, Flip: true, Seed: 3}
	all := global(t, source(), c, nil, 2, nil)
	changed := 0
	for i := range 101 {
		if all[i].X != all[101+i].X {
			changed++
		}
	}
	if changed < 30 || changed > 70 { // 50 ± 4 standard errors of 5
		t.Errorf("%d of 101 are mirrored in one of two epochs alone", changed)
	}
}
