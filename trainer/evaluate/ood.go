package main

import (
	"fmt"
	"regexp"
	"slices"

	"ebtrain/data/dataset"
	"ebtrain/launch/cliflag"
)

// foreign is a data set that is not the model's: one of --ood.
type foreign struct{ name, data string }

// Names of what the data are told from.
const (
	otherSamples = "samples"
	otherNoise   = "noise"
	otherUnnamed = "ood"
)

var foreignName = regexp.MustCompile(`^([A-Za-z0-9.-]+)=(.+)$`)

// foreigners are what --ood says: NAME=DATA, or DATA alone, which is called ood.
func foreigners(said []string) ([]foreign, error) {
	taken := []string{"data", otherSamples, otherNoise}
	var all []foreign
	for _, s := range said {
		f := foreign{otherUnnamed, s}
		if m := foreignName.FindStringSubmatch(s); m != nil {
			f = foreign{m[1], m[2]}
		}
		if slices.Contains(taken, f.name) {
			return nil, cliflag.Usage("--ood %s: there is something called %s already: name each data set, as in --ood svhn=shards/svhn --ood faces=shards/celeba32", s, f.name)
		}
		taken = append(taken, f.name)
		all = append(all, f)
	}
	return all, nil
}

// foreignSplit is the split that is read: test, or the only one.
func foreignSplit(f foreign) (string, error) {
	splits, err := dataset.Splits(f.data)
	switch {
	case err != nil:
		return "", fmt.Errorf("--ood: %w", err)
	case slices.Contains(splits, "test"):
		return "test", nil
	case len(splits) == 1:
		return splits[0], nil
	}
	return "", fmt.Errorf("--ood %s has the splits %v: want one called test, or only one", f.data, splits)
}
