package cudnn

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Survey is what cuDNN offers for a problem, and what becomes of it: for people who
// wonder why a convolution is slow.
type Survey struct {
	Offered  int            // engines with their knobs
	Left     map[string]int // out, by their first note that is not wanted
	Now      int            // that serve and are compiled already
	Late     int            // that serve and are compiled at run time
	Plans    int            // of the first of those that are compiled already, that could be built
	Failures []string       // of the others
}

// surveyed is how many plans a survey builds.
const surveyed = 4

func (s Survey) String() string {
	var left []string
	for note, n := range s.Left {
		left = append(left, fmt.Sprintf("%d %s", n, note))
	}
	slices.Sort(left)
	return fmt.Sprintf("%d offered, %d compiled and %d to be compiled serve, %d of %d built; left out: %s", s.Offered, s.Now, s.Late, s.Plans,
		min(surveyed, s.Now), cmp.Or(strings.Join(left, ", "), "none"))
}
