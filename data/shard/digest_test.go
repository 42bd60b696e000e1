package shard

import (
	"path/filepath"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/data/safetensors"
)

// The golden data set's digests: runs that were begun with a data set go on with it
// alone, so what a digest is made of never changes.
func TestDigestIsFrozen(t *testing.T) {
	for split, want := range map[string]string{
		"train": "sha256:86849e21138be3dd925e35a562f34287b074ff426dee2243cfc97a2af5e07786",
		"test":  "sha256:1d37744258f5c916b43ffdd6e8889e15dcebf04b4c4c12e9f7c4ae45c66b83d9",
	} {
		r, err := Open(filepath.Join("testdata", "v1"), split)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Digest(); got != want {
			t.Errorf("%s: digest %s, which was %s", split, got, want)
		}
	}
}

// Whatever makes other samples, or other batches of them, makes another digest; how and
// where they are stored does not, nor do other splits.
func TestDigestCovers(t *testing.T) {
	digest := func(change func(x *Index)) string {
		t.Helper()
		x, err := ReadIndex(filepath.Join("testdata", "v1"))
		if err != nil {
			t.Fatal(err)
		}
		change(x)
		return x.digest("train")
	}
	was := digest(func(*Index) {})
	other := strings.Repeat("0", 64)
	for what, change := range map[string]func(x *Index){
		"values":        func(x *Index) { x.Splits["train"].Shards[1].SHA256[pixelsTensor] = other },
		"labels":        func(x *Index) { x.Splits["train"].Shards[1].SHA256[labelsTensor] = other },
		"order":         func(x *Index) { s := x.Splits["train"].Shards; s[0], s[1] = s[1], s[0] },
		"shards":        func(x *Index) { x.Splits["train"].Shards[0].Samples++; x.Splits["train"].Shards[1].Samples-- },
		"blocks":        func(x *Index) { x.BlockSamples = 8 },
		"crop":          func(x *Index) { x.Preprocessing["crop"] = "140" },
		"preprocessing": func(x *Index) { x.Preprocessing["flip"] = "" },
		"type":          func(x *Index) { x.Schema.DType = safetensors.F32 },
		"shape":         func(x *Index) { x.Schema.Shape = [3]int{2, 4, 3} },
		"columns":       func(x *Index) { x.Schema.Columns = []data.Column{{Name: "a", SD: 1}} },
		"classes":       func(x *Index) { x.Schema.Classes[0], x.Schema.Classes[1] = x.Schema.Classes[1], x.Schema.Classes[0] },
	} {
		if digest(change) == was {
			t.Errorf("other %s have the same digest", what)
		}
	}
	if now := digest(func(x *Index) {
		e := &x.Splits["train"].Shards[0]
		e.File, e.XXH64, e.Bytes = "train/x", strings.Repeat("0", 16), e.Bytes+1
		x.Skipped = []Skipped{{"train", "a.png", "damaged"}}
		delete(x.Splits, "test")
	}); now != was {
		t.Errorf("files of other names or sizes have the digest %s, not %s", now, was)
	}
}
