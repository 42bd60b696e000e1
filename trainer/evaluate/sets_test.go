package main

import (
	"math"
	"slices"
	"testing"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/eval/compare"
	"ebtrain/trainer/method/lebm"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/model/sentence"
)

// named are the pictures of a set, each named by its values.
func (e *evaluation) named(s compare.Set) (names []string) {
	for one := range slices.Chunk(s.X, e.takes.Shape.Len()) {
		names = append(names, keyOf(one))
	}
	slices.Sort(names)
	return names
}

// read are the pictures of a split as its file has them, brought from 0 … 255 to
// [−1, 1].
func read(t *testing.T, split string) compare.Set {
	t.Helper()
	var s compare.Set
	for _, v := range all(t, split, func(int) float64 { return 1 }).X { // in [0, 1]
		s.X = append(s.X, 2*float32(v)-1)
	}
	return s
}

// What samples are compared with is the split that was trained on, and the floor is of
// the other: all of their pictures, in [−1, 1] where the model's are in [0, 1].
func TestSetsOfRealPictures(t *testing.T) {
	e := comparingToy(t)
	e.o.data, e.o.samples = figures, 240
	reference, err := e.real(t.Context(), "reference", e.o.data, e.trainSplit(), 0)
	if err != nil {
		t.Fatal(err)
	}
	floor, note, err := e.makers()[setFloor](t.Context(), reference)
	if err != nil || note != "" {
		t.Fatal(note, err)
	}
	for split, got := range map[string]compare.Set{"train": reference.Set, "test": floor} {
		if want := read(t, split); !slices.Equal(e.named(got), e.named(want)) {
			t.Errorf("%d values are not the pictures of the split %s, from %v to %v", len(got.X), split, slices.Min(got.X), slices.Max(got.X))
		}
	}
}

// No batch of draws is another again. The toy's are N(0, 1) in [0, 1], so N(−1, 4) in
// [−1, 1].
func TestDrawsOfBatches(t *testing.T) {
	e := comparingToy(t)
	e.o.batch, e.o.samples = 8, 40
	s, err := e.drawn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names := e.named(s)
	if len(slices.Compact(slices.Clone(names))) != 40 || len(names) != 40 {
		t.Error("samples are drawn twice")
	}
	sum, n := 0.0, 0.0
	for i, v := range s.X {
		if i%64 < 8 { // whose standard deviation is 1
			sum, n = sum+float64(v), n+1
		}
	}
	if mean := sum / n; math.Abs(mean+1) > 5*2/math.Sqrt(n) {
		t.Errorf("the mean of %v values is %v, want −1", n, mean)
	}
}

// recollecting says of every word −log p = 1 where nothing is known of its sentence, and
// less by gain with the latents inferred from it, which tell half of the words.
type recollecting struct {
	algo.Model
	gain float64
}

func (r recollecting) Recon(length, n int) (*graph.Graph, error) {
	c := nn.NewContext(nn.Eval, 1)
	b := sentence.Input(c, n, length)
	words, tokens := b.Counts(c), c.Cast(b.Tokens, graph.F32)
	there := c.Shift(c.Sum(c.Greater(tokens, c.Zeros(c.Type(tokens))), 1), -1) // the same by what is no padding
	c.Output(algo.OutputLoss, c.Scale(words, 1-r.gain))
	c.Output(algo.OutputTold, c.Scale(there, 0.5))
	c.Output(algo.OutputBlind, words)
	c.Output(algo.OutputBlindTold, c.Scale(there, 0.25))
	return c.Commit()
}

func (r recollecting) Inferring(int, int) ([]chain.Stage, []nn.Variable, error) {
	return nil, nil, nil
}

// Latents are not used where they explain less than a hundredth of −log p.
func TestRecollection(t *testing.T) {
	e := writing(t, prose(t), lebm.EBM)
	e.o.measures = measureRecall
	model := e.trained.Model
	for gain, collapsed := range map[float64]bool{0.02: false, 0.3: false, 0.005: true, 0: true, -0.5: true} {
		e.trained.Model = recollecting{model, gain}
		got := e.mustMeasure(t).Recollection
		if got.Collapsed != collapsed {
			t.Errorf("with a gain of %v: collapsed is %v", gain, got.Collapsed)
		}
		for what, s := range map[float64]sentences{1 - gain: got.Given, 1: got.Blind} {
			if math.Abs(s.NLLWord-what) > 1e-5 {
				t.Errorf("with a gain of %v: −log p of a word is %v, want %v", gain, s.NLLWord, what)
			}
		}
		if got.Given.Accuracy != 0.5 || got.Blind.Accuracy != 0.25 {
			t.Errorf("told are %v, and %v by chance", got.Given.Accuracy, got.Blind.Accuracy)
		}
	}
}
