package main

import (
	"fmt"
	"slices"
	"strings"

	"ebtrain/launch/cliflag"
	"ebtrain/trainer/eval/compare"
)

// use is what a flag is for, where that is not every measure.
type use struct {
	flag     string
	measures []string
	// off is the value that asks for nothing, and so is right beside any measure; "" if
	// there is none.
	off string
}

// uses are the flags that some measures read and others do not.
func uses() []use {
	var (
		normalised = []string{measureLL, measureDensity}
		inFeatures = []string{compare.Frechet, compare.KID, compare.PRDC}
		byNetworks = append(slices.Clone(inFeatures), compare.IS)
		ofPictures = []string{compare.Frechet, compare.KID, compare.SWD, compare.PRDC, compare.C2ST, compare.Neighbours, compare.IS}
		ofSamples  = append(slices.Clone(ofPictures), measureForward, measureReverse)
	)
	return []use{
		{flag: "ais-chains", measures: normalised},
		{flag: "ais-steps", measures: normalised},
		{flag: "ood", measures: []string{measureEnergy}},
		{flag: "picture", measures: []string{measureRMSE, measureDensity}, off: noPicture},
		{flag: "probe-limit", measures: []string{measureProbe}},
		{flag: "limit", measures: slices.DeleteFunc(measureNames(), func(name string) bool { return slices.Contains(ofPictures, name) })},
		{flag: "samples", measures: ofSamples},
		{flag: "stats", measures: append([]string{measureEnergy}, ofSamples...)},
		{flag: "given", measures: ofPictures, off: "false"},
		{flag: "reference", measures: ofPictures},
		{flag: "classifier", measures: byNetworks},
		{flag: "inception", measures: byNetworks},
		{flag: "feature-cache", measures: inFeatures, off: noCache},
		{flag: "judge", measures: []string{measureForward}},
	}
}

// ofRuns are the flags that say something of a run's model.
var ofRuns = []string{"step", "ema", "stats", "given"}

// ofTraining are the flags that training a classifier reads.
var ofTraining = []string{"train-classifier", "passes", "data", "split", "limit", "batch", "seed", "device", "threads"}

// checkUses reports a flag that would change nothing of what is asked for: whoever
// typed it believes otherwise.
func (o options) checkUses() error {
	for _, flag := range o.typed {
		switch {
		case o.trainClassifier != "" && !slices.Contains(ofTraining, flag):
			return cliflag.Usage("--%s has no effect beside --train-classifier, which measures nothing: leave it out", flag)
		case o.trainClassifier == "" && o.run == "" && slices.Contains(ofRuns, flag):
			return cliflag.Usage("--%s is of a --run, and the samples are those of --samples-from: leave it out", flag)
		}
	}
	if o.trainClassifier != "" {
		return nil
	}
	if all := o.unused(o.mayMeasure()); len(all) > 0 {
		u := all[0]
		return cliflag.Usage("--%s is for --measures %s, %s asked for: name one, or leave --%s out", u.flag, strings.Join(u.measures, ","), noneOf(u.measures), u.flag)
	}
	return nil
}

// mayMeasure are the measures that the command line asks for, if the model has them.
func (o options) mayMeasure() (names []string) {
	for _, m := range measures {
		if o.asks(m.name) || o.asks(allMeasures) && !m.asked {
			names = append(names, m.name)
		}
	}
	return names
}

// unused are the uses of flags that were typed and that none of these measures reads.
func (o options) unused(names []string) (all []use) {
	for _, u := range uses() {
		typed := slices.Contains(o.typed, u.flag) && (u.off == "" || o.given[u.flag] != u.off)
		if typed && !slices.ContainsFunc(u.measures, func(m string) bool { return slices.Contains(names, m) }) {
			all = append(all, u)
		}
	}
	return all
}

// noneOf is what stands between the names of measures and what they are not.
func noneOf(measures []string) string {
	if len(measures) == 1 {
		return "which is not"
	}
	return "none of which is"
}

// warnUnused tells of flags whose measures --measures all stands for and this model has
// not. Of one that is named the report says so.
func (e *evaluation) warnUnused(taken []measure) {
	var names []string
	for _, m := range measures {
		if e.o.asks(m.name) || slices.ContainsFunc(taken, func(t measure) bool { return t.name == m.name }) {
			names = append(names, m.name)
		}
	}
	for _, u := range e.o.unused(names) {
		e.log.Warn("a flag has no effect", "problem", fmt.Sprintf("--%s is for --measures %s, %s to be had of %s", u.flag, strings.Join(u.measures, ","), noneOf(u.measures), e.what()))
	}
}
