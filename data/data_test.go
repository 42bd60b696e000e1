package data

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"ebtrain/data/safetensors"
)

func TestSpansTileTheSamples(t *testing.T) {
	got := Layout{BlockSamples: 4, Shards: []int64{9, 4}}.Spans()
	want := []Span{{0, 0, 0, 4}, {0, 1, 4, 4}, {0, 2, 8, 1}, {1, 0, 9, 4}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestValidate(t *testing.T) {
	tests := []struct {
		name string
		err  error
		ok   bool
	}{
		{"good layout", Layout{1, []int64{3}}.Validate(), true},
		{"no block", Layout{0, []int64{3}}.Validate(), false},
		{"empty shard", Layout{1, []int64{3, 0}}.Validate(), false},
		{"2³² samples", Layout{1, []int64{math.MaxUint32, 1}}.Validate(), false},
		{"good schema", Schema{C: 3, H: 32, W: 32, DType: safetensors.U8}.Validate(), true},
		{"type", Schema{C: 3, H: 32, W: 32, DType: safetensors.I64}.Validate(), false},
		{"no rows", Schema{C: 3, H: 0, W: 32, DType: safetensors.U8}.Validate(), false},
		{"text", Schema{C: 1, H: 1, W: 9, DType: safetensors.I32, Text: &Text{Edges: []int{4, 9}}}.Validate(), true},
		{"text of bytes", Schema{C: 1, H: 1, W: 9, DType: safetensors.U8, Text: &Text{Edges: []int{9}}}.Validate(), false},
		{"text in rows", Schema{C: 1, H: 2, W: 9, DType: safetensors.I32, Text: &Text{Edges: []int{9}}}.Validate(), false},
		{"text without its longest bucket", Schema{C: 1, H: 1, W: 9, DType: safetensors.I32, Text: &Text{Edges: []int{4, 8}}}.Validate(), false},
		{"text in buckets that fall", Schema{C: 1, H: 1, W: 9, DType: safetensors.I32, Text: &Text{Edges: []int{5, 5, 9}}}.Validate(), false},
		{"text in five buckets", Schema{C: 1, H: 1, W: 9, DType: safetensors.I32, Text: &Text{Edges: []int{4, 5, 6, 7, 9}}}.Validate(), false},
		{"huge", Schema{C: 1 << 14, H: 1 << 14, W: 2, DType: safetensors.U8}.Validate(), false},
		{"label", Schema{Classes: []string{"a"}}.CheckLabel(0), true},
		{"label out of range", Schema{Classes: []string{"a"}}.CheckLabel(1), false},
		{"label without classes", Schema{}.CheckLabel(0), false},
	}
	for _, tt := range tests {
		if (tt.err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, tt.err)
		}
	}
}

func TestCorruptErrorNamesThePlace(t *testing.T) {
	cause := errors.New("damaged")
	tests := []struct {
		err  *CorruptError
		want string
	}{
		{&CorruptError{File: "f", Frame: 3, Offset: 70, First: 8, N: 4, Err: cause}, "f: frame 3 at offset 70 (samples 8 to 11): damaged; copy or import the data set again"},
		{&CorruptError{File: "f", Frame: -1, Offset: -1, First: 0, N: 1, Err: cause}, "f (samples 0 to 0): damaged; copy or import the data set again"},
	}
	for _, tt := range tests {
		if got := tt.err.Error(); got != tt.want || !errors.Is(tt.err, cause) {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// A sentence in words has neither ends nor padding.
func TestSentence(t *testing.T) {
	words := append(ReservedWords(), "a", "b")
	if got := Sentence(words, []int32{Begin, 4, Unknown, 5, End, Padding, 4}); got != "a <unk> b" {
		t.Errorf("%q", got)
	}
	if err := CheckWords(words); err != nil {
		t.Error(err)
	}
}
