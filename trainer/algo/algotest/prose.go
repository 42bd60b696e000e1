package algotest

import (
	"ebtrain/data"
	"ebtrain/data/safetensors"
)

// Prose is a schema of sentences of few words, in batches of two lengths.
func Prose() data.Schema {
	return data.Schema{C: 1, H: 1, W: 6, DType: safetensors.I32,
		Text: &data.Text{Words: append(data.ReservedWords(), "a", "b", "c"), Edges: []int{4, 6}}}
}
