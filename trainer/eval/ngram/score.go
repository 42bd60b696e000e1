package ngram

import (
	"errors"
	"fmt"
	"math"

	"ebtrain/data"
)

// P is the probability of a word after a context, of which the last n − 1 tokens
// count. It is 0 for what never comes: padding, a begin, and what is no token of the
// vocabulary.
func (m *Model) P(context []int32, word int32) float64 {
	if word < data.End || int(word) >= m.words {
		return 0
	}
	p := 1 / float64(m.words-data.End) // of all that can come
	for k := range m.levels[:len(m.levels)-1] {
		if k > len(context) {
			break
		}
		id, ok := m.context(context[len(context)-k:])
		if !ok {
			break // nor was any longer one seen
		}
		c := m.levels[k].grams[id]
		if c.total == 0 {
			break // it was seen at the end of sentences only
		}
		p *= c.back
		if id, ok := m.levels[k+1].find(id, word); ok {
			a := m.levels[k+1].grams[id].count
			p += (float64(a) - m.discounts[k].of(a)) / c.total
		}
	}
	return p
}

// context is the id of an n-gram.
func (m *Model) context(words []int32) (id uint32, ok bool) {
	for k, w := range words {
		if id, ok = m.levels[k+1].find(id, w); !ok {
			return 0, false
		}
	}
	return id, true
}

// Score is what a model says of sentences.
type Score struct {
	NLL   float64 // −log p of all of them, nats
	Words int64   // that were predicted, ends of sentences included
}

// Add adds others.
func (s *Score) Add(o Score) { s.NLL, s.Words = s.NLL+o.NLL, s.Words+o.Words }

// Perplexity is that of a word.
func (s Score) Perplexity() float64 { return math.Exp(s.NLL / float64(s.Words)) }

// Score is that of sentences, as Train takes them.
func (m *Model) Score(sentences [][]int32) (all Score, err error) {
	if len(sentences) == 0 {
		return all, errors.New("no sentences to score")
	}
	for i, s := range sentences {
		if err := m.check(s); err != nil {
			return all, fmt.Errorf("sentence %d: %w", i, err)
		}
		for at := 1; at < len(s); at++ {
			all.NLL -= math.Log(m.P(s[:at], s[at]))
		}
		all.Words += int64(len(s) - 1)
	}
	return all, nil
}
