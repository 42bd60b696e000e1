package judge

import (
	"fmt"
	"strings"
)

// State is what became of a claim.
type State uint8

const (
	NotRun State = iota // nothing was measured
	Holds
	Fails
	Undecided // too few seeds were, for what is claimed and for how much they differ
)

func (s State) String() string { return [...]string{"not run", "holds", "FAILS", "undecided"}[s] }

// Verdict is what a table says of a claim.
type Verdict struct {
	Claim  string
	State  State
	Detail string // the numbers, and by how much it fails
}

// Check is a claim about a table.
type Check interface {
	// Values are what it speaks of.
	Values() []Value
	// Judge compares it with what was measured.
	Judge(Table) Verdict
}

// absent is the verdict where one of the values was not measured; nil if all
// were. A run that diverged has no values, and fails the claim.
func absent(t Table, claim string, values []Value) *Verdict {
	var missing []string
	for _, v := range values {
		if seeds := t[v.Row].Diverged; len(seeds) > 0 {
			return &Verdict{claim, Fails, fmt.Sprintf("%s diverged (%s)", v.Row, seedList(seeds))}
		}
		if t.Spread(v).N == 0 {
			missing = append(missing, v.String())
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return &Verdict{claim, NotRun, "no " + strings.Join(missing, ", ")}
}

// verdict is Holds or Fails.
func verdict(claim string, holds bool, format string, args ...any) Verdict {
	v := Verdict{claim, Fails, fmt.Sprintf(format, args...)}
	if holds {
		v.State = Holds
	}
	return v
}

func seedList(seeds []uint64) string {
	if len(seeds) == 1 {
		return fmt.Sprintf("seed %d", seeds[0])
	}
	return "seeds " + strings.Trim(fmt.Sprint(seeds), "[]")
}

func seedCount(n int) string {
	if n == 1 {
		return "1 seed"
	}
	return fmt.Sprintf("%d seeds", n)
}
