package bism

import (
	"ebtrain/data"
	"ebtrain/trainer/algo"
)

// Fit takes the sizes of samples from the data.
func (c *Config) Fit(s data.Schema) error {
	return c.Net.Fit(s, algo.Kinds{Algo: "bism", Vectors: "bism-board-dsm, bism-board-ssm", Pictures: "bism-frey, bism-mnist"})
}
