package algo

import (
	"fmt"

	"ebtrain/data"
)

// Kinds says to a user whose data do not fit which presets of a method take them:
// a model is set up for vectors (1×1×d) of any length, or for pictures.
type Kinds struct{ Algo, Vectors, Pictures string }

// IsVector says whether samples of so many channels and rows are vectors.
func IsVector(c, h int) bool { return c == 1 && h == 1 }

// Fit says that data are not of the kind that a model of (c, h) is set up for.
func (k Kinds) Fit(c, h int, d data.Schema) error {
	switch mine, theirs := IsVector(c, h), IsVector(d.C, d.H); {
	case mine && !theirs:
		return fmt.Errorf("--algo %s is set up for vectors (1x1xd), not for pictures: give --data of vectors (checkerboard), or take one of the presets for pictures (--preset %s)", k.Algo, k.Pictures)
	case !mine && theirs:
		return fmt.Errorf("--algo %s is set up for pictures, not for vectors (1x1xd): give --data of pictures (frey), or take one of the presets for vectors (--preset %s)", k.Algo, k.Vectors)
	}
	return nil
}

// FitVectors is Fit for a model of (c, h) that takes pictures as vectors: one that is set up
// for them takes any data.
func (k Kinds) FitVectors(c, h int, d data.Schema) error {
	if !IsVector(c, h) {
		return nil
	}
	return k.Fit(c, h, d)
}

// FitSquare says that data are not what the networks of --model take: square
// pictures that can be halved three times.
func (k Kinds) FitSquare(model string, d data.Schema) error {
	switch {
	case IsVector(d.C, d.H):
		return fmt.Errorf("--model %s takes pictures, not vectors (1x1xd): give --data of pictures, or take a preset for vectors (%s)", model, k.Vectors)
	case d.H != d.W || d.H%8 != 0:
		side := (max(d.H, d.W) + 7) / 8 * 8
		return &Misfit{What: "--model " + model, H: side, W: side}
	}
	return nil
}
