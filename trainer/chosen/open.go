package chosen

import (
	"errors"
	"fmt"

	"ebtrain/data"
	"ebtrain/data/dataset"
	"ebtrain/launch/cliflag"
)

// Open opens the split that --data and --split name.
func Open(name, split string) (data.Source, error) {
	src, err := dataset.Open(name, split)
	if wrong, ok := errors.AsType[*data.MisnamedError](err); ok {
		flag := "--data"
		if wrong.Split {
			flag = "--split"
		}
		err = fmt.Errorf("%s: %w", flag, err)
	}
	return src, Misnamed(err)
}

// Misnamed is err, and a mistake on the command line if what is wrong is how a data set or
// a split is called there.
func Misnamed(err error) error {
	if _, ok := errors.AsType[*data.MisnamedError](err); ok {
		return cliflag.AsUsage(err)
	}
	return err
}
