// Package dataset opens a data set by the name a user gives: the directory of
// shards that mkshards made, or one of those that are made on the fly, "synth",
// "checkerboard" and "gauss". It keeps no state.
package dataset

import (
	"fmt"
	"maps"
	"slices"

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
	return source(shard.Open(name, split))
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
