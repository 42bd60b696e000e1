package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"ebtrain/data"
	"ebtrain/data/dataset"
	"ebtrain/data/loader"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/trained"
)

// pass is one reading of a split.
type pass struct {
	phase       string // what it is shown as
	data, split string
	limit       int64  // samples that are read; 0 is all
	less        string // what makes fewer of them, in words
	// random reads in random order, the same for the same --seed, and where not all is
	// read a random part; else samples come as they lie, the first ones.
	random bool
}

// lessByLimit is what makes fewer samples where all of a split are measured.
const lessByLimit = "--limit"

// split reads a split of a data set as far as --limit goes.
func (e *evaluation) split(phase, name, split string) pass {
	return pass{phase: phase, data: name, split: split, limit: e.o.limit, less: lessByLimit}
}

// own reads the data that are measured.
func (e *evaluation) own(phase string) pass { return e.split(phase, e.o.data, e.o.split) }

// open opens a split whose samples are as the model takes them, or, without a model,
// as those of the data that are judged.
func (e *evaluation) open(name, split string) (data.Source, error) {
	if e.trained != nil {
		return e.trained.Open(name, split)
	}
	src, err := dataset.Open(name, split)
	if err != nil {
		return nil, err
	}
	theirs := trained.Of(src.Schema())
	if ours := trained.Noun(e.takes); ours != trained.Noun(theirs) {
		return nil, fmt.Errorf("%s holds %s, and --data %s holds %s: they are judged beside their like", name, trained.Noun(theirs), e.o.data, ours)
	}
	if trained.Sentences(theirs) {
		if !slices.Equal(theirs.Words, e.takes.Words) {
			return nil, fmt.Errorf("%s holds %s, and --data %s %s of a vocabulary of %d words: make shards of its words with mkshards text --vocabulary, the vocabulary.txt of --data",
				name, src.Schema(), e.o.data, trained.Noun(e.takes), len(e.takes.Words))
		}
		return src, nil
	}
	if s := src.Schema(); graph.D(s.C, s.H, s.W) != e.takes.Shape {
		return nil, fmt.Errorf("%s holds %s, and --data %s %s of %v", name, s, e.o.data, trained.Noun(e.takes), sizeOf(e.takes))
	}
	if columns := src.Schema().Columns; columns != nil && e.columns != nil && !slices.Equal(columns, e.columns) {
		return nil, fmt.Errorf("%s holds rows of a table whose columns, or their scale, are others than those of --data %s: make them with mkshards table --like, that data", name, e.o.data)
	}
	return src, nil
}

// size is how many samples a split holds.
func (e *evaluation) size(name, split string) (int64, error) {
	src, err := e.open(name, split)
	if err != nil {
		return 0, err
	}
	return src.Len(), nil
}

// count is how many of them are measured.
func (e *evaluation) count(name, split string) (int64, error) {
	n, err := e.size(name, split)
	return least(n, e.o.limit), err
}

// least is n, or the limit if there is one and it is less.
func least(n, limit int64) int64 {
	if limit > 0 {
		return min(n, limit)
	}
	return n
}

// each gives use the samples of a pass in order, some at a time with their labels,
// and counts them.
func (e *evaluation) each(ctx context.Context, p pass, use func(x []float32, labels []int64) error) (total int, err error) {
	src, err := e.open(p.data, p.split)
	if err != nil {
		return 0, err
	}
	ld, err := loader.New(src, e.loading(p, src))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, ld.Close()) }()
	for all := int(least(src.Len(), p.limit)); total < all; {
		b, err := ld.Next(ctx)
		if err != nil {
			return total, errors.Join(err, cut(err))
		}
		n := min(filled(b), all-total)
		total += n
		if err := use(b.X[:len(b.X)/len(b.Weight)*n], b.Labels[:n]); err != nil {
			return total, err
		}
		e.progress(p.phase, trained.Speed(e.takes), int64(total), int64(all), p.less)
	}
	return total, nil
}

// cut says more of the end of data that should have gone on.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the split holds fewer samples than it says")
	}
	return nil
}

func (e *evaluation) loading(p pass, src data.Source) loader.Config {
	c := loader.Config{Batch: evened(e.o.batch, src.Len(), least(src.Len(), p.limit)), World: 1, Range: e.takes.Range, Tail: loader.Mask, Passes: 1, Prefetch: 1}
	if p.random {
		c.Shuffle, c.Seed = true, e.o.seed
	}
	return c
}

// evened is the size of batches, at most batch and the number of samples there are, of
// which so many are read: smaller by a few where a single sample would be left for the
// last, and where no smaller one leaves more, larger by a few. A grid of noise levels, and
// a pair, want two.
func evened(batch int, there, read int64) int {
	most := min(int64(batch), there)
	if read < 2 {
		return int(most)
	}
	for n := most; n >= 2; n-- {
		if read%n != 1 {
			return int(n)
		}
	}
	n := most + 1
	for read%n == 1 {
		n++
	}
	return int(n)
}

// filled is the number of slots of a batch that hold samples: the first ones.
func filled(b *loader.Batch) (n int) {
	for _, w := range b.Weight {
		if w > 0 {
			n++
		}
	}
	return n
}

func appendAll(dst []float64, src []float32) []float64 {
	for _, v := range src {
		dst = append(dst, float64(v))
	}
	return dst
}
