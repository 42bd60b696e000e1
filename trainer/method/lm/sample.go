package lm

import (
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// Sample writes n sentences, a word a transition: tokens (n, 1, 1, W), as floats.
func (m model) Sample(_ nn.Mode, n int) (chain.Plan, error) {
	return m.cfg.writer().Sample(network, n, m.cfg.longest())
}
