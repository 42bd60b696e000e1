package supervise

import (
	"slices"
	"strings"

	"ebtrain/launch/rendezvous"
)

// maxSaid is how many of the ranks' last lines are remembered.
const maxSaid = 64

// said is what the ranks have last written to standard error, so that at the
// end of a job nothing is said twice: not by one rank after the other, nor by
// the launcher after the ranks.
type said struct {
	lines  []folded
	ending bool // a rank has failed, or has been told that the job ends
}

// add remembers a line that is about to be shown. It is an echo, and need not
// be shown, if the job is ending and other ranks have said the same.
func (s *said) add(e folded) (echo bool) {
	if e.stream != stderr || e.ranks[0] == launcher {
		return false
	}
	for i, old := range s.lines {
		if s.ending && old.text == e.text && !slices.ContainsFunc(e.ranks, old.has) {
			s.lines[i].ranks = append(slices.Clone(old.ranks), e.ranks...)
			return true
		}
	}
	s.lines = append(s.lines, e)
	s.lines = s.lines[max(0, len(s.lines)-maxSaid):]
	return false
}

// explains says that the ranks' own words leave nothing to add about why the
// job has ended: the cause itself was among them, or the rank that failed has
// ended with a sentence in the name of its program.
func (s *said) explains(c *rendezvous.Cause, program string) bool {
	switch c.Kind {
	case rendezvous.CauseRaised, rendezvous.CauseUnfit:
		return slices.ContainsFunc(s.lines, func(e folded) bool { return strings.Contains(e.text, c.Error()) })
	case rendezvous.CauseExit:
		for _, e := range slices.Backward(s.lines) {
			if e.has(c.Rank) {
				return c.During == "" && strings.HasPrefix(e.text, program+": ")
			}
		}
	}
	return false
}
