package nce

import (
	"testing"

	"ebtrain/data"
	"ebtrain/trainer/algo/algotest"
)

func TestConforms(t *testing.T) {
	board, frey := data.Schema{C: 1, H: 1, W: 2}, data.Schema{C: 1, H: 28, W: 20}
	var cases []algotest.Case
	for name, c := range kinds {
		cases = append(cases, algotest.Case{Name: name, Config: &c})
	}
	algotest.Run(t, Method(), map[string]data.Schema{"nce-board": board, "vnce-board": board, "vnce-frey": frey}, cases...)
}
