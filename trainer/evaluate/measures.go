package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"path/filepath"
	"slices"
	"strings"

	"ebtrain/data/atomicfile"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/eval/compare"
	"ebtrain/trainer/run/picture"
	"ebtrain/trainer/run/rundir"
	"ebtrain/trainer/trained"
)

// What can be measured, the words of --measures.
const (
	measureRMSE    = "rmse"
	measureEnergy  = "energy"
	measureFisher  = "fisher"
	measureCritic  = "critic"
	measureGap     = "gap"
	measureLoss    = "loss"
	measureLL      = "ll"
	measureDensity = "density"
	measureProbe   = "probe"
	measureNLL     = "nll"
	measureRecall  = "recollection"
	measureForward = "forward"
	measureReverse = "reverse"

	// allMeasures are those that the model has at little cost: not the probe, which
	// trains classifiers, and none that draws thousands of samples.
	allMeasures = "all"
)

// measure is one thing that can be measured.
type measure struct {
	name string
	// lacks says what the model, or the data, lack for it; "" if nothing.
	lacks func(*evaluation) string
	take  func(*evaluation, context.Context, *report) error
	// trains says that the split that was trained on is read.
	trains bool
	// asked says that it is no part of allMeasures.
	asked bool
	// samples says that it is of samples, wherever they are from; else it is of a model.
	samples bool
	// picture is what the picture shows that it makes in the run's samples/; nil if
	// it makes none, "" if it makes none of such samples.
	picture func(*evaluation) string
}

// measures are all that there are, in the order in which they are taken.
var measures = []measure{
	{name: measureRMSE, lacks: lacksRMSE, take: (*evaluation).reconstruct, trains: true, picture: (*evaluation).reconName},
	{name: measureEnergy, lacks: lacksEnergy, take: (*evaluation).energies},
	{name: measureFisher, lacks: lacksFisher, take: (*evaluation).fisher},
	{name: measureCritic, lacks: lacksCritic, take: (*evaluation).critic},
	{name: measureGap, lacks: lacksGap, take: (*evaluation).gap},
	{name: measureLoss, lacks: lacksLoss, take: (*evaluation).loss},
	{name: measureLL, lacks: lacksLL, take: (*evaluation).likelihood},
	{name: measureDensity, lacks: lacksDensity, take: (*evaluation).density, picture: func(*evaluation) string { return "density" }},
	{name: measureNLL, lacks: lacksNLL, take: (*evaluation).nll},
	{name: measureRecall, lacks: lacksRecollection, take: (*evaluation).recollections},
	{name: measureProbe, lacks: lacksProbe, take: (*evaluation).probe, trains: true, asked: true},
	comparing(compare.Frechet), comparing(compare.KID), comparing(compare.SWD), comparing(compare.PRDC),
	comparing(compare.C2ST), comparing(compare.Neighbours), comparing(compare.IS),
	judging(measureForward), judging(measureReverse),
}

func measureNames() []string {
	names := make([]string, len(measures))
	for i, m := range measures {
		names[i] = m.name
	}
	return names
}

// has says whether a model is a T.
func has[T any](e *evaluation) bool {
	if e.trained == nil {
		return false
	}
	_, ok := e.trained.Model.(T)
	return ok
}

// unless is what is lacking unless ok.
func unless(ok bool, lacking string) string {
	if ok {
		return ""
	}
	return lacking
}

func lacksRMSE(e *evaluation) string {
	return unless(has[algo.Reconstructor](e), "its models give no reconstructions")
}

func lacksSamples(e *evaluation) string {
	return unless(has[algo.Sampler](e), "its models draw no samples")
}

func lacksEnergy(e *evaluation) string {
	return unless(has[algo.Energetic](e), "its models have no energy of samples alone")
}

func lacksFisher(e *evaluation) string {
	return unless(has[algo.FisherScored](e), "its models do not have the Fisher divergence in closed form")
}

func lacksCritic(e *evaluation) string {
	return unless(has[algo.Criticised](e), "its models have no critic")
}

func lacksGap(e *evaluation) string {
	if !has[algo.Inferred](e) {
		return "its models have no approximate posterior whose divergence is known"
	}
	return e.lacksOthers(e.leastBatch())
}

func lacksLoss(e *evaluation) string {
	if !has[algo.Losing](e) {
		return "its models do not have the loss of samples that are not trained on"
	}
	return e.lacksOthers(max(algo.GroupOf(e.trained.Model), e.leastBatch()))
}

// leastBatch is how many samples the model's levels of noise are spread over at least.
func (e *evaluation) leastBatch() int {
	config, err := e.trained.Settings.Config()
	if err != nil { // of a model that no settings made
		return 1
	}
	return algo.LeastBatchOf(config)
}

// lacksOthers says that fewer samples are measured than are seen together at least.
func (e *evaluation) lacksOthers(least int) string {
	n, err := e.count(e.o.data, e.o.split)
	if err != nil {
		return err.Error()
	}
	return unless(n >= int64(least), fmt.Sprintf("it is of %d samples together at least, and %s of %s/%s is measured: give more", least, trained.Count(n, trained.Noun(e.takes)), e.o.data, e.o.split))
}

func lacksLL(e *evaluation) string {
	return unless(has[algo.Energetic](e) && has[algo.Normalised](e), "its models cannot be normalised")
}

func lacksDensity(e *evaluation) string {
	switch {
	case lacksLL(e) != "":
		return lacksLL(e)
	case e.o.picture == noPicture:
		return "it is a picture, and --picture is " + noPicture
	}
	return unless(trained.Planar(e.takes), "its samples are no points of the plane, 1×1×2")
}

func lacksProbe(e *evaluation) string {
	if !has[algo.Encoder](e) {
		return "its models do not infer latents"
	}
	src, err := e.open(e.o.data, e.o.split)
	if err != nil {
		return err.Error()
	}
	return unless(len(src.Schema().Classes) > 1, fmt.Sprintf("%s has no classes", e.o.data))
}

// chosen are the measures to take: all that the model has at little cost, and those
// that are named. What is named and cannot be had is a sentence of lacking, and the
// others go on; if nothing is left it is an error.
func (e *evaluation) chosen() (all []measure, lacking []string, err error) {
	words := strings.Split(e.o.measures, ",")
	for _, m := range measures {
		named := slices.Contains(words, m.name)
		if !named && (!slices.Contains(words, allMeasures) || m.asked) {
			continue
		}
		switch why := e.lacks(m); {
		case why == "":
			all = append(all, m)
		case named:
			lacking = append(lacking, fmt.Sprintf("--measures %s of %s: %s", m.name, e.what(), why))
		}
	}
	switch {
	case len(all) == 0 && len(lacking) > 0:
		return nil, nil, errors.New(strings.Join(lacking, "; "))
	case len(all) == 0:
		return nil, nil, fmt.Errorf("nothing can be measured at little cost of %s: name what is to be, --measures %s", e.what(), strings.Join(e.possible(), ","))
	}
	return all, lacking, nil
}

// lacks says what is lacking for a measure; "" if nothing.
func (e *evaluation) lacks(m measure) string {
	if e.trained == nil && !m.samples {
		return "it is of a model, and --samples-from has samples alone: give the --run of one"
	}
	return m.lacks(e)
}

// possible are the names of all measures that can be taken.
func (e *evaluation) possible() (names []string) {
	for _, m := range measures {
		if e.lacks(m) == "" {
			names = append(names, m.name)
		}
	}
	return names
}

// what is what is measured, in words.
func (e *evaluation) what() string {
	if e.trained == nil {
		return e.o.samplesFrom
	}
	return fmt.Sprintf("%s, a run of --algo %s", e.o.run, e.trained.Settings.Algo)
}

// keepPicture writes the picture and says where it is, "" if nowhere: what was measured is
// shown without a picture that could not be written, and the error after it.
func (e *evaluation) keepPicture(m image.Image) string {
	if err := picture.WritePNG(e.picture, m); err != nil {
		e.undrawn = fmt.Errorf("the picture %s is not there: %w", e.picture, err)
		return ""
	}
	return e.picture
}

// pictureName is the usual name of a picture that shows what.
func (e *evaluation) pictureName(what string) string {
	ema := ""
	if e.trained.Averages {
		ema = "-ema"
	}
	return fmt.Sprintf("%s-step-%08d%s.png", what, e.trained.State.Step, ema)
}

// place decides where the picture that shows what goes, and reports a place that cannot be
// written.
func (e *evaluation) place(what string) error {
	switch {
	case what == "" || e.o.picture == noPicture:
		return nil
	case e.o.picture == "":
		e.picture = filepath.Join(rundir.Layout(e.o.run).Samples(), e.pictureName(what))
	default:
		e.picture = e.o.picture
	}
	if err := cmp.Or(atomicfile.Check(e.picture), picture.CheckReplace(e.picture)); err != nil {
		return fmt.Errorf("the picture %s cannot be written: %w: give another place with --picture FILE.png, or --picture %s", e.picture, err, noPicture)
	}
	return nil
}
