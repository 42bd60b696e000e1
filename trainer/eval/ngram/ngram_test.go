package ngram

import (
	"math"
	"slices"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/ddp/philox"
)

// prose is n sentences in which words of a vocabulary follow each other as in no
// language, some far more often than others.
func prose(n, words int, seed uint64) [][]int32 {
	all := make([][]int32, n)
	for i := range all {
		name := philox.Name{Seed: seed, Purpose: philox.Sampling, Sample: uint32(i)}
		s := []int32{data.Begin}
		for j := range name.Intn(0, 7) {
			a, b := name.Intn(2*j+1, words-data.Unknown), name.Intn(2*j+2, words-data.Unknown)
			s = append(s, int32(data.Unknown+min(a, b)))
		}
		all[i] = append(s, data.End)
	}
	return all
}

func train(t *testing.T, order, words int, sentences [][]int32) *Model {
	t.Helper()
	m, err := Train(order, words, sentences)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// contexts are some that were seen, and some that were not.
func contexts(words int) [][]int32 {
	last := int32(words - 1)
	return [][]int32{
		nil, {data.Begin}, {data.Begin, 3}, {data.Begin, 4, 4}, {4}, {5, 4}, {3, 4, 5}, {4, 4, 4, 4}, {data.Begin, 3, 4, 5, 3, 4},
		{last}, {last, last, last, last}, {last, 4}, {data.Begin, last}, {data.End}, {4, data.End},
	}
}

// Probabilities are those of the definition, of contexts that were seen and of others,
// with discounts that are estimated and with the usual ones.
func TestAgainstDefinition(t *testing.T) {
	const words = 9
	guessed := map[bool]int{}
	for order := 1; order <= 5; order++ {
		for _, n := range []int{1, 4, 60} {
			text := prose(n, words-1, uint64(order)) // the last word is never seen
			m, want := train(t, order, words, text), newSlow(order, words, text)
			for k, d := range m.Discounts() {
				guessed[d.Guessed]++
				if d.D != want.discount(k+1) {
					t.Errorf("order %d, %d sentences: discounts of %d words %v, want %v", order, n, k+1, d, want.discount(k+1))
				}
			}
			for _, c := range contexts(words) {
				for w := range int32(words) {
					p := 0.0
					if w >= data.End {
						p = want.p(c, w)
					}
					if got := m.P(c, w); !(math.Abs(got-p) <= 1e-13) {
						t.Fatalf("order %d, %d sentences: p(%d | %v) is %v, by definition %v", order, n, w, c, got, p)
					}
				}
			}
		}
	}
	if guessed[true] == 0 || guessed[false] == 0 {
		t.Errorf("discounts guessed and not: %v, want some of both", guessed)
	}
}

// A case by hand: the sentences a, a, b of bigrams. Before a and b stand begins only,
// so a(a) = a(b) = 1, and before an end a and b, so a(</s>) = 2: t of single words is
// (2, 1, 0, 0). All discounts are the usual ones.
func TestByHand(t *testing.T) {
	const a, b = 4, 5
	m := train(t, 2, 6, [][]int32{{1, a, 2}, {1, a, 2}, {1, b, 2}})
	const uniform = 1. / 4 // </s>, <unk>, a, b
	unigram := func(discounted float64) float64 { return discounted/4 + (0.5+0.5+1)/4*uniform }
	for _, tt := range []struct {
		context []int32
		word    int32
		want    float64
	}{
		{nil, a, unigram(0.5)},
		{nil, data.End, unigram(1)},
		{nil, data.Unknown, unigram(0)},
		{[]int32{1}, a, (2-1.)/3 + (1+0.5)/3*unigram(0.5)},
		{[]int32{1}, b, (1-0.5)/3 + (1+0.5)/3*unigram(0.5)},
		{[]int32{1}, data.End, (1 + 0.5) / 3 * unigram(1)},
		{[]int32{1, a}, data.End, (2-1.)/2 + 1./2*unigram(1)},
		{[]int32{1, data.Unknown}, a, unigram(0.5)},
	} {
		if got := m.P(tt.context, tt.word); !(math.Abs(got-tt.want) <= 1e-15) {
			t.Errorf("p(%d | %v) is %v, want %v", tt.word, tt.context, got, tt.want)
		}
	}
	s, err := m.Score([][]int32{{1, a, 2}, {1, 2}})
	want := -math.Log(m.P([]int32{1}, a)) - math.Log(m.P([]int32{1, a}, 2)) - math.Log(m.P([]int32{1}, 2))
	if err != nil || s.Words != 3 || !(math.Abs(s.NLL-want) <= 1e-14) || !(math.Abs(s.Perplexity()-math.Exp(want/3)) <= 1e-12) {
		t.Errorf("%+v, %v, want %v of 3 words", s, err, want)
	}
}

// After every context, seen or not, the words that can come have probabilities above 0
// that add up to 1.
func TestNormalised(t *testing.T) {
	const words = 40
	m := train(t, 5, words, prose(400, words-5, 3))
	for _, c := range append(contexts(words), []int32{6, 7, 8, 9, 10, 11}) {
		sum := 0.0
		for w := range int32(words) {
			p := m.P(c, w)
			if (p > 0) != (w >= data.End) {
				t.Errorf("p(%d | %v) = %v", w, c, p)
			}
			sum += p
		}
		if !(math.Abs(sum-1) <= 1e-12) {
			t.Errorf("probabilities after %v add up to %v", c, sum)
		}
	}
	if m.P(nil, words) != 0 || m.P(nil, -1) != 0 {
		t.Error("what is no token has a probability")
	}
}

// The order of sentences changes nothing, nor do two models of the same ones differ.
func TestDeterministic(t *testing.T) {
	text := prose(200, 20, 5)
	back := slices.Clone(text)
	slices.Reverse(back)
	var scores []Score
	for _, order := range [][][]int32{text, text, back} {
		s, err := train(t, 5, 20, order).Score(text)
		if err != nil {
			t.Fatal(err)
		}
		scores = append(scores, s)
	}
	if scores[0] != scores[1] || !(math.Abs(scores[0].NLL-scores[2].NLL) <= 1e-9) {
		t.Errorf("scores %v", scores)
	}
}

// What is like the training text is less perplexing than what is not: text of the
// same source than its words in any order, and that than uniform words. A longer
// memory helps where there is something to remember.
func TestPerplexityOrders(t *testing.T) {
	const words = 30
	chain := func(n int, seed uint64) [][]int32 { // each word goes before two others
		all := make([][]int32, n)
		for i := range all {
			name := philox.Name{Seed: seed, Purpose: philox.Sampling, Sample: uint32(i)}
			w, s := name.Intn(0, 26), []int32{data.Begin}
			for j := range 6 {
				s = append(s, int32(data.Reserved+w))
				w = (3*w + 1 + 7*name.Intn(j+1, 2)) % 26
			}
			all[i] = append(s, data.End)
		}
		return all
	}
	of := func(m *Model, text [][]int32) float64 {
		s, err := m.Score(text)
		if err != nil {
			t.Fatal(err)
		}
		return s.Perplexity()
	}
	seen, others := chain(800, 1), chain(200, 2)
	m := train(t, 5, words, seen)
	back := make([][]int32, len(others))
	for i, s := range others {
		back[i] = slices.Clone(s)
		slices.Reverse(back[i][1 : len(s)-1])
	}
	if a, b, c := of(m, seen), of(m, others), of(m, back); !(a <= b && b < c/5 && b < 5) {
		t.Errorf("perplexities: seen %v, others %v, backwards %v", a, b, c)
	}
	if one, two := of(train(t, 1, words, seen), others), of(train(t, 2, words, seen), others); !(two < one/3) {
		t.Errorf("perplexities: of single words %v, of pairs %v", one, two)
	}
}

func TestBadSentences(t *testing.T) {
	good := [][]int32{{1, 4, 2}}
	for _, tt := range []struct {
		order, words int
		text         [][]int32
		want         string
	}{
		{0, 9, good, "n-grams of 0 words: want 1 to 8"},
		{9, 9, good, "n-grams of 9 words"},
		{5, 4, good, "a vocabulary of 4 words: want 5 to"},
		{5, 9, nil, "no sentences to count n-grams of"},
		{5, 9, [][]int32{{1, 4, 2}, {1}}, "sentence 1: 1 tokens: want a begin, words and an end"},
		{5, 9, [][]int32{{1, 4}}, "sentence 0: 2 tokens: want"},
		{5, 9, [][]int32{{4, 2}}, "sentence 0: 2 tokens: want"},
		{5, 9, [][]int32{{1, 9, 2}}, "sentence 0: token 9 within a sentence: want 3 to 8"},
		{5, 9, [][]int32{{1, 0, 2}}, "token 0 within a sentence"},
	} {
		if _, err := Train(tt.order, tt.words, tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %q", tt.text, err, tt.want)
		}
	}
	m := train(t, 5, 9, good)
	for _, text := range [][][]int32{nil, {{1}}, {{1, 9, 2}}} {
		if _, err := m.Score(text); err == nil {
			t.Errorf("%v has a score", text)
		}
	}
}

// Whatever the tokens, they are refused or counted, and then probabilities add up.
func FuzzModel(f *testing.F) {
	f.Add([]byte{4, 5, 2, 4, 4, 2, 2}, []byte{4, 5})
	f.Add([]byte{0, 1, 2, 200}, []byte{1, 2, 3, 250})
	f.Fuzz(func(t *testing.T, text, after []byte) {
		const words = 12
		all, s := [][]int32(nil), []int32{data.Begin}
		for _, b := range text {
			if s = append(s, int32(b)); b == data.End {
				all, s = append(all, s), []int32{data.Begin}
			}
		}
		m, err := Train(4, words, all)
		if err != nil {
			return
		}
		var c []int32
		for _, b := range after {
			c = append(c, int32(b))
		}
		sum := 0.0
		for w := range int32(words) {
			sum += m.P(c, w)
		}
		if !(math.Abs(sum-1) <= 1e-9) {
			t.Errorf("probabilities after %v add up to %v", c, sum)
		}
		if s, err := m.Score(all); err != nil || math.IsInf(s.NLL, 0) || math.IsNaN(s.NLL) {
			t.Errorf("the training text has the score %v, %v", s, err)
		}
	})
}
