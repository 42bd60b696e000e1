package main

import (
	"fmt"

	"ebtrain/ddp/philox"
	"ebtrain/trainer/eval/ngram"
)

// vocabulary is how many words the sentences' numbers are of; 1 begins and 2 ends one.
const vocabulary = 13

// sentences are 400, of words that depend on the one before.
func sentences() [][]int32 {
	u, drawn := philox.Name{Seed: 9, Purpose: philox.Testing}, 0
	next := func(n int) int { drawn++; return u.Intn(drawn, n) }
	var out [][]int32
	for range 400 {
		s, word := []int32{1}, 3+next(6)
		for range 1 + next(7) {
			s = append(s, int32(word))
			if next(3) == 0 {
				word = 3 + next(9)
			} else {
				word = 3 + (word*3+next(2))%9
			}
		}
		out = append(out, append(s, 2))
	}
	return out
}

// ngrams are what models of several orders make of sentences they did not see.
func ngrams() (any, error) {
	all := sentences()
	train, test := all[:250], all[250:]
	orders := map[string]any{}
	for _, order := range []int{1, 2, 3, 5} {
		m, err := ngram.Train(order, vocabulary, train)
		if err != nil {
			return nil, err
		}
		s, err := m.Score(test)
		if err != nil {
			return nil, err
		}
		orders[fmt.Sprint(order)] = map[string]any{"nll": s.NLL, "words": s.Words, "perplexity": s.Perplexity(), "discounts": m.Discounts()}
	}
	return map[string]any{"train": train, "test": test, "vocabulary": vocabulary, "orders": orders}, nil
}
