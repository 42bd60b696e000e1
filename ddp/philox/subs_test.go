package philox

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// shared are the subs that have another's number. They had it before subs had names, and
// keep it, for classifiers that are on disk: it means that a classifier's passes are
// shuffled by the words that shuffle shards under the same seed. Append nothing.
var shared = []string{"DataOrderClassifier", "AugmentClassifierFlip"}

// No two draws of a purpose have a number.
func TestSubsAreApart(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "subs.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	purposes, n := []string{"Sampling", "DataOrder", "Augment"}, 0
	taken := map[string]string{} // who has a purpose's number
	for _, decl := range file.Decls {
		for _, spec := range decl.(*ast.GenDecl).Specs {
			sub := spec.(*ast.ValueSpec)
			name, number := sub.Names[0].Name, sub.Values[0].(*ast.BasicLit).Value
			i := slices.IndexFunc(purposes, func(p string) bool { return strings.HasPrefix(name, p) })
			if i < 0 {
				t.Fatalf("%s begins with none of %v", name, purposes)
			}
			n++
			place := purposes[i] + " " + number
			if other, ok := taken[place]; ok != slices.Contains(shared, name) {
				t.Errorf("%s is %s, which %q has", name, place, other)
			}
			taken[place] = name
		}
	}
	if n < 20 {
		t.Errorf("%d subs were found", n)
	}
}

// Numbers of subs name the draws of runs and evaluations that are on disk.
func TestSubsKeepTheirNumbers(t *testing.T) {
	for _, tt := range []struct {
		from uint16
		subs []uint16
	}{
		{0, []uint16{SamplingLatents, SamplingUniform, SamplingSubset, SamplingPatches, SamplingDirections, SamplingSeed, SamplingStarts, SamplingGiven}},
		{16, []uint16{SamplingNoise, SamplingPixels, SamplingClass, SamplingRepeated, SamplingUnigram, SamplingWords}},
		{0, []uint16{DataOrderShards, DataOrderBlocks, DataOrderPool, DataOrderAll}},
		{16, []uint16{DataOrderImport, DataOrderTable}},
		{0, []uint16{DataOrderClassifier}},
		{0, []uint16{AugmentFlip}},
		{0, []uint16{AugmentClassifierFlip}},
	} {
		for i, sub := range tt.subs {
			if want := tt.from + uint16(i); sub != want {
				t.Errorf("a sub is %d, want %d", sub, want)
			}
		}
	}
}
