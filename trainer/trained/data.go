package trained

import (
	"fmt"
	"path/filepath"

	"ebtrain/data"
	"ebtrain/data/dataset"
)

// Data is the name of the data set that the run was trained on: where its --data says, seen
// from this folder or, if those are not there or others, from the one in which the run was
// started last. Other samples under the same name are an error.
func (r *Run) Data() (string, error) {
	said := r.Config.Flags["data"]
	err := r.trainedOn(said)
	if err == nil || r.Config.Folder == "" || filepath.IsAbs(said) || dataset.BuiltIn(said) {
		return said, err
	}
	if there := filepath.Join(r.Config.Folder, said); r.trainedOn(there) == nil {
		return there, nil
	}
	return said, err
}

// trainedOn reports a data set that is not the one that the run was trained on.
func (r *Run) trainedOn(name string) error {
	src, err := dataset.Open(name, r.Settings.Split)
	if err != nil {
		return fmt.Errorf("%w; if the data of the run in %s have moved, say where they are with --data", err, r.Path)
	}
	if src.Digest() != r.Settings.DataDigest {
		return fmt.Errorf("%s (split %s) does not hold the samples that the run in %s was trained on (their digest is %s, the run's %s): say with --data where those are, or which others are meant",
			name, r.Settings.Split, r.Path, data.Brief(src.Digest()), data.Brief(r.Settings.DataDigest))
	}
	return nil
}
