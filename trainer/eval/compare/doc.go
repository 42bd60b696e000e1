// Package compare judges sets of pictures beside a reference, training pictures:
// it takes the measures of package quality in the features of package feature, for
// as many sets as are to stand beside each other: samples, real pictures that are
// not the reference (the floor), and sets that are known to be bad.
//
// Ranks share what is costly, the features; the statistics are computed by the
// first, and only it gets numbers. All ranks make the same calls in the same order.
// A Judge belongs to one goroutine.
package compare

import (
	"math"
	"slices"
)

// Measures, the words that a user says.
const (
	Frechet    = "frechet"
	KID        = "kid"
	SWD        = "swd"
	PRDC       = "prdc"
	C2ST       = "c2st"
	Neighbours = "neighbours"
	IS         = "is"
)

// Better says which values of a row are better.
type Better string

const (
	Lower  Better = "lower"
	Higher Better = "higher"
	Half   Better = "near 0.5" // what equal sets give: below it is as far from equal as above
)

// Row is one number that a measure gives.
type Row struct {
	Name, Title string
	Better      Better
	Measure     string
}

// What is added to the name of a row in the features of a classifier, and of the network
// of published numbers.
const (
	ofClassifier = "-classifier"
	ofPublished  = "-inception"
)

// Rows are those of all measures, in the order of a table. Those that are in
// features are there three times: in those of the random networks, of which they are
// means, in a classifier's, and in those of the network of published numbers.
func Rows() []Row {
	inFeatures := []Row{
		{"frechet", "Fréchet distance", Lower, Frechet}, {"kid", "KID × 1000", Lower, KID},
		{"precision", "precision", Higher, PRDC}, {"recall", "recall", Higher, PRDC},
		{"density", "density", Higher, PRDC}, {"coverage", "coverage", Higher, PRDC},
	}
	all := slices.Clone(inFeatures)
	for _, r := range inFeatures {
		all = append(all, Row{r.Name + ofClassifier, r.Title + ", classifier", r.Better, r.Measure})
	}
	for _, r := range inFeatures {
		all = append(all, Row{r.Name + ofPublished, r.Title + ", Inception", r.Better, r.Measure})
	}
	return append(all,
		Row{"is" + ofPublished, "inception score", Higher, IS},
		Row{"is", "inception score, classifier", Higher, IS},
		Row{"swd", "sliced Wasserstein × 1000", Lower, SWD},
		Row{"c2st-accuracy", "two-sample accuracy", Half, C2ST},
		Row{"c2st-auc", "two-sample AUC", Half, C2ST},
		Row{"neighbour", "nearest training picture", Higher, Neighbours},
	)
}

// Counts says whether a measure's numbers depend on how many pictures a set holds, so that
// only sets of equal numbers compare: all but KID, whose subsets are of one size and unbiased,
// and the median distance to the nearest.
func Counts(measure string) bool { return measure != KID && measure != Neighbours }

// Value is a row's number of one set.
type Value struct {
	Row    string
	Value  float64
	Spread float64 // standard deviation over networks, or parts; 0 where there is none
}

// Beats says whether a is better than c.
func (b Better) Beats(a, c float64) bool {
	switch b {
	case Higher:
		return a > c
	case Half:
		return math.Abs(a-0.5) < math.Abs(c-0.5)
	}
	return a < c
}
