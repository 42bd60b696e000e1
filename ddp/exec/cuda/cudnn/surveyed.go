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
	// LatePlans is 1 if the first that is compiled at run time could be built, and LateTook
	// is how long that took; 0 if it was not tried.
	LatePlans int
	LateTook  time.Duration
	Failures  []string // of the others, and of what cuDNN was asked besides
}

// surveyed is how many plans a survey builds.
const surveyed = 4

func (s Survey) String() string {
	var left []string
	for note, n := range s.Left {
		left = append(left, fmt.Sprintf("%d %s", n, note))
	}
	slices.Sort(left)
	late := ""
	if s.LateTook > 0 {
		late = fmt.Sprintf(" (%d of 1 built in %v)", s.LatePlans, s.LateTook.Round(time.Millisecond))
	}
	return fmt.Sprintf("%d offered, %d compiled and %d to be compiled%s serve, %d of %d built; left out: %s", s.Offered, s.Now, s.Late, late, s.Plans,
		min(surveyed, s.Now), cmp.Or(strings.Join(left, ", "), "none"))
}
