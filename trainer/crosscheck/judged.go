package main

import (
	"context"
	"errors"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/trainer/eval/feature"
)

// judged are pictures, a network's variables, and what it tells of them.
type judged struct {
	Pictures array            `json:"pictures"`
	Vars     map[string]array `json:"vars"`
	Features []float64        `json:"features"`
	Classes  []float64        `json:"classes,omitempty"` // probabilities
}

// random are the features of a random network: means of all its layers.
func random(ctx context.Context) (any, error) {
	s := feature.Size{C: 3, H: 21, W: 34}
	return judge(ctx, feature.Random(4, s), pictures(3*s.Len(), 21))
}

// judge computes the features of pictures, and their classes, in batches that do not divide them.
func judge(ctx context.Context, n feature.Net, x []float32) (j judged, err error) {
	j.Pictures = array{Shape: []int{len(x) / n.Size.Len(), n.Size.C, n.Size.H, n.Size.W}, X: widened(x)}
	if j.Vars, err = valuesOf(n); err != nil {
		return j, err
	}
	j.Features, err = of(ctx, n, x, feature.NewExtractor)
	if err == nil && n.Classes > 0 {
		j.Classes, err = of(ctx, n, x, feature.NewProbabilities)
	}
	return j, err
}

// valuesOf is a network's variables, by name.
func valuesOf(n feature.Net) (map[string]array, error) {
	values, err := n.Values()
	out := map[string]array{}
	for name, t := range values {
		out[name] = arrayOf(t)
	}
	return out, err
}

func of(ctx context.Context, n feature.Net, x []float32, compile func(exec.Backend, feature.Net, int) (*feature.Extractor, error)) (_ []float64, err error) {
	e, err := compile(ref.New(), n, 2)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	m, err := e.Of(ctx, nil, x)
	return m.X, err
}

func widened(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

// learned is a classifier, and what it was after fewer steps.
type learned struct {
	judged
	Labels []int    `json:"labels"`
	Seed   uint64   `json:"seed"`
	Runs   []lesson `json:"runs"`
}

// lesson is a training from the first values on.
type lesson struct {
	Losses []float64        `json:"losses"` // of each step
	Vars   map[string]array `json:"vars"`   // after all of them
}

// classifier is trained for 0, 1, 2 and 4 steps, of the last of which the rate is a tenth.
// A batch is all pictures, so that the order of the data does not matter.
func classifier(ctx context.Context) (any, error) {
	data := feature.Labelled{Size: feature.Size{C: 2, H: 8, W: 13}, Labels: []int{2, 0, 1, 1, 2, 0}}
	data.X = pictures(len(data.Labels)*data.Size.Len(), 22)
	out := learned{Labels: data.Labels, Seed: 9}
	var n feature.Net
	for _, steps := range []int{0, 1, 2, 4} {
		var l lesson
		var err error
		n, err = feature.Train(ctx, ref.New(), data, feature.Training{Classes: 3, Steps: steps, Batch: len(data.Labels), Seed: out.Seed, Flip: true,
			Each: func(_ int, loss float64) { l.Losses = append(l.Losses, loss) }})
		if err != nil {
			return nil, err
		}
		if l.Vars, err = valuesOf(n); err != nil {
			return nil, err
		}
		out.Runs = append(out.Runs, l)
	}
	var err error
	out.judged, err = judge(ctx, n, data.X)
	return out, err
}
