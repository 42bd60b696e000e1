package main

import (
	"math"

	"ebtrain/ddp/philox"
	"ebtrain/trainer/eval"
	"ebtrain/trainer/eval/quality"
	"ebtrain/trainer/eval/svm"
)

// normals are n draws from N(0, 1), others for each stream.
func normals(n int, stream uint32) []float64 {
	x := make([]float64, n)
	philox.Name{Seed: 5, Purpose: philox.Testing, Step: stream}.Normal(x)
	return x
}

// statistics are those of evaluation, with what they are of.
func statistics() (map[string]any, error) {
	out := map[string]any{}
	for name, part := range map[string]func() (any, error){
		"features": features, "inception": inceptionScore, "swd": swd, "numbers": numbers, "svm": machines, "ngram": ngrams,
	} {
		v, err := part()
		if err != nil {
			return nil, err
		}
		out[name] = v
	}
	return out, nil
}

// featureSet is what samples' features x and those of real pictures, y, are like.
type featureSet struct {
	name     string
	n, m, d  int
	round    float64 // of the values, so that distances tie; 0: not
	copies   int     // of the first row of each, at the end
	borrowed int     // rows of y that are x's
}

var featureSets = []featureSet{
	{name: "plain", n: 40, m: 30, d: 5},
	{name: "lowrank", n: 6, m: 7, d: 12},
	{name: "ties", n: 60, m: 50, d: 2, round: 1},
	{name: "copies", n: 30, m: 30, d: 4, copies: 9, borrowed: 10},
	{name: "constant", n: 20, m: 20, d: 3, copies: 19},
}

func (f featureSet) matrix(n int, stream uint32) quality.Matrix {
	m := quality.Matrix{N: n, D: f.d, X: normals(n*f.d, stream)}
	for i := range m.X {
		m.X[i] += 0.3 * float64(stream)
		if f.round > 0 {
			m.X[i] = math.Round(m.X[i]/f.round) * f.round
		}
	}
	for i := range f.copies {
		copy(m.Row(n-1-i), m.Row(0))
	}
	return m
}

// features are the distances between sets of features.
func features() (any, error) {
	out := map[string]any{}
	for _, f := range featureSets {
		x, y := f.matrix(f.n, 1), f.matrix(f.m, 2)
		for i := range f.borrowed {
			copy(y.Row(i), x.Row(i))
		}
		v, err := distances(x, y)
		if err != nil {
			return nil, err
		}
		out[f.name] = v
	}
	return out, nil
}

func distances(x, y quality.Matrix) (any, error) {
	gx, err := quality.FitGaussian(x)
	if err != nil {
		return nil, err
	}
	gy, err := quality.FitGaussian(y)
	if err != nil {
		return nil, err
	}
	f, err := quality.Frechet(gx, gy)
	if err != nil {
		return nil, err
	}
	n := min(x.N, y.N) // all of both are the one subset
	k, err := quality.KID{Subsets: 1, Size: n, Seed: 1, Mul: quality.Plain}.Of(x.Rows(0, n), y.Rows(0, n))
	if err != nil {
		return nil, err
	}
	mf, err := quality.NewManifold(x, quality.Plain)
	if err != nil {
		return nil, err
	}
	p, err := mf.Judge(y)
	if err != nil {
		return nil, err
	}
	near, err := quality.Nearest(y, x, quality.Plain)
	return map[string]any{"x": x, "y": y, "frechet": f, "kid": k, "prdc": p, "nearest": near}, err
}

// inceptionScore is that of random class probabilities.
func inceptionScore() (any, error) {
	p := featureSet{d: 6}.matrix(43, 3)
	for i := range p.N {
		sum := 0.0
		for j, v := range p.Row(i) {
			p.Row(i)[j] = math.Exp(2 * v)
			sum += p.Row(i)[j]
		}
		for j := range p.D {
			p.Row(i)[j] /= sum
		}
	}
	mean, sd, err := quality.InceptionScore(p, 10)
	return map[string]any{"p": p, "mean": mean, "sd": sd}, err
}

// swd is the sliced Wasserstein distance of two sets of noise.
func swd() (any, error) {
	s := quality.SWD{Patches: 9, Directions: 7, Seed: 3, Mul: quality.Plain}
	var sets [2]quality.Pictures
	for k := range sets {
		p := quality.Pictures{N: 3, C: 2, H: 32, W: 64}
		for _, v := range normals(p.N*p.C*p.H*p.W, uint32(4+k)) {
			p.X = append(p.X, float32(v))
		}
		sets[k] = p
	}
	a, err := s.Project(sets[0])
	if err != nil {
		return nil, err
	}
	b, err := s.Project(sets[1])
	if err != nil {
		return nil, err
	}
	d, err := a.Distance(b)
	return map[string]any{"a": sets[0], "b": sets[1], "distance": d, "patches": s.Patches, "directions": s.Directions, "seed": s.Seed}, err
}

// numbers are the statistics of lists of numbers: with ties, and far from 0.
func numbers() (any, error) {
	pos, neg, weights := normals(50, 6), normals(40, 7), normals(30, 8)
	for i := range pos {
		pos[i] = math.Round(2*pos[i]) + 1
	}
	for i := range neg {
		neg[i] = math.Round(2 * neg[i])
	}
	for i := range weights {
		weights[i] = 800 + 2*weights[i]
	}
	auroc, err := eval.AUROC(pos, neg)
	if err != nil {
		return nil, err
	}
	lme, err := eval.LogMeanExp(weights)
	if err != nil {
		return nil, err
	}
	d, err := eval.Describe(weights)
	return map[string]any{"pos": pos, "neg": neg, "auroc": auroc, "weights": weights, "logmeanexp": lme, "described": d}, err
}

// machines are support vector machines of three classes.
func machines() (any, error) {
	e := svm.Examples{X: normals(60*4, 9), Dim: 4}
	for i := range 60 {
		e.Labels = append(e.Labels, i%3)
		e.X[i*4+i%3] += 1.2
	}
	m, err := svm.Fit(e, 3, svm.Options{})
	if err != nil {
		return nil, err
	}
	return map[string]any{"x": e.X, "labels": e.Labels, "w": m.W, "b": m.B}, nil
}
