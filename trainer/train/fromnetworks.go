package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"ebtrain/launch/cliflag"
	"ebtrain/trainer/model/nn"
)

// chooseNetworks are those that --from-networks names, in the order of the alphabet: they are
// to be in the new model, whose weights are mine, and in the other one, theirs. nil is every
// network.
func (o *options) chooseNetworks(mine, theirs []nn.Variable) (networks []string, err error) {
	if o.fromNetworks == "" {
		return nil, nil
	}
	has, there := nn.Networks(mine), nn.Networks(theirs)
	var named []string
	for word := range strings.SplitSeq(o.fromNetworks, ",") {
		word = strings.TrimSpace(word)
		switch {
		case !slices.Contains(there, word):
			return nil, cliflag.Usage("the model of %s has no network %q, which --from-networks names: it has %s", o.from, word, english.WordSeries(there, "and"))
		case !slices.Contains(has, word):
			return nil, cliflag.Usage("the new model has no network %q, which --from-networks names: it has %s", word, english.WordSeries(has, "and"))
		}
		named = append(named, word)
	}
	for _, n := range has {
		if slices.Contains(named, n) {
			networks = append(networks, n)
		}
	}
	if len(networks) == len(has) {
		return nil, cliflag.Usage("--from-networks names all networks of the new model, %s: leave it out, or say with --algo, --preset or --net which model of more is to be trained", english.WordSeries(has, "and"))
	}
	return networks, nil
}

// origin says what the run began with.
func (o *options) origin() (string, error) {
	theirs := fmt.Sprintf("%s after %s", o.fromPath(), english.Plural(int(o.fromStep), "step", ""))
	if o.settings.FromNetworks == nil {
		return "--from: the weights are those of " + theirs, nil
	}
	weights, err := o.weights()
	if err != nil {
		return "", err
	}
	others := slices.DeleteFunc(nn.Networks(weights), func(n string) bool { return slices.Contains(o.settings.FromNetworks, n) })
	return fmt.Sprintf("--from: the weights of %s are those of %s, and those of %s of the seed",
		english.WordSeries(o.settings.FromNetworks, "and"), theirs, english.WordSeries(others, "and")), nil
}

// weights are those of the model.
func (o *options) weights() ([]nn.Variable, error) {
	_, specs, err := o.model.Model().Step(1, o.settings.Batch)
	return nn.Only(specs, nn.Weight), err
}

// checkNoMore reports a weight of theirs, in networks that are named, that none of mine is.
func (o *options) checkNoMore(mine, theirs []nn.Variable) error {
	for _, v := range theirs {
		if !slices.ContainsFunc(mine, func(m nn.Variable) bool { return m.Name == v.Name }) {
			return cliflag.Usage("the model of %s has %s, which the new one has not: give a run whose network %s is the same", o.from, v.Name, nn.NetworkOf(v.Name))
		}
	}
	return nil
}
