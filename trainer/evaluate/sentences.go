package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"ebtrain/data"
	"ebtrain/data/loader"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/trained"
)

// sentences is what is known of the sentences of a split. A word's part counts the
// end of a sentence as a word, and padding never.
type sentences struct {
	NLL        float64 `json:"nll"`        // −log p of a sentence, nats, the mean
	NLLWord    float64 `json:"nll_word"`   // of all sentences, for each word
	Perplexity float64 `json:"perplexity"` // exp of that
	Words      int64   `json:"words"`      // ends included
	Unknown    int64   `json:"unknown"`    // of them, not in the vocabulary
}

func lacksNLL(e *evaluation) string {
	return unless(has[algo.Literate](e), "its models give sentences no likelihood")
}

// nll measures −log p of sentences.
func (e *evaluation) nll(ctx context.Context, r *report) (err error) {
	p := e.own("nll")
	src, err := e.trained.Open(p.data, p.split)
	if err != nil {
		return err
	}
	c := e.loading(pass{phase: p.phase}, src)
	ld, err := loader.New(src, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ld.Close()) }()
	reader := &reader{e: e, batch: c.Batch, looks: map[int]*trained.Look{}}
	defer func() { err = errors.Join(err, reader.close()) }()
	first := least(src.Len(), p.limit)
	var s sentences
	var sum float64
	var n int64
	for n < first {
		b, err := ld.Next(ctx)
		if errors.Is(err, io.EOF) {
			return cut(err)
		}
		if err != nil {
			return err
		}
		losses, err := reader.read(ctx, b)
		if err != nil {
			return err
		}
		for i, loss := range losses {
			if b.Weight[i] == 0 || b.Indices[i] >= first { // buckets mix what is measured with the rest
				continue
			}
			n++
			sum += float64(loss)
			s.Words += int64(b.Lengths[i]) - 1
			for _, t := range b.Tokens[i*b.Length : (i+1)*b.Length] {
				if t == data.Unknown {
					s.Unknown++
				}
			}
		}
		e.show.Progress(p.phase, trained.Noun(e.takes)+"/s", n, first)
	}
	s.NLL, s.NLLWord = sum/float64(n), sum/float64(s.Words)
	s.Perplexity = math.Exp(s.NLLWord)
	if math.IsNaN(sum) || math.IsInf(s.Perplexity, 0) {
		return fmt.Errorf("training diverged: −log p of the %d sentences of %s/%s is %v", n, p.data, p.split, sum)
	}
	r.Sentences = &s
	return nil
}

// reader reads batches of sentences: a Look for each length.
type reader struct {
	e     *evaluation
	batch int
	looks map[int]*trained.Look
	n     int64 // batches read, which name the draws
}

// read gives −log p of each slot of b.
func (r *reader) read(ctx context.Context, b *loader.Batch) ([]float32, error) {
	look := r.looks[b.Length]
	if look == nil {
		build := func(n int) (*graph.Graph, error) {
			return r.e.trained.Model.(algo.Literate).NLL(b.Length, n)
		}
		look = trained.NewLook(r.e.trained, r.e.backend, "nll", build, r.e.o.seed)
		r.looks[b.Length] = look
	}
	first := r.n * int64(r.batch)
	r.n++
	p, err := look.Read(ctx, b.Tokens, b.Lengths, first)
	if err != nil {
		return nil, err
	}
	return p.Output(algo.OutputLoss).F32(), nil
}

func (r *reader) close() error {
	var errs []error
	for _, l := range r.looks {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// addSentences adds what is known of sentences.
func (r *report) addSentences(add adder) {
	if s := r.Sentences; s != nil {
		add("−log p of a sentence\t%.5g\n", s.NLL)
		add("−log p of a word\t%.5g\t(%d words, ends included; %.2f %% not in the vocabulary)\n", s.NLLWord, s.Words, 100*float64(s.Unknown)/float64(s.Words))
		add("perplexity of a word\t%.5g\n", s.Perplexity)
	}
}
