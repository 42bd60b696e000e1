package sm

import (
	"errors"

	"ebtrain/data"
	"ebtrain/trainer/algo"
)

// isVector says whether a sample is a vector: one row of numbers.
func isVector(c, h int) bool { return c == 1 && h == 1 }

// Fit takes the sizes of samples from the data. A GRBM set up for vectors takes
// vectors of any length, and one for pictures pictures of any size; an EBM takes
// square pictures that can be halved three times.
func (c *Config) Fit(s data.Schema) error {
	n, vector := c.Net, isVector(s.C, s.H)
	switch {
	case n.Kind == EBM && vector:
		return errors.New("--model ebm takes pictures, not vectors (1x1xd): give --data of pictures, or a preset for vectors (sm-board-ssm, sm-board-dsm)")
	case n.Kind == EBM && (s.H != s.W || s.H%8 != 0):
		side := (max(s.H, s.W) + 7) / 8 * 8
		return &algo.Misfit{What: "--model ebm", H: side, W: side}
	case isVector(n.C, n.H) && !vector:
		return errors.New("this preset trains on vectors (1x1xd), not on pictures: give --data of vectors (checkerboard), or a preset for pictures (sm-frey, mdsm-mnist)")
	case !isVector(n.C, n.H) && vector:
		return errors.New("this preset trains on pictures, not on vectors (1x1xd): give --data of pictures (frey), or a preset for vectors (sm-board-ssm, sm-board-dsm)")
	}
	c.Net.C, c.Net.H, c.Net.W = s.C, s.H, s.W
	return nil
}
