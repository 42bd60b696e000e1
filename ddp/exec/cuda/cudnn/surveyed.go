package cudnn

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Survey is what cuDNN offers for a problem, and what becomes of it: for people who
// wonder why a convolution is slow.
type Survey struct {
	Offered int            // engines with their knobs
	Left    map[string]int // out, by their first note that is not wanted
	Now     int            // that serve and are compiled already
	Late    int            // that serve and are compiled at run time
	Plans   int            // of the first of those that are compiled already, that could be built
	// LatePlans are, of the first that are compiled at run time, those that could be built,
	// and LateTook is how long that took.
	LatePlans int
	LateTook  time.Duration
	Failures  []string // of the others, and of what cuDNN was asked besides
}

// surveyed is how many plans a survey builds, and surveyedLate how many that are compiled
// for it.
const surveyed, surveyedLate = 4, 1

func (s Survey) String() string {
	var left []string
	for note, n := range s.Left {
		left = append(left, fmt.Sprintf("%d %s", n, note))
	}
	slices.Sort(left)
	return fmt.Sprintf("%d offered, %d compiled and %d to be compiled serve, %d of %d built and %d of %d; left out: %s", s.Offered, s.Now, s.Late, s.Plans,
		min(surveyed, s.Now), s.LatePlans, min(surveyedLate, s.Late), cmp.Or(strings.Join(left, ", "), "none"))
}
