package algotest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/setting"
)

// adams begins the names of the inputs that carry an Adam's clock: its rate and its
// correction, see optim.Adam.
const adams = "adam."

// clocksRun: what Adam is fed is of the step, and so another in each.
func clocksRun(p exec.Program, own map[string]graph.Type, feed func(int64, int)) error {
	one, err := fed(p, own, feed, 3, 1)
	if err != nil {
		return err
	}
	two, err := fed(p, own, feed, 5, 1)
	if err != nil {
		return err
	}
	for name := range own {
		if strings.HasPrefix(name, adams) && one[name][1] == two[name][1] {
			return fmt.Errorf("the input %s is %v at step 3 and %v at step 5: its clock stands", name, one[name], two[name])
		}
	}
	return nil
}

// decays: where a method has --lr-decay, every Adam's rate falls by it with each epoch.
func decays(ctx context.Context, config algo.Config) error {
	const factor, name = 0.5, "lr-decay"
	c := config.Clone()
	if !slices.ContainsFunc(settingsOf(c).All(), func(one *setting.Setting) bool { return one.Name == name }) {
		return nil
	}
	if err := Given(c, map[string]string{name: fmt.Sprint(factor)}); err != nil {
		return err
	}
	r := newRig(ctx, c.Model())
	return r.withOwn(r.decaysBy(factor))
}

func (r rig) decaysBy(factor float64) func(exec.Program, map[string]graph.Type) error {
	return func(p exec.Program, own map[string]graph.Type) error {
		feed := r.model.Feeder(p)
		early, err := fed(p, own, feed, 3, 0)
		if err != nil {
			return err
		}
		late, err := fed(p, own, feed, 3, 1)
		if err != nil {
			return err
		}
		for name := range own {
			if got := late[name][0] / early[name][0]; strings.HasPrefix(name, adams) && !(math.Abs(got-factor) <= 1e-6) {
				return fmt.Errorf("the rate of %s is %v times that of the epoch before, and --lr-decay is %v", name, got, factor)
			}
		}
		return nil
	}
}
