package main

import (
	"bytes"
	"slices"
	"testing"

	"ebtrain/data"
	"ebtrain/data/synth"
)

// counted counts the blocks that are read.
type counted struct {
	data.Source
	reads int
}

func (c *counted) ReadBlock(i int, dst *data.Block) error {
	c.reads++
	return c.Source.ReadBlock(i, dst)
}

// TestKept: pictures that are kept are those of the set, and none is drawn after that.
func TestKept(t *testing.T) {
	set, err := synth.Open(synth.Config{Size: 8, Train: 150}, "train")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ asked, blocks, kept int }{{1, 1, 64}, {64, 1, 64}, {65, 2, 128}, {140, 3, 150}, {1000, 3, 150}} {
		src := &counted{Source: set}
		k, err := keep(src, tt.asked)
		if err != nil {
			t.Fatal(err)
		}
		spans := k.Layout().Spans()
		if src.reads != tt.blocks || k.Len() != int64(tt.kept) || len(spans) != tt.blocks || k.Digest() == set.Digest() {
			t.Fatalf("%d samples: %d of %d blocks after %d reads, %q, want %+v", tt.asked, k.Len(), len(spans), src.reads, k.Digest(), tt)
		}
		for i := range spans {
			var got, want data.Block
			if err := k.ReadBlock(i, &got); err != nil {
				t.Fatal(err)
			}
			if err := set.ReadBlock(i, &want); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Values, want.Values) || !slices.Equal(got.Labels, want.Labels) {
				t.Errorf("%d samples: block %d is another", tt.asked, i)
			}
		}
		if src.reads != tt.blocks {
			t.Errorf("%d samples: %d blocks were drawn, want %d", tt.asked, src.reads, tt.blocks)
		}
		if err := k.ReadBlock(tt.blocks, &data.Block{}); err == nil {
			t.Errorf("%d samples: no error for block %d", tt.asked, tt.blocks)
		}
	}
}
