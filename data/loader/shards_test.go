package loader

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/data/shard"
	"ebtrain/data/synth"
)

// Pictures copied into shards come out of a loader as they went in, and a
// flipped byte on disk is an error that names the file.
func TestWithShards(t *testing.T) {
	src, err := synth.Open(synth.Config{Size: 8, Train: 150}, "train")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "set")
	w, err := shard.Create(dir, shard.Options{Schema: src.Schema(), BlockSamples: 10, ShardSamples: 40})
	if err != nil {
		t.Fatal(err)
	}
	var b data.Block
	for i, span := range src.Layout().Spans() {
		if err := src.ReadBlock(i, &b); err != nil {
			t.Fatal(err)
		}
		for j := range span.N {
			if err := w.Add(t.Context(), "train", b.Values[j*192:(j+1)*192], b.Labels[j]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := shard.Open(dir, "train")
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Batch: 50, Tail: Mask, Passes: 1, Prefetch: 2}
	one, err := New(src, c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = one.Close() }() // what it prefetches does not matter
	two, err := New(r, c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = two.Close() }() // what it prefetches does not matter
	for range 3 {
		x, err := one.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		y, err := two.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(x, y) {
			t.Fatal("pictures changed on their way through shards")
		}
	}
	path := filepath.Join(dir, "train", "shard-00001.safetensors.zst")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := two.Restore(State{Digest: r.Digest(), Order: inOrder.String()}); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = two.Next(t.Context())
	}
	if !strings.Contains(err.Error(), path+": frame ") {
		t.Errorf("error %v, want one naming %s and the frame", err, path)
	}
}

func BenchmarkNext(b *testing.B) {
	src, err := synth.Open(synth.Config{}, "train")
	if err != nil {
		b.Fatal(err)
	}
	l, err := New(src, Config{Batch: 64, Shuffle: true, Flip: true})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }() // what it prefetches does not matter
	for range 200 {                  // decode the pool
		if _, err := l.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(64 * 3072)
	for b.Loop() {
		if _, err := l.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
