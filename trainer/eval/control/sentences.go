package control

import (
	"slices"

	"ebtrain/ddp/philox"
)

// Sentences are tokens, of which the first and the last stay where they are: the begin
// and the end.

// Some are n sentences of those given, in an order by seed, again and again where
// there are fewer.
func Some(sentences [][]int32, n int, seed uint64) [][]int32 {
	order := name(seed, philox.SamplingRepeated, 0).Perm(len(sentences))
	some := make([][]int32, n)
	for i := range some {
		some[i] = sentences[order[i%len(order)]]
	}
	return some
}

// Unigram are sentences as long as those given, of words drawn from the words of all:
// each as often as it is there.
func Unigram(sentences, from [][]int32, seed uint64) [][]int32 {
	var words []int32
	for _, s := range from {
		words = append(words, s[1:len(s)-1]...)
	}
	return each(sentences, func(i int, inner []int32) {
		draw := name(seed, philox.SamplingUnigram, i)
		for j := range inner {
			inner[j] = words[draw.Intn(j, len(words))]
		}
	})
}

// ShuffledWords are sentences each of which has its words in another order.
func ShuffledWords(sentences [][]int32, seed uint64) [][]int32 {
	return each(sentences, func(i int, inner []int32) {
		was := slices.Clone(inner)
		for to, from := range name(seed, philox.SamplingWords, i).Perm(len(inner)) {
			inner[to] = was[from]
		}
	})
}

// each are copies of sentences whose words were changed.
func each(sentences [][]int32, change func(i int, inner []int32)) [][]int32 {
	out := make([][]int32, len(sentences))
	for i, s := range sentences {
		out[i] = slices.Clone(s)
		change(i, out[i][1:len(s)-1])
	}
	return out
}
