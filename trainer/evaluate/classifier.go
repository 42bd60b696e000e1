package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"ebtrain/data/atomicfile"
	"ebtrain/launch/cliflag"
	"ebtrain/trainer/eval/feature"
	"ebtrain/trainer/trained"
)

// trainClassifier trains a classifier on the labels of the data, measures it on
// --split, and writes it. Of several ranks only the first does.
func (e *evaluation) trainClassifier(ctx context.Context, stdout io.Writer) error {
	if e.comm != nil && e.comm.Rank() > 0 {
		return nil
	}
	src, err := e.open(e.o.data, e.trainSplit())
	if err != nil {
		return err
	}
	classes := len(src.Schema().Classes)
	switch {
	case !trained.Pictures(e.takes):
		return fmt.Errorf("--train-classifier: %s holds %s, and a classifier is of pictures", e.o.data, src.Schema())
	case classes < 2:
		return fmt.Errorf("--train-classifier: %s has %d classes, and a classifier tells at least 2 apart", e.o.data, classes)
	}
	if err := cmp.Or(atomicfile.Check(e.o.trainClassifier), feature.CheckReplace(e.o.trainClassifier)); err != nil {
		return fmt.Errorf("--train-classifier %s: %w", e.o.trainClassifier, err)
	}
	seen, err := e.labelled(ctx, "training pictures", e.trainSplit())
	if err != nil {
		return err
	}
	batch := min(e.o.batch, len(seen.Labels))
	steps := max(1, e.o.passes*len(seen.Labels)/batch)
	net, err := feature.Train(ctx, e.backend, seen, feature.Training{Classes: classes, Steps: steps, Batch: batch, Seed: e.o.seed, Flip: true,
		Each: func(done int, _ float64) {
			e.progress("classifier", "steps/s", int64(done), int64(steps), "fewer --passes")
		}})
	if err != nil {
		return err
	}
	asked, err := e.labelled(ctx, "test pictures", e.o.split)
	if err != nil {
		return err
	}
	x, err := feature.NewProbabilities(e.backend, net, batch)
	if err != nil {
		return err
	}
	p, err := x.Of(ctx, nil, asked.X)
	if err := errors.Join(err, x.Close()); err != nil {
		return err
	}
	accuracy := feature.Accuracy(p, asked.Labels)
	e.show.End()
	if err := net.Save(e.o.trainClassifier, src.Digest(), accuracy); err != nil {
		return cliflag.Unwritten("--train-classifier", "another file", err)
	}
	_, err = fmt.Fprintf(stdout, "%s: a classifier of %d classes, trained on %d pictures of %s/%s; accuracy on %d of %s/%s %.4f\n",
		e.o.trainClassifier, classes, len(seen.Labels), e.o.data, e.trainSplit(), len(asked.Labels), e.o.data, e.o.split, accuracy)
	return err
}

// labelled are all pictures of a split with their labels.
func (e *evaluation) labelled(ctx context.Context, name, split string) (feature.Labelled, error) {
	p, err := e.real(ctx, name, e.o.data, split, int(e.o.limit))
	out := feature.Labelled{Size: sizeOf(e.takes), X: p.X}
	for _, l := range p.labels {
		out.Labels = append(out.Labels, int(l))
	}
	return out, err
}
