package sm

import (
	"ebtrain/data"
	"ebtrain/trainer/algo"
)

// Fit takes the sizes of samples from the data. A GRBM set up for vectors takes
// vectors of any length, and one for pictures pictures of any size; an EBM
// takes square pictures that can be halved three times, whatever it was set up for.
func (c *Config) Fit(s data.Schema) error {
	presets := algo.Kinds{Algo: "sm", Vectors: "sm-board-ssm, sm-board-dsm", Pictures: "sm-frey, mdsm-mnist"}
	var err error
	if c.Net.Kind == EBM {
		err = presets.FitSquare(string(EBM), s)
	} else {
		err = presets.Fit(c.Net.C, c.Net.H, s)
	}
	if err == nil {
		c.Net.C, c.Net.H, c.Net.W = s.C, s.H, s.W
	}
	return err
}
