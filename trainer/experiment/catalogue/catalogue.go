// Package catalogue is the experiments that bin/experiment knows, each in a file
// of its own: data, and no logic. Numbers are those of ALGORITHMS.md §5.1 and of
// the papers it names.
package catalogue

import "ebtrain/trainer/experiment/plan"

// All are the experiments, the quick ones first.
func All() []plan.Experiment {
	return []plan.Experiment{
		board(), frey(), freyHidden(), freyBad(), biases(), vagesBias(), timing(), mnist(),
		vagesKSD(), vagesDSM(), vagesFrey(), vagesMNIST(), vagesTiming(), fisher(200), fisher(500), fisherLong(200, 3), fisherLong(500, 12),
		lebmPictures(), lebmCIFAR(), lebmText(), pictures(), picturesLong(), picturesWide(), fullSize(),
	}
}
