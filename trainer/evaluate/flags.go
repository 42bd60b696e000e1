package main

import (
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"ebtrain/launch/cliflag"
	"ebtrain/trainer/device"
	"ebtrain/trainer/trained"
)

// program is what --help shows of evaluate besides the flags themselves.
var program = cliflag.Program{
	Name: "evaluate",
	About: `evaluate measures a checkpoint of a run, the newest unless another is named, on
a split of a data set.

  evaluate --run runs/celeba32 --data shards/celeba32 --split test

It prints what the method's models can tell:
  rmse    of reconstructions, with batch norm's statistics of the batch (as
          released code evaluates) and with its running ones, beside that of
          the mean training image; a picture of inputs above their
          reconstructions is written into the run directory
  energy  of the data, of samples and of uniform noise; AUROC is the probability
          that data has lower energy than noise or than the pictures of --ood
  fisher  the Fisher divergence to the data, but for the data's constant
  critic  the Fisher divergence from the data as a critic estimates it, and as it
          is known for data that are N(0, I)
  loss    the loss that the weights descend, with nothing unrolled
  gap     the divergence of the approximate posterior from the model's
  ll      the mean log-likelihood: the normaliser is enumerated where there are
          few hidden units, else estimated by annealed importance sampling
  nll     −log p of a sentence and of a word, and the perplexity of a word
  recollection −log p of sentences given latents inferred from each, and given
          latents of the prior; where both are the same, the latents collapsed
  density of a model of points of the plane, as a picture beside the data
  probe   the accuracy of linear support vector machines trained to tell classes
          by the posterior's means, beside that by the untrained posterior's and
          by raw values; only if it is named
`,
	Groups: []cliflag.Group{
		{Title: "What is measured", Flags: []string{"run", "step", "data", "split", "measures", "ood", "limit", "batch", "seed", "ais-chains", "ais-steps", "probe-limit"}},
		{Title: "Outputs", Flags: []string{"json", "picture"}},
		{Title: "The machine", Flags: []string{"device", "threads"}},
		{Title: "Help", Flags: []string{"help", "version"}},
	},
}

// noPicture is the --picture that makes none.
const noPicture = "none"

// options are the flags of evaluate.
type options struct {
	run, data, split, ood, device string
	picture                       string // "" for the default place, or noPicture
	measures                      string // names of measures and allMeasures, with commas between
	batch, threads                int
	aisChains, aisSteps           int
	step                          int64 // of the checkpoint, or trained.Newest
	limit, probeLimit             int64
	seed                          uint64
	json                          bool
}

func parse(args []string, stdout io.Writer) (options, error) {
	var o options
	fs := pflag.NewFlagSet("evaluate", pflag.ContinueOnError)
	fs.StringVar(&o.run, "run", "", "run directory of a trained model (required)")
	fs.Int64Var(&o.step, "step", trained.Newest, "steps after which the checkpoint was written; -1 is the newest")
	fs.StringVar(&o.data, "data", "", "data set: a directory made by mkshards, or a built-in one (synth, checkerboard, gauss); default is the run's own")
	fs.StringVar(&o.split, "split", "test", "split to measure on")
	fs.StringVar(&o.measures, "measures", allMeasures, "what to measure, with commas between: "+strings.Join(measureNames(), ", ")+"; all is what the method has but for "+measureProbe)
	fs.IntVar(&o.aisChains, "ais-chains", 2000, "annealed importance sampling: chains")
	fs.IntVar(&o.aisSteps, "ais-steps", 2000, "annealed importance sampling: steps of each chain")
	fs.Int64Var(&o.probeLimit, "probe-limit", 10_000, "samples that the probe is trained on, chosen by --seed; 0 is all")
	fs.StringVar(&o.ood, "ood", "", "another data set, whose test split should have higher energy")
	fs.IntVar(&o.batch, "batch", 100, "samples at a time; with batch statistics the result depends on it")
	fs.Int64Var(&o.limit, "limit", 0, "measure only the first samples of each split; 0 is all")
	fs.Uint64Var(&o.seed, "seed", 1, "seed of all random draws")
	fs.StringVar(&o.picture, "picture", "", "PNG of inputs above their reconstructions, or of the density; default is in the run's samples/, none makes none")
	fs.BoolVar(&o.json, "json", false, "print one JSON object instead of a table")
	fs.StringVar(&o.device, "device", "auto", "where to compute: "+device.Names)
	fs.IntVar(&o.threads, "threads", 0, "threads; 0 is all cores")
	if err := program.Parse(fs, args, stdout); err != nil {
		return o, err
	}
	if err := checkMeasures(o.measures); err != nil {
		return o, err
	}
	switch {
	case o.run == "":
		return o, cliflag.Usage("--run is required: the --out of a train run")
	case o.step < trained.Newest:
		return o, cliflag.Usage("want --step of at least 0, or %d for the newest checkpoint, got %d", trained.Newest, o.step)
	case o.aisChains < 1 || o.aisChains > 1<<20:
		return o, cliflag.Usage("want --ais-chains from 1 to %d, got %d", 1<<20, o.aisChains)
	case o.aisSteps < 1 || o.aisSteps > 1<<20:
		return o, cliflag.Usage("want --ais-steps from 1 to %d, got %d", 1<<20, o.aisSteps)
	case o.batch < 2 || o.batch > 1<<20:
		return o, cliflag.Usage("want --batch from 2 to %d, got %d", 1<<20, o.batch)
	case o.limit < 0:
		return o, cliflag.Usage("want --limit of at least 0, got %d", o.limit)
	case o.probeLimit < 0:
		return o, cliflag.Usage("want --probe-limit of at least 0, got %d", o.probeLimit)
	case o.picture != "" && o.picture != noPicture && filepath.Ext(o.picture) != ".png":
		return o, cliflag.Usage("--picture %s: want a name that ends in .png, or %s", o.picture, noPicture)
	}
	return o, cliflag.AsUsage(device.Check(o.device, device.F32, o.threads))
}

// checkMeasures reports a word that is no measure.
func checkMeasures(list string) error {
	names := append(measureNames(), allMeasures)
	for word := range strings.SplitSeq(list, ",") {
		if !slices.Contains(names, word) {
			return cliflag.Usage("unknown --measures %q: want some of %s, with commas between", word, strings.Join(names, ", "))
		}
	}
	return nil
}
