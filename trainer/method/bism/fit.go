package bism

import (
	"ebtrain/data"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/latent"
)

// Fit takes the sizes of samples from the data. A GRBM set up for vectors takes
// vectors of any length, and one for pictures pictures of any size; an EBLVM
// takes square pictures that can be halved three times.
func (c *Config) Fit(s data.Schema) error {
	presets := algo.Kinds{Vectors: "bism-board-dsm, bism-board-ssm", Pictures: "bism-frey, bism-mnist"}
	var err error
	if c.Net.Kind == latent.EBLVM {
		err = presets.FitSquare(string(latent.EBLVM), s)
	}
	if err == nil {
		err = presets.Fit(c.Net.C, c.Net.H, s)
	}
	if err == nil {
		c.Net.C, c.Net.H, c.Net.W = s.C, s.H, s.W
	}
	return err
}
