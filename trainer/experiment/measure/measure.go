package measure

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"ebtrain/trainer/run/rundir"
)

// Evidence is what a finished run leaves behind.
type Evidence struct {
	Evaluation map[string]any  // the object that evaluate --json printed; nil if it was not asked
	Records    []rundir.Record // of metrics.jsonl
	TrainCPU   float64         // seconds of processor time of training
	Step       int64           // of the checkpoint that was evaluated
	Last       map[string]any  // as Evaluation, of the last step, where another was chosen
	SampleWall float64         // seconds that sample took; 0 if it was not asked
}

// Measure is one number of a run.
type Measure struct {
	Name   string // in experiments and files
	Title  string // of its column
	Digits int    // after the point, in the table; negative: as many as it needs
	Asks   string // the word of evaluate --measures that it needs; "" if evaluate has no part in it
	take   func(Evidence) (float64, error)
}

// All are the measures of training runs.
func All() []Measure {
	return []Measure{
		{"ll", "LL, nats", 2, "ll", evaluated("ll")},
		{"fisher", "Fisher metric", 1, "fisher", evaluated("fisher")},
		{"fisher-last", "Fisher metric, last step", 1, "", atLast("fisher")},
		{"step", "step measured", 0, "", chosenStep},
		{"critic", "estimated divergence", 4, "critic", evaluated("critic")},
		{"truth", "true divergence", 4, "critic", evaluated("truth")},
		{"loss", "validation loss", -1, "loss", evaluated("loss")},
		{"gap", "posterior Fisher divergence", 1, "gap", evaluated("posterior_gap")},
		{"probe", "probe accuracy, %", 2, "probe", percent("probe")},
		{"probe-untrained", "of an untrained posterior, %", 2, "probe", percent("probe_untrained")},
		{"probe-raw", "of raw pixels, %", 2, "probe", percent("probe_raw")},
		{"rmse", "RMSE of reconstruction", 4, "rmse", evaluated("rmse")},
		{"auroc-noise", "AUROC against noise", 4, "energy", evaluated("auroc.noise.value")},
		{"rmse-mean", "of the mean picture", 4, "rmse", evaluated("rmse_mean_image")},
		{"frechet", "Fréchet distance", 2, "frechet", compared("frechet")},
		{"frechet-floor", "of real pictures", 2, "frechet", floor("frechet")},
		{"frechet-classifier", "Fréchet distance, classifier", 2, "frechet", compared("frechet-classifier")},
		{"kid", "KID × 1000", 2, "kid", compared("kid")},
		{"kid-floor", "of real pictures", 2, "kid", floor("kid")},
		{"kid-classifier", "KID × 1000, classifier", 2, "kid", compared("kid-classifier")},
		{"swd", "SWD × 1000", 2, "swd", compared("swd")},
		{"swd-floor", "of real pictures", 2, "swd", floor("swd")},
		{"precision", "precision", 3, "prdc", compared("precision")},
		{"recall", "recall", 3, "prdc", compared("recall")},
		{"density", "density", 3, "prdc", compared("density")},
		{"coverage", "coverage", 3, "prdc", compared("coverage")},
		{"c2st-auc", "two-sample AUC", 3, "c2st", compared("c2st-auc")},
		{"neighbour", "nearest training picture", 4, "neighbours", compared("neighbour")},
		{"is", "inception score, classifier", 2, "is", compared("is")},
		{"nll", "−log p of a sentence", 2, "nll", evaluated("sentences.nll")},
		{"nll-given", "−log p(x|z), z inferred", 2, "recollection", evaluated("recollection.given.nll")},
		{"nll-blind", "z from the prior", 2, "recollection", evaluated("recollection.blind.nll")},
		{"collapsed", "collapsed (1: yes)", 0, "recollection", evaluated("recollection.collapsed")},
		{"forward", "forward perplexity", 2, "forward", compared("forward")},
		{"forward-normal", "of z from N(0, I)", 2, "forward", control("forward", "N(0, I)")},
		{"forward-floor", "of real sentences", 2, "forward", floor("forward")},
		{"forward-unigram", "of words drawn one by one", 2, "forward", control("forward", "unigram")},
		{"reverse", "reverse perplexity", 2, "reverse", compared("reverse")},
		{"reverse-normal", "of z from N(0, I)", 2, "reverse", control("reverse", "N(0, I)")},
		{"reverse-floor", "of real sentences", 2, "reverse", floor("reverse")},
		{"recon-last", "squared error of a picture, at the end", 1, "", logged("recon", last)},
		{"energy-last", "energy's loss, at the end", 3, "", logged("energy", last)},
		{"norm-prior-last", "‖z⁻‖/√d, at the end", 3, "", logged("norm_prior", last)},
		{"upper-first", "upper loss, first", -1, "", logged("upper", first)},
		{"upper-400", "after 400 steps", -1, "", logged("upper", near(400))},
		{"upper-1900", "after 1,900", -1, "", logged("upper", near(1900))},
		{"upper-3350", "after 3,350", -1, "", logged("upper", near(3350))},
		{"upper-last", "at the end", -1, "", logged("upper", last)},
		{"upper-rise", "its largest rise", 3, "", logged("upper", largestRise)},
		{"lower-peak", "lower loss, peak", -1, "", logged("lower", peak)},
		{"lower-last", "at the end", -1, "", logged("lower", last)},
		{"lower-decades", "its fall, decades", 2, "", logged("lower", decades)},
		{"step-ms", "ms a step", 3, "", stepTime},
		{"cpu-s", "CPU, s", 0, "", func(e Evidence) (float64, error) { return e.TrainCPU, nil }},
		{"sample-s", "sampling, s", 1, "", sampling},
	}
}

// Asks are the words of evaluate --measures that measures need, with commas
// between; "" if evaluate has no part in any.
func Asks(measures ...string) string {
	var words []string
	for _, m := range All() {
		if m.Asks != "" && slices.Contains(measures, m.Name) && !slices.Contains(words, m.Asks) {
			words = append(words, m.Asks)
		}
	}
	return strings.Join(words, ",")
}

// Find is the measure of that name.
func Find(name string) (Measure, bool) {
	for _, m := range All() {
		if m.Name == name {
			return m, true
		}
	}
	return Measure{}, false
}

// ErrNotFinite means that a measured number is NaN or infinite.
var ErrNotFinite = errors.New("not a finite number")

// Of is the number of a run.
func (m Measure) Of(e Evidence) (float64, error) {
	v, err := m.take(e)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", m.Name, err)
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%s is %v: %w", m.Name, v, ErrNotFinite)
	}
	return v, nil
}

func chosenStep(e Evidence) (float64, error) {
	if e.Step < 1 {
		return 0, errors.New("no checkpoint was measured")
	}
	return float64(e.Step), nil
}

func sampling(e Evidence) (float64, error) {
	if e.SampleWall <= 0 {
		return 0, errors.New("nothing was sampled")
	}
	return e.SampleWall, nil
}
