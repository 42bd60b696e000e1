package latent

import (
	"ebtrain/data"
	"ebtrain/trainer/algo"
)

// Fit takes the sizes of samples from the data. A GRBM set up for vectors takes
// vectors of any length, and one for pictures pictures of any size; an EBLVM takes
// square pictures that can be halved three times, whatever it was set up for. presets are
// those of the method.
func (n *Net) Fit(s data.Schema, presets algo.Kinds) error {
	var err error
	if n.Kind == EBLVM {
		err = presets.FitSquare(string(EBLVM), s)
	} else {
		err = presets.Fit(n.C, n.H, s)
	}
	if err == nil {
		n.C, n.H, n.W = s.C, s.H, s.W
	}
	return err
}
