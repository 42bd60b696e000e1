package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"ebtrain/launch/cliflag"
	"ebtrain/trainer/eval/compare"
	"ebtrain/trainer/trained"
)

// checkTogether reports flags that do not go together.
func (o options) checkTogether(passes bool) error {
	switch {
	case o.trainClassifier != "" && (o.run != "" || o.samplesFrom != "" || o.data == ""):
		return cliflag.Usage("--train-classifier trains on the labels of --data, which it wants, and takes no --run and no --samples-from")
	case o.samplesFrom != "" && (o.run != "" || o.data == ""):
		return cliflag.Usage("--samples-from is judged beside --data, which it wants, instead of a --run")
	case o.run == "" && o.samplesFrom == "" && o.trainClassifier == "":
		return cliflag.Usage("--run is required: the --out of a train run")
	case o.latents && slices.Contains(o.typed, "stats"):
		return cliflag.Usage("--stats goes without --given: samples of given latents are drawn by batch norm's running statistics alone")
	case o.several() && o.picture != "" && o.picture != noPicture:
		return cliflag.Usage("--picture %s is one file, and --step names several checkpoints: leave it out, and each has its own", o.picture)
	case passes && o.trainClassifier == "":
		return cliflag.Usage("--passes is of --train-classifier, which is not given")
	}
	return nil
}

// checkCache reports a --feature-cache that is a file, or lies in one: it would keep
// nothing.
func (o options) checkCache() error {
	if o.cache == "" || o.cache == noCache {
		return nil
	}
	if st, err := os.Stat(o.cache); err == nil && !st.IsDir() || errors.Is(err, syscall.ENOTDIR) {
		return cliflag.Usage("--feature-cache %s is a file, or lies in one: want a folder, or %s", o.cache, noCache)
	}
	return nil
}

// checkRanges reports values that are out of range.
func (o options) checkRanges() error {
	switch {
	case o.samples < 2 || o.samples > 1<<20:
		return cliflag.Usage("want --samples from 2 to %d, got %d", 1<<20, o.samples)
	case o.reference < 0 || o.reference == 1:
		return cliflag.Usage("want --reference of at least 2, or 0 for all, got %d", o.reference)
	case o.passes < 1 || o.passes > 1<<20:
		return cliflag.Usage("want --passes from 1 to %d, got %d", 1<<20, o.passes)
	case trained.Modes[o.stats] == 0:
		return cliflag.Usage("unknown --stats %q: want batch or running", o.stats)
	case o.aisChains < 1 || o.aisChains > 1<<20:
		return cliflag.Usage("want --ais-chains from 1 to %d, got %d", 1<<20, o.aisChains)
	case o.aisSteps < 1 || o.aisSteps > 1<<20:
		return cliflag.Usage("want --ais-steps from 1 to %d, got %d", 1<<20, o.aisSteps)
	case o.batch < 2 || o.batch > 1<<20:
		return cliflag.Usage("want --batch from 2 to %d, got %d", 1<<20, o.batch)
	case o.limit < 0:
		return cliflag.Usage("want --limit of at least 0, got %d", o.limit)
	case o.probeLimit < 0:
		return cliflag.Usage("want --probe-limit of at least 0, got %d", o.probeLimit)
	case o.picture != "" && o.picture != noPicture && filepath.Ext(o.picture) != ".png":
		return cliflag.Usage("--picture %s: want a name that ends in .png, or %s", o.picture, noPicture)
	}
	return nil
}

// checkFrechet reports fewer samples than the least that a Fréchet distance wants, if one is
// asked for.
func (o options) checkFrechet(least int) error {
	switch {
	case !o.asks(compare.Frechet):
		return nil
	case o.samples < least:
		return cliflag.Usage("--samples %d: a Fréchet distance wants at least %d, with fewer it says more of their number than of them", o.samples, least)
	case o.reference > 0 && o.reference < least:
		return cliflag.Usage("--reference %d: a Fréchet distance wants at least %d", o.reference, least)
	}
	return nil
}

// checkMeasures reports a word that is no measure.
func checkMeasures(list string) error {
	names := append(measureNames(), allMeasures)
	for word := range strings.SplitSeq(list, ",") {
		if slices.Contains(names, word) {
			continue
		}
		if here, ok := elsewhere[word]; ok {
			return cliflag.Usage("unknown --measures %q: here that is %s", word, here)
		}
		if meant := cliflag.Meant(word, names); meant != "" {
			return cliflag.Usage("unknown --measures %q: %s", word, meant)
		}
		return cliflag.Usage("unknown --measures %q: want some of %s, with commas between", word, strings.Join(names, ", "))
	}
	return nil
}

// elsewhere is what measures that have other names in publications and other programs
// are called here.
var elsewhere = map[string]string{
	"fid": "frechet, with the weights of Inception-v3 as --inception", "isc": "is, with the weights of Inception-v3 as --inception",
	"inception": "is, with the weights of Inception-v3 as --inception", "mmd": "kid", "precision": "prdc", "recall": "prdc", "coverage": "prdc",
	"ppl": "nll", "perplexity": "nll", "auroc": "energy", "ais": "ll", "mse": "rmse",
}
