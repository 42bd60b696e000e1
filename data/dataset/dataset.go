// Package dataset opens a data set by the name a user gives: the directory of
// shards that mkshards made, or one of those that are made on the fly, "synth",
// "checkerboard" and "gauss". It keeps no state.
package dataset

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"ebtrain/data"
	"ebtrain/data/shard"
)

// Open opens a split ("train", "val", "test", …) of the data set called name.
// Nothing needs closing. A mistake in a name is a *data.MisnamedError. A directory that happens to be called synth is
// reached as "./synth".
func Open(name, split string) (data.Source, error) {
	if BuiltIn(name) {
		m, err := parse(name)
		if err != nil {
			return nil, err
		}
		src, err := m.open(split)
		return src, misnamed(name, err)
	}
	if name == "" {
		return nil, fmt.Errorf("no data set named: give the directory of one, or %q for the built-in pictures", Synth)
	}
	if err := mistyped(name); err != nil {
		return nil, err
	}
	return source(shard.Open(name, split))
}

// mistyped reports a directory that is not there and whose name is, but for at most one
// letter in three, that of a built-in data set.
func mistyped(name string) error {
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	kind, _, _ := strings.Cut(name, ":")
	for _, known := range slices.Sorted(maps.Keys(builtins)) {
		if levenshtein.ComputeDistance(kind, known) <= (len(kind)+1)/3 {
			return fmt.Errorf("%s: no such data set: did you mean the built-in %s? others are made with mkshards", name, known)
		}
	}
	return nil
}

// source keeps a nil pointer from becoming a Source that is not nil.
func source[S data.Source](s S, err error) (data.Source, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Splits lists the splits of the data set called name, sorted.
func Splits(name string) ([]string, error) {
	if BuiltIn(name) {
		m, err := parse(name)
		return slices.Sorted(slices.Values(m.splits)), err
	}
	x, err := shard.ReadIndex(name)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(x.Splits)), nil
}
