package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"ebtrain/data"
	"ebtrain/data/loader"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/eval"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/trained"
)

// sentences is what is known of the sentences of a split. A word's part counts the
// end of a sentence as a word, and padding never.
type sentences struct {
	NLL        float64 `json:"nll"`        // −log p of a sentence, nats, the mean
	NLLWord    float64 `json:"nll_word"`   // of all sentences, for each word
	Perplexity float64 `json:"perplexity"` // exp of that
	Accuracy   float64 `json:"accuracy"`   // share of the words that are told from those before them
	Words      int64   `json:"words"`      // ends included
	Unknown    int64   `json:"unknown"`    // of them, not in the vocabulary
}

// recollection is what latents tell of the sentences that they were inferred from.
type recollection struct {
	Given     sentences `json:"given"` // −log p(x|z), z inferred from x by one chain
	Blind     sentences `json:"blind"` // the same, z drawn from the prior
	Collapsed bool      `json:"collapsed"`
}

// leastGain is the share of a sentence's −log p that latents inferred from it must
// explain: below it they are not used, and the decoder is a language model.
const leastGain = 0.01

func lacksRecollection(e *evaluation) string {
	return unless(has[algo.Recollecting](e), "its models infer no latents of sentences")
}

func lacksNLL(e *evaluation) string {
	return unless(has[algo.Literate](e), "its models give sentences no likelihood")
}

// nll measures −log p of sentences.
func (e *evaluation) nll(ctx context.Context, r *report) error {
	s, err := e.sentences(ctx, "nll", e.newReader(e.trained, e.trained.Model.(algo.Literate).NLL), said{algo.OutputLoss, algo.OutputTold})
	if err == nil {
		r.Sentences = &s[0]
	}
	return err
}

// recollections measures what latents tell of sentences.
func (e *evaluation) recollections(ctx context.Context, r *report) error {
	m := e.trained.Model.(algo.Recollecting)
	reader := e.newReader(e.trained, m.Recon)
	reader.before = m.Inferring
	s, err := e.sentences(ctx, "recollections", reader, said{algo.OutputLoss, algo.OutputTold}, said{algo.OutputBlind, algo.OutputBlindTold})
	if err == nil {
		r.Recollection = &recollection{Given: s[0], Blind: s[1], Collapsed: !(s[0].NLL < (1-leastGain)*s[1].NLL)}
	}
	return err
}

// said is a pair of outputs: −log p of each sentence, and how many of its words are told.
type said struct{ loss, told string }

// sentences measures pairs of outputs of what a reader reads, and closes it.
func (e *evaluation) sentences(ctx context.Context, phase string, reader *reader, pairs ...said) (all []sentences, err error) {
	defer func() { err = errors.Join(err, reader.close()) }()
	p := e.own(phase)
	src, err := e.trained.Open(p.data, p.split)
	if err != nil {
		return nil, err
	}
	c := e.loading(pass{}, src)
	ld, err := loader.New(src, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ld.Close()) }()
	var outputs []string
	for _, p := range pairs {
		outputs = append(outputs, p.loss, p.told)
	}
	all = make([]sentences, len(pairs))
	first := least(src.Len(), p.limit)
	for n, read := int64(0), int64(0); n < first; read += int64(c.Batch) {
		b, err := ld.Next(ctx)
		if err != nil {
			return nil, errors.Join(err, cut(err))
		}
		values, err := reader.read(ctx, b.Length, b.Tokens, b.Lengths, read, outputs...)
		if err != nil {
			return nil, err
		}
		for i, weight := range b.Weight {
			if weight == 0 || b.Indices[i] >= first { // buckets mix what is measured with the rest
				continue
			}
			n++
			for k := range all {
				all[k].add(b, i, float64(values[2*k][i]), float64(values[2*k+1][i]))
			}
		}
		e.progress(p.phase, trained.Speed(e.takes), n, first, lessByLimit)
	}
	for k := range all {
		if err := all[k].finish(first); err != nil {
			return nil, fmt.Errorf("%s/%s: %w", p.data, p.split, err)
		}
	}
	return all, nil
}

// add counts the sentence of slot i.
func (s *sentences) add(b *loader.Batch, i int, loss, told float64) {
	s.NLL += loss
	s.Accuracy += told
	s.Words += int64(b.Lengths[i]) - 1
	for _, t := range b.Tokens[i*b.Length : (i+1)*b.Length] {
		if t == data.Unknown {
			s.Unknown++
		}
	}
}

// finish makes means of the sums over n sentences.
func (s *sentences) finish(n int64) error {
	sum := s.NLL
	s.NLL, s.NLLWord = sum/float64(n), sum/float64(s.Words)
	s.Perplexity, s.Accuracy = math.Exp(s.NLLWord), s.Accuracy/float64(s.Words)
	if math.IsNaN(sum) || math.IsInf(s.Perplexity, 0) {
		return eval.NotFinite("training diverged: −log p of the %d sentences is %v", n, sum)
	}
	return nil
}

// reader shows a model batches of sentences: a Look for each length.
type reader struct {
	look   func(build trained.Builder) *trained.Look
	build  func(length, n int) (*graph.Graph, error)
	before func(length, n int) ([]chain.Stage, []nn.Variable, error) // nil: nothing
	looks  map[int]*trained.Look
}

// newReader is a reader of a model, whose graphs build makes.
func (e *evaluation) newReader(run *trained.Run, build func(length, n int) (*graph.Graph, error)) *reader {
	look := func(build trained.Builder) *trained.Look {
		return trained.NewLook(run, e.backend, "sentences", build, e.o.seed)
	}
	return &reader{look: look, build: build, looks: map[int]*trained.Look{}}
}

// read gives outputs for each of a batch of sentences: tokens (n, length), padded, and
// lengths (n), the first of which is number first of all that are read.
func (r *reader) read(ctx context.Context, length int, tokens, lengths []int32, first int64, outputs ...string) ([][]float32, error) {
	look := r.looks[length]
	if look == nil {
		look = r.look(func(n int) (*graph.Graph, error) { return r.build(length, n) })
		if r.before != nil {
			look.Before = func(n int) ([]chain.Stage, []nn.Variable, error) { return r.before(length, n) }
		}
		r.looks[length] = look
	}
	p, err := look.Read(ctx, tokens, lengths, first)
	if err != nil {
		return nil, err
	}
	all := make([][]float32, len(outputs))
	for k, name := range outputs {
		all[k] = p.Output(name).F32()
	}
	return all, nil
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
		add("words that are told\t%.4f\n", s.Accuracy)
	}
	if m := r.Recollection; m != nil {
		add("−log p(x|z) of a sentence\t%.5g\tz inferred from it (%.5g a word, perplexity %.5g, %.4f of the words told)\n", m.Given.NLL, m.Given.NLLWord, m.Given.Perplexity, m.Given.Accuracy)
		add("\t%.5g\tz from the prior (%.4f told)\n", m.Blind.NLL, m.Blind.Accuracy)
		if m.Collapsed {
			add("collapsed: the latents tell nothing of the sentences (less than %g %% of −log p)\n", 100*leastGain)
		}
	}
}
