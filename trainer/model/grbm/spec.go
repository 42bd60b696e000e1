package grbm

import (
	"errors"
	"fmt"

	"ebtrain/data"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/setting"
)

// Spec is what a method's Config says of the machine that it trains.
type Spec struct {
	C, H, W int // of a picture; 0 is taken from the data
	Hidden  int
}

// mostUnits bounds the hidden units: W has Visible times as many numbers.
const mostUnits = 1 << 16

// Fit takes sizes that are 0 from the data, and refuses others than its own.
func (s *Spec) Fit(d data.Schema) error {
	for _, own := range []struct{ mine, theirs int }{{s.C, d.C}, {s.H, d.H}, {s.W, d.W}} {
		if own.mine != 0 && own.mine != own.theirs {
			return fmt.Errorf("this model takes %s×%s×%s (channels×height×width), not %d×%d×%d: choose other data or another preset",
				extent(s.C), extent(s.H), extent(s.W), d.C, d.H, d.W)
		}
	}
	s.C, s.H, s.W = d.C, d.H, d.W
	return nil
}

func extent(n int) string {
	if n == 0 {
		return "any"
	}
	return fmt.Sprint(n)
}

// Settings adds --hidden.
func (s *Spec) Settings(set *setting.Set) {
	set.Int("hidden", &s.Hidden, 1, mostUnits, "hidden units")
}

// Validate says what is wrong with sizes that fit their data.
func (s Spec) Validate() error {
	var errs []error
	if s.C < 1 || s.H < 1 || s.W < 1 {
		errs = append(errs, fmt.Errorf("want pictures of at least 1×1×1 (channels, height, width), got %d×%d×%d", s.C, s.H, s.W))
	}
	if s.Hidden < 1 || s.Hidden > mostUnits {
		errs = append(errs, fmt.Errorf("want from 1 to %d hidden units, got %d", mostUnits, s.Hidden))
	}
	return errors.Join(errs...)
}

// Machine is the machine of a valid Spec.
func (s Spec) Machine() Machine {
	return Machine{Size: Size{Visible: s.C * s.H * s.W, Hidden: s.Hidden}, Picture: graph.D(s.C, s.H, s.W)}
}
