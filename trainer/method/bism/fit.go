package bism

import (
	"fmt"

	"ebtrain/data"
)

// isVector says whether a sample is a vector: one row of numbers.
func isVector(c, h int) bool { return c == 1 && h == 1 }

// Fit takes the sizes of samples from the data. A GRBM set up for vectors takes
// vectors of any length, and one for pictures pictures of any size; an EBLVM
// takes square pictures that can be halved three times.
func (c *Config) Fit(s data.Schema) error {
	n := c.Net
	switch vector := isVector(s.C, s.H); {
	case n.Kind == EBLVM && vector:
		return fmt.Errorf("the data hold vectors of %d numbers, and --model eblvm takes pictures: give --data of pictures, or a preset for vectors (bism-board-dsm, bism-board-ssm)", s.W)
	case n.Kind == EBLVM && (s.H != s.W || s.H%8 != 0):
		return fmt.Errorf("the data hold %dx%d pictures, and --model eblvm takes square ones whose sides are a multiple of 8: make shards with mkshards --pad or --size", s.H, s.W)
	case isVector(n.C, n.H) && !vector:
		return fmt.Errorf("the data hold %dx%dx%d pictures, and this preset trains on vectors (1x1xd): give --data of vectors (checkerboard), or a preset for pictures (bism-frey)", s.C, s.H, s.W)
	case !isVector(n.C, n.H) && vector:
		return fmt.Errorf("the data hold vectors of %d numbers (1x1x%d), and this preset trains on pictures: give --data of pictures (frey), or a preset for vectors (bism-board-dsm, bism-board-ssm)", s.W, s.W)
	}
	c.Net.C, c.Net.H, c.Net.W = s.C, s.H, s.W
	return nil
}
