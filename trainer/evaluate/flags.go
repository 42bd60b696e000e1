package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"ebtrain/launch/cliflag"
	"ebtrain/trainer/device"
	"ebtrain/trainer/eval/compare"
	"ebtrain/trainer/eval/inception"
	"ebtrain/trainer/trained"
)

// program is what --help shows of evaluate besides the flags themselves.
var program = cliflag.Program{
	Name: "evaluate",
	About: `evaluate measures a checkpoint of a run, the newest unless another is named, on
a split of a data set.

  evaluate --run runs/celeba32 --data shards/celeba32 --split test
  evaluate --run runs/celeba32 --step all --measures rmse,kid   a line for each

It prints what the method's models can tell:
  rmse    of reconstructions, with batch norm's statistics of the batch (as
          released code evaluates) and with its running ones, beside that of
          the mean training image; a picture of inputs above their
          reconstructions is written into the run directory
  energy  of the data, of --batch samples (of a GRBM draws, not the means that
          its pictures show) and of as much noise as data, which is uniform, or
          of points normal, with mean and deviation of each of their columns;
          AUROC is the probability that data has lower energy than these, or
          than the pictures of --ood
  fisher  the Fisher divergence to the data, but for the data's constant
  critic  the Fisher divergence from the data as a critic estimates it, and as
          it is known for data that are N(0, I)
  loss    the loss that the weights descend, with nothing unrolled
  gap     the divergence of the approximate posterior from the model's
  ll      the mean log-likelihood: the normaliser is enumerated where there are
          few hidden units, else estimated by annealed importance sampling,
          and again by chains that begin at the data: said where they disagree
  nll     −log p of a sentence and of a word, the perplexity of a word, and the
          share of words that are likelier than any other where they stand
  recollection −log p of sentences given latents inferred from each, and given
          latents of the prior; where both are the same, the latents collapsed
  density of a model of points of the plane, as a picture beside the data
  probe   the accuracy of linear support vector machines trained to tell classes
          by the posterior's means, beside that by the untrained posterior's and
          by raw values; only if it is named

Pictures that the model draws are compared with training pictures, beside real
pictures of --split (the floor) and sets that are known to be bad (noise,
blurred ones, one class, shuffled pixels, copies of training pictures), only if
named:
  frechet     the Fréchet distance, in the features of five random networks, in
              those of a --classifier, and, as publications do, of --inception
  kid         the kernel distance in the same features, times 1,000
  prdc        precision and recall, density and coverage in the same features
  swd         the sliced Wasserstein distance of Laplacian pyramids
  c2st        how well a network that was trained to tells them from real ones
  neighbours  the median distance to the nearest training picture
  is          the inception score, by a --classifier and by --inception

Points, such as the rows of a table, are compared by all of these but is: by
their values, in units of the standard deviations of training ones, beside
points whose columns know nothing of each other: noise, of each column's mean
and deviation, and shuffled, the columns of training points, each in another
order.
Samples are drawn as the method does, by the deep models of bism and vages
together with their latents. With --given each has the latents of a random
training picture, which is what the papers of these two report. Weights are as
they were trained; with --ema they are averages over the steps, of a run that
keeps them (batch norm's running statistics stay those of the weights).

Sentences that the model writes are judged beside test sentences (the floor) and
bad ones (words drawn one by one, shuffled words, ten sentences again and
again), of a learnt prior also beside those of latents from N(0, I); only if
named:
  forward     the perplexity of their words, by 5-grams of the training
              sentences and by a language model, the run of --judge
  reverse     that of the split's words, by 5-grams of the samples

  evaluate --data shards/cifar10 --train-classifier cifar.safetensors
  evaluate --run runs/cifar --measures frechet,is --classifier cifar.safetensors

Pictures of any other program are judged without a model: make them a data set
with mkshards folder, points with mkshards table --like the data, and name it
with --samples-from:

  evaluate --samples-from shards/theirs --data shards/cifar10 --measures kid

Sentences likewise, by mkshards text with the --vocabulary of the data.

Under ddplaunch the ranks share the work, and find the same numbers.
`,
	Groups: []cliflag.Group{
		{Title: "What is measured", Flags: []string{"run", "step", "ema", "data", "split", "measures", "ood", "limit", "batch", "seed", "ais-chains", "ais-steps", "probe-limit"}},
		{Title: "Samples beside data", Flags: []string{"samples", "reference", "stats", "given", "classifier", "judge", "inception", "samples-from", "feature-cache"}},
		{Title: "Training a classifier", Flags: []string{"train-classifier", "passes"}},
		{Title: "Outputs", Flags: []string{"json", "picture"}},
		{Title: "The machine", Flags: []string{"device", "threads"}},
		{Title: "Help", Flags: []string{"help", "version"}},
	},
}

// What --samples-from is judged by unless something is named.
const (
	ofTheirPictures  = compare.Frechet + "," + compare.KID + "," + compare.SWD + "," + compare.PRDC
	ofTheirSentences = measureForward + "," + measureReverse
)

// noPicture is the --picture that makes none.
const noPicture = "none"

// options are the flags of evaluate.
type options struct {
	run, data, split, device string
	ood                      []foreign
	picture                  string // "" for the default place, or noPicture
	measures                 string // names of measures and allMeasures, with commas between
	byKind                   bool   // measures are those of --samples-from, once it is known what it holds
	batch, threads           int
	aisChains, aisSteps      int
	steps                    []int64        // of the checkpoints that are measured; nil: all of the run
	of                       trained.Choice // of the run, the checkpoint that is being measured
	limit, probeLimit        int64
	seed                     uint64
	json                     bool

	samples, reference int    // pictures, or sentences, that are compared
	stats              string // batch norm's when samples are drawn
	classifier         string // file; "" for none
	latents            bool   // samples have those of training pictures: --given
	judge              string // run of a language model; "" for none
	inception          string // file of weights; "" for none
	samplesFrom        string // data set, instead of a model's samples
	cache              string // folder of features of real pictures, or noCache
	trainClassifier    string // file to make; "" to measure
	passes             int    // of training it

	given map[string]string // all flags, as they were given or are by default
	typed []string          // those that were given
}

// ofEachHost are the flags that may differ between ranks: where things are, and how a
// host works. What lies there is compared.
var ofEachHost = []string{"run", "data", "ood", "samples-from", "classifier", "inception", "judge", "feature-cache", "picture", "json", "threads"}

// noCache is the --feature-cache that keeps nothing.
const noCache = "none"

func parse(args []string, stdout io.Writer) (options, error) {
	var o options
	var ood []string
	var step string
	fs := pflag.NewFlagSet("evaluate", pflag.ContinueOnError)
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "metrics" {
			name = "measures"
		}
		return pflag.NormalizedName(name)
	})
	o.flags(fs, &ood, &step)
	if err := program.Parse(fs, args, stdout); err != nil {
		return o, err
	}
	o.given = cliflag.Values(fs)
	fs.Visit(func(f *pflag.Flag) { o.typed = append(o.typed, f.Name) })
	if o.byKind = o.samplesFrom != "" && !fs.Changed("measures"); o.byKind {
		o.measures = ofTheirPictures + "," + ofTheirSentences
	}
	if err := checkMeasures(o.measures); err != nil {
		return o, err
	}
	var err error
	if o.steps, err = readSteps(step); err != nil {
		return o, err
	}
	if o.ood, err = foreigners(ood); err != nil {
		return o, err
	}
	if err := o.checkTogether(fs.Changed("passes")); err != nil {
		return o, err
	}
	if err := o.checkRanges(); err != nil {
		return o, err
	}
	if err := o.checkUses(); err != nil {
		return o, err
	}
	if err := o.checkCache(); err != nil {
		return o, err
	}
	return o, cliflag.AsUsage(device.Check(o.device, device.F32, o.threads))
}

// flags defines them, with their defaults; --ood and --step are still to be read.
func (o *options) flags(fs *pflag.FlagSet, ood *[]string, step *string) {
	fs.StringVar(&o.run, "run", "", "run directory of a trained model (required without --samples-from and --train-classifier)")
	fs.StringVar(step, "step", fmt.Sprint(trained.Newest), "steps after which the checkpoint was written; those of several with commas between, or all, for a table of them; -1 is the newest")
	fs.BoolVar(&o.of.Averages, "ema", false, "measure the moving averages of the weights, which train --ema keeps")
	fs.StringVar(&o.data, "data", "", "data set: a directory made by mkshards, or a built-in one (synth, checkerboard, gauss); default is the run's own")
	fs.StringVar(&o.split, "split", "test", "split to measure on")
	fs.StringVar(&o.measures, "measures", allMeasures, "what to measure, with commas between: "+strings.Join(measureNames(), ", ")+"; all is what the method has, up to "+measureRecall+", and with --samples-from frechet, kid, swd and prdc, or of sentences forward and reverse. Also --metrics")
	fs.IntVar(&o.aisChains, "ais-chains", 2000, "annealed importance sampling: chains")
	fs.IntVar(&o.aisSteps, "ais-steps", 2000, "annealed importance sampling: steps of each chain")
	fs.Int64Var(&o.probeLimit, "probe-limit", 10_000, "samples that the probe is trained on, chosen by --seed; 0 is all")
	fs.IntVar(&o.samples, "samples", 5000, "pictures, or sentences, of each set that is compared, no more than there are training ones; a Fréchet distance wants 2048, of few points' values 100")
	fs.IntVar(&o.reference, "reference", 10_000, "training pictures to compare with, chosen by --seed; 0 is all")
	fs.StringVar(&o.stats, "stats", "batch", "batch norm's statistics when samples are drawn, --batch at a time, also for energy: batch (as the released code samples) or running")
	fs.BoolVar(&o.latents, "given", false, "draw pictures with given latents, as sample --given: posterior means of random pictures of the split that was trained on, chosen by --seed, in place of the model's own")
	fs.StringVar(&o.classifier, "classifier", "", "classifier in whose features samples are judged too, made of the same data by --train-classifier")
	fs.StringVar(&o.judge, "judge", "", "run of a language model, trained on the same sentences, that judges samples too (--measures forward)")
	fs.StringVar(&o.inception, "inception", "", "file of Inception-v3's weights, for FID and inception score as published: "+inception.File)
	fs.StringVar(&o.samplesFrom, "samples-from", "", "data set whose first split's pictures are judged instead of a run's samples: train, or the only one")
	fs.StringVar(&o.cache, "feature-cache", "", "folder that keeps features of real pictures; default is in the user's cache folder, none keeps none")
	fs.StringVar(&o.trainClassifier, "train-classifier", "", "file to make: train a classifier on the labels of --data, and measure nothing else")
	fs.IntVar(&o.passes, "passes", 15, "passes over the data in training a classifier")
	fs.StringArrayVar(ood, "ood", nil, "another data set, whose test split (or only one) should have higher energy; may be given again, with names: svhn=shards/svhn")
	fs.IntVar(&o.batch, "batch", 100, "samples at a time; with batch statistics the result depends on it")
	fs.Int64Var(&o.limit, "limit", 0, "measure only the first samples of each split, or so many chosen by --seed: for a loss that compares samples, and to train a classifier; 0 is all")
	fs.Uint64Var(&o.seed, "seed", 1, "seed of all random draws")
	fs.StringVar(&o.picture, "picture", "", "PNG of inputs above their reconstructions, or of the density; default is in the run's samples/, as is that of several checkpoints' numbers over their steps, none makes none")
	fs.BoolVar(&o.json, "json", false, "print one JSON object, for each checkpoint, instead of a table; in it NaN and infinities are the texts \"NaN\", \"Inf\" and \"-Inf\", and of a model that diverged it has only \"diverged\", and of one of several checkpoints its \"step\"")
	fs.StringVar(&o.device, "device", "auto", "where to compute: "+device.Names)
	fs.IntVar(&o.threads, "threads", 0, "threads; 0 is OMP_NUM_THREADS or, without it, all cores")
}

// asks says whether a measure is named.
func (o options) asks(measure string) bool {
	return slices.Contains(strings.Split(o.measures, ","), measure)
}
