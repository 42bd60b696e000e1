package main

import (
	"context"
	"fmt"
	"slices"

	"ebtrain/trainer/algo"
	"ebtrain/trainer/eval/compare"
	"ebtrain/trainer/eval/ngram"
	"ebtrain/trainer/trained"
)

// order is the n of the n-grams that judge sentences.
const order = 5

// Rows of the measures of sentences that a model writes. A word's perplexity counts
// the end of a sentence as a word.
const (
	rowForward = "forward"       // of samples, by a model of training sentences
	rowJudged  = "forward-judge" // the same, by that of --judge
	rowReverse = "reverse"       // of the split, by a model of samples
)

func fluencyRows() []compare.Row {
	return []compare.Row{
		{Name: rowForward, Title: "forward perplexity, 5-gram", Better: compare.Lower, Measure: measureForward},
		{Name: rowJudged, Title: "forward perplexity, --judge", Better: compare.Lower, Measure: measureForward},
		{Name: rowReverse, Title: "reverse perplexity, 5-gram", Better: compare.Lower, Measure: measureReverse},
	}
}

// judging is a measure of sentences that a model writes. Both are taken together, of
// one set after the other.
func judging(name string) measure {
	return measure{
		name: name, trains: true, asked: true, samples: true,
		lacks: func(e *evaluation) string {
			switch {
			case e.trained != nil && lacksSamples(e) != "":
				return lacksSamples(e)
			case !trained.Sentences(e.takes):
				return "its samples are no sentences"
			}
			return ""
		},
		take: func(e *evaluation, _ context.Context, _ *report) error {
			e.fluency = append(e.fluency, name)
			return nil
		},
	}
}

// openJudge reads the language model of --judge, if there is one and it is of use.
func (e *evaluation) openJudge() error {
	if e.o.judge == "" || !trained.Sentences(e.takes) {
		return nil
	}
	run, err := trained.Load(e.o.judge, trained.Choice{Step: trained.Newest}, e.backend, e.log)
	if err != nil {
		return fmt.Errorf("--judge: %w", err)
	}
	if _, ok := run.Model.(algo.Literate); !ok {
		return fmt.Errorf("--judge %s is a run of --algo %s, whose models give sentences no likelihood: name a run of a language model (--algo lm)", e.o.judge, run.Settings.Algo)
	}
	src, err := run.Open(e.o.data, e.trainSplit())
	if err != nil {
		return fmt.Errorf("--judge: %w", err)
	}
	if src.Digest() != run.Settings.DataDigest {
		return fmt.Errorf("--judge %s was trained on other sentences than those of %s/%s: name a run that was trained on these", e.o.judge, e.o.data, e.trainSplit())
	}
	e.judge, run.Ranks = run, e.ranks
	return nil
}

// fluency judges sets of sentences.
type fluency struct {
	e           *evaluation
	train, test [][]int32
	judge       *ngram.Model // of the training sentences; nil where it is not asked for
}

// compareSentences judges samples, the floor and the controls.
func (e *evaluation) compareSentences(ctx context.Context, r *report) (err error) {
	f := fluency{e: e}
	if f.train, err = e.sentencesOf(ctx, e.o.data, e.trainSplit(), 0); err != nil {
		return err
	}
	if f.test, err = e.sentencesOf(ctx, e.o.data, e.o.split, e.o.limit); err != nil {
		return err
	}
	c := e.newComparison(len(f.train))
	asMany := e.noMoreThan(len(f.train))
	if slices.Contains(e.fluency, measureForward) {
		var notes []string
		if f.judge, notes, err = f.grams("training sentences", f.train); err != nil {
			return err
		}
		c.Notes = append(c.Notes, notes...)
	}
	samples, err := e.written(ctx)
	if err != nil {
		return err
	}
	c.Notes = append(c.Notes, asMany(len(samples))...)
	makers := f.makers(samples)
	for _, name := range setNames() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if makers[name] == nil {
			continue
		}
		set, err := makers[name](ctx)
		if err != nil {
			return err
		}
		values, notes, err := f.of(ctx, name, set)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		c.keep(name, len(set), values)
		c.Notes = append(c.Notes, notes...)
	}
	c.Notes = append(c.Notes, f.notes()...)
	c.judge()
	r.Quality = c
	return nil
}

// of are the numbers of a set.
func (f fluency) of(ctx context.Context, name string, set [][]int32) (values []compare.Value, notes []string, err error) {
	add := func(row string, s ngram.Score) {
		values = append(values, compare.Value{Row: row, Value: s.Perplexity()})
	}
	if f.judge != nil {
		s, err := f.judge.Score(set)
		if err != nil {
			return nil, nil, err
		}
		add(rowForward, s)
		if f.e.judge != nil {
			if s, err = f.e.judged(ctx, name, set); err != nil {
				return nil, nil, err
			}
			add(rowJudged, s)
		}
	}
	if slices.Contains(f.e.fluency, measureReverse) {
		if name == setFloor {
			set = f.real()
		}
		m, notes, err := f.grams(name, set)
		if err != nil {
			return nil, nil, err
		}
		s, err := m.Score(f.test)
		if err != nil {
			return nil, nil, err
		}
		add(rowReverse, s)
		return values, notes, nil
	}
	return values, nil, nil
}

// grams is a model of sentences, and a note where they are too few for its discounts,
// as bad ones may well be.
func (f fluency) grams(of string, sentences [][]int32) (m *ngram.Model, notes []string, err error) {
	if m, err = ngram.Train(order, len(f.e.takes.Words), sentences); err != nil || slices.Contains([]string{setUnigram, setShuffled, setTen}, of) {
		return m, nil, err
	}
	var guessed []int
	for k, d := range m.Discounts() {
		if d.Guessed {
			guessed = append(guessed, k+1)
		}
	}
	if guessed != nil {
		notes = []string{fmt.Sprintf("%s: too few for estimates of the discounts of n-grams of %v words; 0.5, 1 and 1.5 stand in their place", of, guessed)}
	}
	return m, notes, nil
}

// notes are sentences about the floor.
func (f fluency) notes() []string {
	switch {
	case !f.hasFloor():
		return []string{fmt.Sprintf("there is no floor: --split %s is what was trained on", f.e.o.split)}
	case slices.Contains(f.e.fluency, measureReverse):
		return []string{fmt.Sprintf("the floor of reverse perplexity is that by a model of %d training sentences", len(f.real()))}
	}
	return nil
}

// hasFloor says whether there are real sentences that were not trained on.
func (f fluency) hasFloor() bool { return f.e.o.split != f.e.trainSplit() }
