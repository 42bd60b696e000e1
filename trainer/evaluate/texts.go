package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"ebtrain/data"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/eval"
	"ebtrain/trainer/eval/control"
	"ebtrain/trainer/eval/feature"
	"ebtrain/trainer/eval/ngram"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/trained"
)

// fewSentences is how many there are in the set that has few, again and again.
const fewSentences = 10

// textMaker makes a set of sentences.
type textMaker func(ctx context.Context) ([][]int32, error)

// makers are those of all sets that there are, beside samples.
func (f fluency) makers(samples [][]int32) map[string]textMaker {
	e := f.e
	is := func(s [][]int32) textMaker {
		return func(context.Context) ([][]int32, error) { return s, nil }
	}
	some := control.Some(f.train, e.o.samples, e.o.seed)
	all := map[string]textMaker{
		setSamples:  is(samples),
		setUnigram:  is(control.Unigram(some, f.train, e.o.seed)),
		setShuffled: is(control.ShuffledWords(some, e.o.seed)),
		setTen:      is(control.Some(some[:min(fewSentences, len(some))], e.o.samples, e.o.seed)),
	}
	if f.hasFloor() {
		all[setFloor] = is(f.test)
	}
	if p, ok := e.primed(); ok {
		all[setNormal] = func(ctx context.Context) ([][]int32, error) {
			plan, err := p.SampleNormal(trained.Modes[e.o.stats], e.drawing())
			return e.write(ctx, setNormal, plan, err)
		}
	}
	return all
}

// primed is the model, if its prior was learnt.
func (e *evaluation) primed() (p algo.Primed, ok bool) {
	if e.trained != nil {
		p, ok = e.trained.Model.(algo.Primed)
	}
	return p, ok
}

// real are training sentences, as many as samples if there are.
func (f fluency) real() [][]int32 {
	return control.Some(f.train, min(f.e.o.samples, len(f.train)), f.e.o.seed)
}

// written are sentences of the model, or those of --samples-from.
func (e *evaluation) written(ctx context.Context) ([][]int32, error) {
	if e.trained != nil {
		plan, err := e.trained.Model.(algo.Sampler).Sample(trained.Modes[e.o.stats], e.drawing())
		return e.write(ctx, setSamples, plan, err)
	}
	split, err := splitOf(e.o.samplesFrom)
	if err != nil {
		return nil, err
	}
	return e.sentencesOf(ctx, e.o.samplesFrom, split, int64(e.o.samples))
}

// write draws --samples sentences by a plan, if err is nil.
func (e *evaluation) write(ctx context.Context, phase string, plan chain.Plan, err error) ([][]int32, error) {
	if err != nil {
		return nil, err
	}
	x, err := e.draw(ctx, phase, plan, nil)
	if err != nil {
		return nil, err
	}
	all := make([][]int32, 0, e.o.samples)
	for row := range slices.Chunk(x, e.takes.Shape.Len()) {
		end := slices.Index(row, data.End)
		if end < 0 { // of probabilities that are numbers every sentence has one
			return nil, eval.NotFinite("training diverged: sentence %d of the %s has no end: the probabilities of its words are no numbers", len(all), phase)
		}
		s := make([]int32, end+1)
		for i := range s {
			s[i] = int32(row[i])
		}
		all = append(all, s)
	}
	return all, nil
}

// sentencesOf are the first sentences of a split, 0 for all.
func (e *evaluation) sentencesOf(ctx context.Context, name, split string, limit int64) (all [][]int32, err error) {
	src, err := e.open(name, split)
	if err != nil {
		return nil, err
	}
	var b data.Block
	for i, span := range src.Layout().Spans() {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err := src.ReadBlock(i, &b); err != nil {
			return nil, err
		}
		for j := range span.N {
			if int64(len(all)) == least(src.Len(), limit) {
				return all, nil
			}
			all = append(all, b.Tokens(j, nil))
		}
	}
	return all, nil
}

// judged is what --judge says of sentences. The ranks share them, those of about the
// same length together.
func (e *evaluation) judged(ctx context.Context, of string, sentences [][]int32) (all ngram.Score, err error) {
	order := make([]int, len(sentences))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(len(sentences[i]), len(sentences[j])) })
	r := e.newReader(e.judge, e.judge.Model.(algo.Literate).NLL)
	defer func() { err = errors.Join(err, r.close()) }()
	batch := min(e.o.batch, len(order))
	losses, err := feature.Shared(ctx, e.comm, "judge", len(order), batch, 1, func(from, to int, out []float64) error {
		length := e.padded(len(sentences[order[to-1]]))
		tokens, lengths := make([]int32, batch*length), make([]int32, batch)
		for k, i := range order[from:to] {
			lengths[k] = int32(copy(tokens[k*length:], sentences[i]))
		}
		x, err := r.read(ctx, length, tokens, lengths, int64(from), algo.OutputLoss)
		if err != nil {
			return err
		}
		for k := range out {
			out[k] = float64(x[0][k])
		}
		e.progress("judge: "+of, "sentences/s", int64(to), int64(len(order)), lessBySamples)
		return nil
	})
	if err != nil {
		return all, err
	}
	for k, i := range order {
		all.Add(ngram.Score{NLL: losses[k], Words: int64(len(sentences[i]) - 1)})
	}
	if math.IsNaN(all.NLL) || math.IsInf(all.Perplexity(), 0) {
		// No NotFiniteError: that would say it of the run.
		return all, fmt.Errorf("--judge %s has diverged: −log p of these sentences is %v", e.o.judge, all.NLL)
	}
	return all, nil
}

// padded is the least length of --judge's batches that a sentence fits into, or its
// own if it is longer than all of them.
func (e *evaluation) padded(length int) int {
	for _, l := range e.judge.Model.(algo.Sequential).Lengths() {
		if length <= l {
			return l
		}
	}
	return length
}
