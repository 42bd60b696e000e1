package shard

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/data/safetensors"
)

var textSchema = data.Schema{C: 1, H: 1, W: 7, DType: safetensors.I32,
	Text: &data.Text{Words: append(data.ReservedWords(), "a", "b"), Edges: []int{4, 7}}}

// sentence is number i: 1 to 5 words.
func sentence(i int) []int32 {
	s := []int32{data.Begin}
	for j := range i%5 + 1 {
		s = append(s, int32(data.Unknown+(i+j)%3))
	}
	return append(s, data.End)
}

func bytesOf(tokens []int32) (raw []byte) {
	for _, t := range tokens {
		raw = binary.LittleEndian.AppendUint32(raw, uint32(t))
	}
	return raw
}

// writeText writes n sentences in blocks of 4 and shards of 10.
func writeText(t *testing.T, dir string, n int) {
	t.Helper()
	w, err := Create(dir, Options{Schema: textSchema, BlockSamples: 4, ShardSamples: 10})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := w.Add(t.Context(), "train", bytesOf(sentence(i)), -1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestTextGoesRound(t *testing.T) {
	for _, n := range []int{1, 4, 9, 10, 23} {
		dir := filepath.Join(t.TempDir(), "set")
		writeText(t, dir, n)
		r, err := Open(dir, "train")
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Schema(); !reflect.DeepEqual(got.Text, textSchema.Text) || got.W != 7 {
			t.Errorf("schema %+v of %+v", got, got.Text)
		}
		at := 0
		var b data.Block
		for i, span := range r.Layout().Spans() {
			if err := r.ReadBlock(i, &b); err != nil {
				t.Fatal(err)
			}
			for j := range span.N {
				if got := b.Tokens(j, nil); !reflect.DeepEqual(got, sentence(at)) || b.Length(j) != len(got) || b.Labels[j] != -1 {
					t.Errorf("sentence %d of %d: %v, label %d", at, n, got, b.Labels[j])
				}
				at++
			}
		}
		if at != n || r.Len() != int64(n) {
			t.Errorf("%d sentences of %d", at, n)
		}
		if err := Verify(t.Context(), dir, nil); err != nil {
			t.Error(err)
		}
	}
}

func TestBadSentencesAreNotWritten(t *testing.T) {
	for _, tt := range []struct {
		tokens []int32
		want   string
	}{
		{[]int32{1, 2}, "a sentence of 2 tokens, expected 3 to 7"},
		{[]int32{1, 4, 4, 4, 4, 4, 4, 2}, "a sentence of 8 tokens"},
		{[]int32{4, 4, 2}, "without its begin"},
		{[]int32{1, 4, 4}, "or its end"},
		{[]int32{1, 6, 2}, "token 6 within a sentence, expected 3 to 5"},
		{[]int32{1, 0, 2}, "token 0 within"},
	} {
		w, err := Create(filepath.Join(t.TempDir(), "set"), Options{Schema: textSchema})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Add(t.Context(), "train", bytesOf(tt.tokens), -1); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %q", tt.tokens, err, tt.want)
		}
		if err := w.Abort(); err != nil {
			t.Error(err)
		}
	}
}

// Words that are not those of the index are refused, in one sentence.
func TestVocabularyIsChecked(t *testing.T) {
	for _, tt := range []struct {
		name string
		mend func(t *testing.T, path string)
		want string
	}{
		{"gone", func(t *testing.T, path string) { remove(t, path) }, "missing, so the words of"},
		{"another", func(t *testing.T, path string) {
			put(t, path, strings.Join(append(data.ReservedWords(), "b", "a"), "\n")+"\n")
		}, "the index says 6 of sha256:"},
		{"one word", func(t *testing.T, path string) { put(t, path, strings.Join(append(data.ReservedWords(), "b"), "\n")) }, "a vocabulary of 1 words"},
		{"twice", func(t *testing.T, path string) {
			put(t, path, strings.Join(append(data.ReservedWords(), "b", "b"), "\n"))
		}, `words 4 and 5 of the vocabulary are both "b"`},
	} {
		dir := filepath.Join(t.TempDir(), "set")
		writeText(t, dir, 3)
		tt.mend(t, filepath.Join(dir, "vocabulary.txt"))
		if _, err := Open(dir, "train"); err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// The words and the lengths are part of the data set's identity.
func TestDigestCoversWords(t *testing.T) {
	digest := func(s data.Schema) string {
		dir := filepath.Join(t.TempDir(), "set")
		w, err := Create(dir, Options{Schema: s})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Add(t.Context(), "train", bytesOf(sentence(0)), -1); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		r, err := Open(dir, "train")
		if err != nil {
			t.Fatal(err)
		}
		return r.Digest()
	}
	one := digest(textSchema)
	other := textSchema
	other.Text = &data.Text{Words: append(data.ReservedWords(), "a", "c"), Edges: []int{4, 7}}
	longer := textSchema
	longer.Text = &data.Text{Words: textSchema.Text.Words, Edges: []int{5, 7}}
	if one != digest(textSchema) || one == digest(other) || one == digest(longer) {
		t.Error("digests do not tell words or lengths")
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}
