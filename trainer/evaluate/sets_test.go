package main

import (
	"math"
	"slices"
	"strings"
	"testing"

	"ebtrain/data/loader"
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

// Bad sets have as many pictures as samples, if there are so many real ones; what cannot be
// had is said: no floor of the split that is compared with, and no class of data without.
func TestSetsThatLack(t *testing.T) {
	e := comparingToy(t)
	e.o.data, e.o.samples = figures, 50
	reference, err := e.real(t.Context(), "reference", e.o.data, "train", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{setNoise, setBlurred, setOneClass, setShuffled, setCopies} {
		if s, _, err := e.makers()[name](t.Context(), reference); err != nil || len(s.X) != 50*192 {
			t.Errorf("%s: %d values, %v", name, len(s.X), err)
		}
	}
	clear(reference.labels)
	e.o.split = "train"
	for name, want := range map[string]string{setFloor: "there is no floor: --split train", setOneClass: "there is no set of one class: "} {
		if s, note, err := e.makers()[name](t.Context(), reference); err != nil || s.X != nil || !strings.HasPrefix(note, want) {
			t.Errorf("%s: %d values, %q, %v", name, len(s.X), note, err)
		}
	}
}

// Pictures that differ in the last bit of a value, or in their order, are others.
func TestKey(t *testing.T) {
	seen := map[string]bool{}
	for _, x := range [][]float32{{0.5, 1}, {0.5, math.Nextafter32(1, 2)}, {1, 0.5}, {0.5}, nil} {
		seen[keyOf(x)] = true
	}
	if len(seen) != 5 {
		t.Errorf("%d keys of five sets", len(seen))
	}
	for dir, want := range map[string]string{noCache: "", "kept": "kept"} {
		e := evaluation{o: options{cache: dir}}
		if c := e.featureCache(); c.Dir != want {
			t.Errorf("--feature-cache %s: features are kept in %q", dir, c.Dir)
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
	e.o.seed++
	if other, err := e.drawn(t.Context()); err != nil || slices.Equal(other.X, s.X) {
		t.Errorf("two seeds draw the same, %v", err)
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
	if mean := sum / n; !(math.Abs(mean+1) <= 5*2/math.Sqrt(n)) {
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

// A word's part counts the end of a sentence as a word, and neither its begin nor padding;
// a perplexity that is infinite says that the model has diverged.
func TestSentencesAreCounted(t *testing.T) {
	var s sentences
	b := &loader.Batch{Length: 5, Tokens: []int32{1, 3, 4, 2, 0, 1, 3, 3, 5, 2}, Lengths: []int32{4, 5}}
	s.add(b, 0, 6, 2)
	s.add(b, 1, 8, 1)
	if err := s.finish(2); err != nil || s.Words != 7 || s.Unknown != 3 || s.NLL != 7 || s.NLLWord != 2 || s.Perplexity != math.Exp(2) || s.Accuracy != 3./7 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, loss := range []float64{math.NaN(), 1e5} {
		var s sentences
		s.add(b, 0, loss, 0)
		if err := s.finish(1); err == nil || !diverged(t, &evaluation{}, err) {
			t.Errorf("−log p of %v: %v", loss, err)
		}
	}
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
			if !(math.Abs(s.NLLWord-what) <= 1e-5) {
				t.Errorf("with a gain of %v: −log p of a word is %v, want %v", gain, s.NLLWord, what)
			}
		}
		if got.Given.Accuracy != 0.5 || got.Blind.Accuracy != 0.25 {
			t.Errorf("told are %v, and %v by chance", got.Given.Accuracy, got.Blind.Accuracy)
		}
	}
}
