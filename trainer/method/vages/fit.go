package vages

import (
	"ebtrain/data"
	"ebtrain/trainer/algo"
)

// Fit takes the sizes of samples from the data. A GRBM set up for vectors takes
// vectors of any length, and one for pictures pictures of any size; an EBLVM
// takes square pictures that can be halved three times, whatever it was set up for.
func (c *Config) Fit(s data.Schema) error {
	return c.Net.Fit(s, algo.Kinds{Algo: "vages", Vectors: "vages-dsm-board, vages-ksd-board", Pictures: "vages-frey, vages-mnist"})
}
