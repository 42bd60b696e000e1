package trained

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ebtrain/data"
	"ebtrain/data/dataset"
	"ebtrain/data/loader"
	"ebtrain/trainer/algo"
)

// Open opens a split of the data set called name, whose samples the model takes.
func (r *Run) Open(name, split string) (data.Source, error) {
	src, err := dataset.Open(name, split)
	if err != nil {
		return nil, err
	}
	return src, r.fits(name, src.Schema())
}

// fits says whether the model takes samples of s.
func (r *Run) fits(name string, s data.Schema) error {
	takes, holds := r.Model.Takes(), Of(s)
	switch {
	case Sentences(takes) && Sentences(holds):
		if slices.Equal(takes.Words, holds.Words) { // a sentence may be of any length
			return nil
		}
		return fmt.Errorf("%s holds sentences of another vocabulary (%d words) than the model of %s was trained with (%d): make shards of its words with mkshards text --vocabulary, the vocabulary.txt of the data that it was trained on",
			name, len(holds.Words), r.Path, len(takes.Words))
	case Sentences(takes) != Sentences(holds):
	case takes.Shape == holds.Shape:
		return r.scaledAlike(name, s.Columns)
	}
	return fmt.Errorf("%s holds %s %s, and the model of %s takes %s %s: %s",
		name, Noun(holds), size(holds), r.Path, Noun(takes), size(takes), advice(name, holds, takes))
}

// scaledAlike reports rows of a table whose columns are others than those that the model was
// trained on, or of another scale. Of data that are no table nobody knows.
func (r *Run) scaledAlike(name string, columns []data.Column) error {
	mine := r.Settings.Columns
	if mine == nil || columns == nil || slices.Equal(mine, columns) {
		return nil
	}
	for i, c := range columns {
		if c.Name != mine[i].Name {
			return fmt.Errorf("%s holds rows of a table whose column %d is %q, and the model of %s was trained on one whose is %q: make them with mkshards table --like, the data that it was trained on", name, i, c.Name, r.Path, mine[i].Name)
		}
	}
	return fmt.Errorf("%s holds rows of a table that are scaled otherwise than those that the model of %s was trained on: make them with mkshards table --like, the data that it was trained on", name, r.Path)
}

// advice says what makes a data set whose samples are as a model takes them.
func advice(name string, holds, takes algo.Inputs) string {
	want := takes.Shape
	side := data.Size{H: want.At(1), W: want.At(2)}
	kind, _, _ := strings.Cut(name, ":")
	switch {
	case Sentences(takes) || Sentences(holds):
		return fmt.Sprintf("give a data set of %s", Noun(takes))
	case !Pictures(takes) && kind == dataset.Gauss:
		return fmt.Sprintf("say %s:dim=%d", dataset.Gauss, want.Len())
	case !Pictures(takes) || !Pictures(holds) || dataset.BuiltIn(name) && want.At(0) != holds.Shape.At(0):
		return fmt.Sprintf("give a data set of %s %s", Noun(takes), size(takes))
	case dataset.BuiltIn(name):
		return fmt.Sprintf("say %s:size=%v", dataset.Synth, side)
	}
	return fmt.Sprintf("make shards with mkshards --size %v --channels %d", side, want.At(0))
}

// First are the first n samples of a split, (n, C, H, W) in the model's range.
func (r *Run) First(ctx context.Context, name, split string, n int) (x []float32, err error) {
	src, err := r.Open(name, split)
	if err != nil {
		return nil, err
	}
	if int64(n) > src.Len() {
		return nil, fmt.Errorf("%s/%s holds %s, and %d are asked for", name, split, Count(src.Len(), Noun(r.Model.Takes())), n)
	}
	ld, err := loader.New(src, loader.Config{Batch: n, World: 1, Range: r.Model.Takes().Range, Tail: loader.Mask, Passes: 1})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ld.Close()) }()
	b, err := ld.Next(ctx)
	if err != nil {
		return nil, err
	}
	return slices.Clone(b.X), nil // the batch is the loader's own, which is closed
}
