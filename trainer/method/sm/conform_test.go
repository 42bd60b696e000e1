package sm

import (
	"testing"

	"ebtrain/trainer/algo/algotest"
)

func TestConforms(t *testing.T) {
	var all []algotest.Case
	for name, c := range cases() {
		c.SampleShare = 0.004
		all = append(all, algotest.Case{Name: name, Config: c})
	}
	algotest.Run(t, Method(), published, all...)
}
