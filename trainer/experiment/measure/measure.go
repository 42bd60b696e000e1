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
	Lost       error           // what says that some of those lines are lost
	TrainCPU   float64         // seconds of processor time of training
	TrainLost  bool            // what some of the training cost is not known
	Step       int64           // of the checkpoint that was evaluated
	Last       map[string]any  // as Evaluation, of the last step, where another was chosen
	SampleWall float64         // seconds that sample took; 0 if it was not asked
	Curves     map[string][]Point

	// Where numbers of ranks are compared, instead of all these: the same training on
	// each of them, and the publication's.
	Worlds    []World
	Published Published
}

// Measure is one number of a run.
type Measure struct {
	Name   string // in experiments and files
	Title  string // of its column
	Digits int    // after the point, in the table; negative: as many as it needs
	Asks   string // the word of evaluate --measures that it needs; "" if evaluate has no part in it
	Beside string // the data set beside the experiment's own that evaluate needs; "" for none
	Curve  string // the curve that it is of; "" if of none
	Ranks  bool   // it compares numbers of ranks
	take   func(Evidence) (float64, error)
}

// All are the measures of training runs.
func All() []Measure {
	return append([]Measure{
		of("ll", "LL, nats", 2, "ll", evaluated("ll")),
		of("ll-back", "LL by chains from the data", 2, "ll", fromData),
		of("fisher", "Fisher metric", 1, "fisher", evaluated("fisher")),
		of("fisher-last", "Fisher metric, last step", 1, "", atLast("fisher")),
		of("step", "step measured", 0, "", chosenStep),
		of("critic", "estimated divergence", 4, "critic", evaluated("critic")),
		of("truth", "true divergence", 4, "critic", evaluated("truth")),
		of("loss", "validation loss", -1, "loss", evaluated("loss")),
		of("gap", "posterior Fisher divergence", 1, "gap", evaluated("posterior_gap")),
		of("probe", "probe accuracy, %", 2, "probe", percent("probe")),
		of("probe-untrained", "of an untrained posterior, %", 2, "probe", percent("probe_untrained")),
		of("probe-scaled", "of standardised means, %", 2, "probe", percent("probe_scaled")),
		of("probe-untrained-scaled", "of an untrained posterior's, %", 2, "probe", percent("probe_untrained_scaled")),
		of("probe-raw", "of raw pixels, %", 2, "probe", percent("probe_raw")),
		of("rmse", "RMSE of reconstruction", 4, "rmse", evaluated("rmse")),
		of("auroc-noise", "AUROC against noise", 4, "energy", evaluated("auroc.noise.value")),
		against("svhn", "SVHN"), against("celeba", "CelebA"),
		best("auroc-noise"), best("auroc-svhn"), best("auroc-celeba"),
		of("rmse-mean", "of the mean picture", 4, "rmse", evaluated("rmse_mean_image")),
		of("frechet", "Fréchet distance", 2, "frechet", compared("frechet")),
		of("frechet-floor", "of real pictures", 2, "frechet", floor("frechet")),
		of("frechet-classifier", "Fréchet distance, classifier", 2, "frechet", compared("frechet-classifier")),
		of("kid", "KID × 1000", 2, "kid", compared("kid")),
		of("kid-floor", "of real pictures", 2, "kid", floor("kid")),
		of("kid-classifier", "KID × 1000, classifier", 2, "kid", compared("kid-classifier")),
		of("swd", "SWD × 1000", 2, "swd", compared("swd")),
		of("swd-floor", "of real pictures", 2, "swd", floor("swd")),
		of("precision", "precision", 3, "prdc", compared("precision")),
		of("recall", "recall", 3, "prdc", compared("recall")),
		of("density", "density", 3, "prdc", compared("density")),
		of("coverage", "coverage", 3, "prdc", compared("coverage")),
		of("c2st-auc", "two-sample AUC", 3, "c2st", compared("c2st-auc")),
		of("neighbour", "nearest training picture", 4, "neighbours", compared("neighbour")),
		of("is", "inception score, classifier", 2, "is", compared("is")),
		of("nll", "−log p of a sentence", 2, "nll", evaluated("sentences.nll")),
		of("nll-given", "−log p(x|z), z inferred", 2, "recollection", evaluated("recollection.given.nll")),
		of("nll-blind", "z from the prior", 2, "recollection", evaluated("recollection.blind.nll")),
		of("collapsed", "collapsed (1: yes)", 0, "recollection", evaluated("recollection.collapsed")),
		of("forward", "forward perplexity", 2, "forward", compared("forward")),
		of("forward-normal", "of z from N(0, I)", 2, "forward", control("forward", "N(0, I)")),
		of("forward-floor", "of real sentences", 2, "forward", floor("forward")),
		of("forward-unigram", "of words drawn one by one", 2, "forward", control("forward", "unigram")),
		of("reverse", "reverse perplexity", 2, "reverse", compared("reverse")),
		of("reverse-normal", "of z from N(0, I)", 2, "reverse", control("reverse", "N(0, I)")),
		of("reverse-floor", "of real sentences", 2, "reverse", floor("reverse")),
		of("recon-last", "squared error of a picture, at the end", 1, "", logged("recon", last)),
		of("energy-last", "energy's loss, at the end", 3, "", logged("energy", last)),
		of("norm-prior-last", "‖z⁻‖/√d, at the end", 3, "", logged("norm_prior", last)),
		of("upper-first", "upper loss, first", -1, "", logged("upper", first)),
		of("upper-400", "after 400 steps", -1, "", logged("upper", near(400))),
		of("upper-1900", "after 1,900", -1, "", logged("upper", near(1900))),
		of("upper-3350", "after 3,350", -1, "", logged("upper", near(3350))),
		of("upper-last", "at the end", -1, "", logged("upper", last)),
		of("upper-rise", "its largest rise", 3, "", logged("upper", largestRise)),
		of("lower-peak", "lower loss, peak", -1, "", logged("lower", peak)),
		of("lower-last", "at the end", -1, "", logged("lower", last)),
		of("lower-decades", "its fall, decades", 2, "", logged("lower", decades)),
		of("step-ms", "ms a step", 3, "", stepTime),
		of("cpu-s", "CPU, s", 0, "", trainTime),
		of("sample-s", "sampling, s", 1, "", sampling),
	}, comparing()...)
}

// of is a measure of a run, and of nothing beside it.
func of(name, title string, digits int, asks string, take func(Evidence) (float64, error)) Measure {
	return Measure{Name: name, Title: title, Digits: digits, Asks: asks, take: take}
}

// against is the AUROC against the pictures of another data set.
func against(set, title string) Measure {
	return Measure{Name: "auroc-" + set, Title: "against " + title, Digits: 4, Asks: "energy", Beside: set, take: evaluated("auroc." + set + ".value")}
}

// best is the highest point of a curve.
func best(curve string) Measure {
	return Measure{Name: curve + "-best", Title: "best checkpoint's", Digits: 4, Curve: curve, take: func(e Evidence) (float64, error) {
		if len(e.Curves[curve]) == 0 {
			return 0, fmt.Errorf("%w: the curve %s has no points", ErrShort, curve)
		}
		highest := math.Inf(-1)
		for _, p := range e.Curves[curve] {
			highest = max(highest, p.Y)
		}
		return highest, nil
	}}
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

// ErrLost means that nobody saw the end of what is measured.
var ErrLost = errors.New("what some of it cost is not known")

func trainTime(e Evidence) (float64, error) {
	if e.TrainLost {
		return 0, ErrLost
	}
	return e.TrainCPU, nil
}

func sampling(e Evidence) (float64, error) {
	if e.SampleWall <= 0 {
		return 0, errors.New("nothing was sampled")
	}
	return e.SampleWall, nil
}
