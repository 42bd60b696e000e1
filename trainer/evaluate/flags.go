package main

import (
	"io"
	"path/filepath"

	"github.com/spf13/pflag"

	"ebtrain/launch/cliflag"
	"ebtrain/trainer/device"
)

const help = `evaluate measures the newest checkpoint of a run on a split of a data set.

  evaluate --run runs/celeba32 --data shards/celeba32 --split test

It prints the RMSE of the reconstructions G(mu(v)) on the [-1, 1] scale, with
batch norm's statistics of the batch (as the released code evaluates) and with
its running ones, beside the RMSE of the mean training image, and the energies
of the data, of samples and of uniform noise. AUROC is the probability that data
has lower energy than noise or than the pictures of --ood. A picture of inputs
above their reconstructions is written into the run directory.
`

// noPicture is the --picture that makes none.
const noPicture = "none"

// options are the flags of evaluate.
type options struct {
	run, data, split, ood, device string
	picture                       string // "" for the default place, or noPicture
	batch, threads                int
	limit                         int64
	seed                          uint64
	json                          bool
}

func parse(args []string, stdout io.Writer) (options, error) {
	var o options
	fs := pflag.NewFlagSet("evaluate", pflag.ContinueOnError)
	fs.StringVar(&o.run, "run", "", "run directory of a trained model (required)")
	fs.StringVar(&o.data, "data", "", "data set: a directory made by mkshards, or synth; default is the run's own")
	fs.StringVar(&o.split, "split", "test", "split to measure on")
	fs.StringVar(&o.ood, "ood", "", "another data set, whose test split should have higher energy")
	fs.IntVar(&o.batch, "batch", 100, "pictures at a time; with batch statistics the result depends on it")
	fs.Int64Var(&o.limit, "limit", 0, "measure only the first pictures of each split; 0 is all")
	fs.Uint64Var(&o.seed, "seed", 1, "seed of samples and noise")
	fs.StringVar(&o.picture, "picture", "", "PNG of inputs above their reconstructions; default is in the run's samples/, none makes none")
	fs.BoolVar(&o.json, "json", false, "print one JSON object instead of a table")
	fs.StringVar(&o.device, "device", "auto", "where to compute: "+device.Names)
	fs.IntVar(&o.threads, "threads", 0, "threads; 0 is all cores")
	if err := cliflag.Parse(fs, args, stdout, help); err != nil {
		return o, err
	}
	switch {
	case o.run == "":
		return o, cliflag.Usage("--run is required: the --out of a train run")
	case o.batch < 2 || o.batch > 1<<20:
		return o, cliflag.Usage("want --batch from 2 to %d, got %d", 1<<20, o.batch)
	case o.limit < 0:
		return o, cliflag.Usage("want --limit of at least 0, got %d", o.limit)
	case o.picture != "" && o.picture != noPicture && filepath.Ext(o.picture) != ".png":
		return o, cliflag.Usage("--picture %s: want a name that ends in .png, or %s", o.picture, noPicture)
	}
	return o, cliflag.AsUsage(device.Check(o.device, device.F32, o.threads))
}
