package ngram

import (
	"errors"
	"fmt"

	"ebtrain/data"
)

// MaxOrder is the greatest n.
const MaxOrder = 8

// Model is a trained language model.
type Model struct {
	words     int // of the vocabulary
	levels    []level
	discounts []Discounts // of n-grams of length 1, 2, …
}

// level is the n-grams of one length, and what was seen after each.
type level struct {
	ids   map[uint64]uint32 // by key
	grams []gram            // by id
}

// gram is an n-gram. Where it is a context, total is Σ_v a(cv), and back b(c).
type gram struct {
	count       uint64 // a
	context     uint32 // the id of all its words but the last
	total, back float64
}

// key names the n-gram that is a word after a context.
func key(context uint32, word int32) uint64 { return uint64(context)<<32 | uint64(uint32(word)) }

// find is the id of a word after a context, if that was seen.
func (l level) find(context uint32, word int32) (id uint32, ok bool) {
	id, ok = l.ids[key(context, word)]
	return id, ok
}

// Train counts the n-grams of up to order words of sentences: tokens of a vocabulary
// of words, each data.Begin, words, data.End.
func Train(order, words int, sentences [][]int32) (*Model, error) {
	switch {
	case order < 1 || order > MaxOrder:
		return nil, fmt.Errorf("n-grams of %d words: want 1 to %d", order, MaxOrder)
	case words <= data.Reserved || words > data.MaxWords:
		return nil, fmt.Errorf("a vocabulary of %d words: want %d to %d", words, data.Reserved+1, data.MaxWords)
	case len(sentences) == 0:
		return nil, errors.New("no sentences to count n-grams of")
	}
	m := &Model{words: words, levels: make([]level, order+1)}
	m.levels[0] = level{grams: make([]gram, 1)} // the n-gram of no words
	for k := range order {
		m.levels[k+1].ids = map[uint64]uint32{}
	}
	for i, s := range sentences {
		if err := m.check(s); err != nil {
			return nil, fmt.Errorf("sentence %d: %w", i, err)
		}
		m.count(s)
	}
	m.finish()
	return m, nil
}

// check reports a sentence that the model does not have.
func (m *Model) check(s []int32) error {
	last := len(s) - 1
	if last < 1 || s[0] != data.Begin || s[last] != data.End {
		return fmt.Errorf("%d tokens: want a begin, words and an end", len(s))
	}
	for _, t := range s[1:last] {
		if t < data.Unknown || int(t) >= m.words {
			return fmt.Errorf("token %d within a sentence: want %d to %d", t, data.Unknown, m.words-1)
		}
	}
	return nil
}

// count counts the n-grams of a sentence.
func (m *Model) count(s []int32) {
	order := len(m.levels) - 1
	before, now := make([]uint32, order+1), make([]uint32, order+1) // ids of the n-grams that end at a token, by length
	for i, w := range s {
		for k := 1; k <= min(order, i+1); k++ {
			l := &m.levels[k]
			id, seen := l.find(before[k-1], w)
			if !seen {
				id = uint32(len(l.grams))
				l.ids[key(before[k-1], w)] = id
				l.grams = append(l.grams, gram{context: before[k-1]})
				if k > 1 { // another word before the k − 1 last
					m.levels[k-1].grams[now[k-1]].count++
				}
			}
			now[k] = id
			if i > 0 && (k == order || k == i+1) { // a begin is never predicted
				l.grams[id].count++
			}
		}
		before, now = now, before
	}
}
