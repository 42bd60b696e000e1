package main

import (
	"context"
	"errors"
	"fmt"

	"ebtrain/ddp/exec"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/eval/svm"
	"ebtrain/trainer/trained"
)

// probe measures how well a linear support vector machine tells the classes by the
// means of the posterior: trained on the run's own split, asked on the one that is
// measured. Beside it are the same machine on the raw values that the model sees,
// and on the means of the posterior before training; and both posteriors' again with
// their means standardised, since a machine sees less in what has a small scale, and
// nothing in these methods gives a latent one.
func (e *evaluation) probe(ctx context.Context, r *report) error {
	train := pass{phase: "probe: raw, train", data: e.o.data, split: e.trained.Settings.Split, limit: e.o.probeLimit, less: "a smaller --probe-limit", random: true}
	test := e.own("probe: raw, " + e.o.split)
	raw, _, err := e.accuracy(ctx, train, test, nil)
	if err != nil {
		return err
	}
	untrained, err := e.trained.Untrained(e.backend)
	if err != nil {
		return err
	}
	r.ProbeRaw = &raw
	for _, in := range []struct {
		name         string
		run          *trained.Run
		into, scaled **float64
	}{{"untrained", untrained, &r.ProbeUntrained, &r.ProbeUntrainedScaled}, {"posterior", e.trained, &r.Probe, &r.ProbeScaled}} {
		train.phase, test.phase = "probe: "+in.name+", train", "probe: "+in.name+", "+e.o.split
		as, scaled, err := e.accuracy(ctx, train, test, in.run)
		if err != nil {
			return err
		}
		*in.into, *in.scaled = &as, &scaled
	}
	n, err := e.trained.Open(e.o.data, train.split)
	if err != nil {
		return err
	}
	r.ProbeSamples = least(n.Len(), train.limit)
	return nil
}

// accuracy is that of a machine trained on one pass, on another, and that of one whose
// features are standardised. The features are posterior means of by, or raw values if
// that is nil, which are not standardised: they have one scale.
func (e *evaluation) accuracy(ctx context.Context, train, test pass, by *trained.Run) (as, scaled float64, err error) {
	seen, err := e.examples(ctx, train, by)
	if err != nil {
		return 0, 0, err
	}
	asked, err := e.examples(ctx, test, by)
	if err != nil {
		return 0, 0, err
	}
	classes := occurring(seen.Labels)
	if len(classes) < 2 {
		return 0, 0, fmt.Errorf("all %d %s of %s/%s that the probe is trained on are of one class: want more, with --probe-limit, or leave the probe out of --measures",
			len(seen.Labels), trained.Noun(e.takes), train.data, train.split)
	}
	renumber(seen.Labels, classes)
	renumber(asked.Labels, classes)
	if as, err = told(seen, asked, len(classes)); err == nil && by != nil {
		seen.Standardise(asked)
		scaled, err = told(seen, asked, len(classes))
	}
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", train.phase, err)
	}
	return as, scaled, nil
}

// told is the share of asked whose class a machine trained on seen tells.
func told(seen, asked svm.Examples, classes int) (float64, error) {
	m, err := svm.Fit(seen, classes, svm.Options{})
	if err != nil {
		return 0, err
	}
	return m.Accuracy(asked)
}

// examples are the samples of a pass and their labels.
func (e *evaluation) examples(ctx context.Context, p pass, by *trained.Run) (out svm.Examples, err error) {
	features, done := e.raw, func() error { return nil }
	out.Dim = e.takes.Shape.Len()
	if by != nil {
		look := trained.NewLook(by, e.backend, p.phase, by.Model.(algo.Encoder).Encode, e.o.seed)
		features, done = e.means(ctx, look, &out.Dim), look.Close
	}
	defer func() { err = errors.Join(err, done()) }()
	_, err = e.each(ctx, p, func(x []float32, labels []int64) error {
		f, err := features(x, len(labels), len(out.Labels))
		if err != nil {
			return err
		}
		out.X = appendAll(out.X, f)
		for _, l := range labels {
			out.Labels = append(out.Labels, int(l))
		}
		return nil
	})
	return out, err
}

// raw are the values of samples themselves.
func (e *evaluation) raw(x []float32, _, _ int) ([]float32, error) { return x, nil }

// means are the posterior means of n samples, of which first were seen before; dim
// is set to how many there are of each sample.
func (e *evaluation) means(ctx context.Context, look *trained.Look, dim *int) func(x []float32, n, first int) ([]float32, error) {
	return func(x []float32, n, first int) ([]float32, error) {
		p, err := look.At(ctx, x, n, int64(first))
		if err != nil {
			return nil, err
		}
		var code *exec.Tensor = p.Output(algo.OutputCode)
		*dim = code.Type.Shape.At(1)
		return code.F32(), nil
	}
}

// occurring gives each class that occurs its number among those that do: the
// machine knows no others.
func occurring(labels []int) map[int]int {
	classes := map[int]int{}
	for _, l := range labels {
		if _, ok := classes[l]; !ok {
			classes[l] = len(classes)
		}
	}
	return classes
}

// renumber replaces labels by those numbers, and by −1 where there is none: such a
// sample is never told rightly.
func renumber(labels []int, classes map[int]int) {
	for i, l := range labels {
		number, ok := classes[l]
		if !ok {
			number = -1
		}
		labels[i] = number
	}
}
