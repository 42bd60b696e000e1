package toy

import (
	"testing"

	"ebtrain/data"
	"ebtrain/trainer/algo/algotest"
)

func TestConforms(t *testing.T) {
	some := data.Schema{C: 2, H: 1, W: 3}
	algotest.Run(t, Method(), map[string]data.Schema{"toy-any": some},
		algotest.Case{Name: "toy", Config: &Config{C: 2, H: 1, W: 3, LR: 0.05}},
		algotest.Case{Name: "clean toy", Config: &Config{C: 2, H: 1, W: 3, LR: 0.05, Clean: true}})
}
