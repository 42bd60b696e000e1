package compare

import (
	"math"
	"testing"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/eval/feature"
	"ebtrain/trainer/eval/quality"
	"ebtrain/trainer/model/nn"
)

// quarters is a network without weights: the means of a picture's rows, four at a
// time, of which it tells classes.
type quarters struct{}

func (quarters) Dim() int { return 4 }

func (quarters) Features(c *nn.Context, x graph.ID) graph.ID {
	return c.Mean(c.Reshape(x, graph.D(c.Batch(x), 4, size.Len()/4)), 2)
}

func (quarters) Logits(_ *nn.Context, features graph.ID) graph.ID { return features }

// What is said of the network of published numbers is said of its features as they
// are, not in units of the reference.
func TestPublishedFeaturesAreRaw(t *testing.T) {
	const n = LeastFrechet
	real, other := blobs(n, 0), blobs(n, 50_000)
	of := func(x []float32) quality.Matrix {
		m := quality.NewMatrix(n, 4)
		for i, v := range x {
			m.X[i/(size.Len()/4)] += float64(v) / float64(size.Len()/4)
		}
		return m
	}
	a, err := quality.FitGaussian(of(real.X))
	if err != nil {
		t.Fatal(err)
	}
	b, err := quality.FitGaussian(of(other.X))
	if err != nil {
		t.Fatal(err)
	}
	want, err := quality.Frechet(a, b)
	if err != nil {
		t.Fatal(err)
	}
	probabilities := of(other.X)
	for i := range probabilities.N {
		row, sum := probabilities.Row(i), 0.0
		for k := range row {
			row[k] = math.Exp(row[k])
			sum += row[k]
		}
		for k := range row {
			row[k] /= sum
		}
	}
	score, sd, err := quality.InceptionScore(probabilities, scoreParts)
	if err != nil {
		t.Fatal(err)
	}
	net := feature.Given("quarters", "q", size, 4, quarters{}, nil)
	j := judge(t, Config{Measures: []string{Frechet, IS}, Published: &net}, Set{Name: "reference", X: real.X})
	for _, s := range j.spaces[:feature.Ensemble] { // tested elsewhere
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	j.spaces = j.spaces[feature.Ensemble:]
	values, notes, err := j.Of(t.Context(), Set{Name: "other", X: other.X})
	if err != nil || len(notes) > 0 || len(values) != 2 {
		t.Fatal(values, notes, err)
	}
	for _, v := range values {
		switch expected := map[string]float64{"frechet-inception": want, "is-inception": score}[v.Row]; {
		case expected == 0:
			t.Errorf("a row %s", v.Row)
		case !(math.Abs(v.Value-expected) <= 1e-3*expected):
			t.Errorf("%s is %v, want %v", v.Row, v.Value, expected)
		}
		// Over the score's parts; of one network there is no other.
		if spread := map[string]float64{"is-inception": sd}[v.Row]; !(math.Abs(v.Spread-spread) <= 1e-3*score) {
			t.Errorf("%s spreads by %v, want %v", v.Row, v.Spread, spread)
		}
	}
}
