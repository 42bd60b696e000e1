package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

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

var foreignName = regexp.MustCompile(`^[A-Za-z0-9.-]+$`)

// foreigners are what --ood says: NAME=DATA, or DATA alone, which is called ood.
func foreigners(said []string) ([]foreign, error) {
	taken := []string{"data", otherSamples, otherNoise}
	var all []foreign
	for _, s := range said {
		f, err := foreignOf(s)
		if err != nil {
			return nil, err
		}
		if slices.Contains(taken, f.name) {
			return nil, cliflag.Usage("--ood %s: there is something called %s already: name each data set, as in --ood svhn=shards/svhn --ood faces=shards/celeba32", s, f.name)
		}
		taken = append(taken, f.name)
		all = append(all, f)
	}
	return all, nil
}

// foreignOf reads one --ood. What is before the first "=" is a name, unless it has what
// is only in a path or in a built-in data set: shards/a=b, synth:seed=5.
func foreignOf(said string) (foreign, error) {
	name, set, named := strings.Cut(said, "=")
	switch {
	case !named || strings.ContainsAny(name, "/:"):
		name, set = otherUnnamed, said
	case !foreignName.MatchString(name):
		return foreign{}, cliflag.Usage("--ood %q: a name has letters A to Z and a to z, digits, points and hyphens, and %q is before the =: name it otherwise, as in --ood svhn=shards/svhn, or, where it is of a folder, say ./ first", said, name)
	}
	if set == "" {
		return foreign{}, cliflag.Usage("--ood %q names no data set: want one, with a name or without, as in --ood svhn=shards/svhn", said)
	}
	return foreign{name, set}, nil
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
