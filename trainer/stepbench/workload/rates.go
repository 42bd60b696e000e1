package workload

import "ebtrain/trainer/model/optim"

// Adam's constants in both workloads, those of BiSM's code.
const (
	beta1, beta2 = 0.9, 0.95
	epsilon      = 1e-8
)

// adam is the optimiser of both workloads.
func adam() optim.PureAdam { return optim.PureAdam{Beta1: beta1, Beta2: beta2, Eps: epsilon} }

// rates are those of its step number t, from 1.
func rates(lr float64, t int64) [2]float64 { return optim.AdamRates(lr, beta1, beta2, t) }
