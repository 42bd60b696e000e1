package algotest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/setting"
)

// lookup is the setting of a config called name, or nil.
func lookup(c algo.Config, name string) *setting.Setting {
	all := settingsOf(c).All()
	if i := slices.IndexFunc(all, func(one *setting.Setting) bool { return one.Name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// warms: where a method has --warmup, rates grow in the run's first steps, and are then as
// without it. Nothing else that a step is fed changes.
func warms(ctx context.Context, config algo.Config) error {
	const steps, name = 3, "warmup"
	if lookup(config, name) == nil {
		return nil
	}
	c := config.Clone()
	if err := Given(c, map[string]string{name: strconv.Itoa(steps)}); err != nil {
		return err
	}
	cold, warm := newRig(ctx, config.Clone().Model()), newRig(ctx, c.Model())
	for step := range int64(steps + 2) {
		without, err := cold.fedAt(step)
		if err != nil {
			return err
		}
		with, err := warm.fedAt(step)
		if err != nil {
			return err
		}
		if err := grown(with, without, min(1, float64(step+1)/(steps+1))); err != nil {
			return fmt.Errorf("--%s %d, step %d: %w", name, steps, step, err)
		}
	}
	return nil
}

// fedAt is what a step's program is fed of its own.
func (r rig) fedAt(step int64) (values ddptest.Values, err error) {
	err = r.withOwn(func(p exec.Program, own map[string]graph.Type) (err error) {
		values, err = fed(p, own, r.model.Feeder(p), step, 0)
		return err
	})
	return values, err
}

// grown says where what is fed with a warm-up is neither what it is without nor, a rate,
// a share of it. Rates stand first of each two numbers, see optim.Rows.
func grown(with, without ddptest.Values, share float64) error {
	rates := 0
	for name, values := range without {
		for i, x := range values {
			switch got := with[name][i]; {
			case got == x && (share == 1 || i%2 == 1):
			case share < 1 && i%2 == 0 && math.Abs(got/x-share) <= 1e-6:
				rates++
			default:
				return fmt.Errorf("%s is %v at %d, without %v, and a rate is to be %v of it", name, got, i, x, share)
			}
		}
	}
	if rates == 0 && share < 1 {
		return errors.New("no rate is smaller")
	}
	return nil
}

// clips: where a method has --clip, the steps of each optimiser are made of gradients that
// are as long as it says, if without it they are longer; but for those of a lower level, as
// they are without it where the help says that only the upper one's are clipped.
func clips(ctx context.Context, config algo.Config) error {
	clip := lookup(config, "clip")
	if clip == nil {
		return nil
	}
	upperAlone := strings.Contains(clip.Help, "upper level")
	const short, long = 1e-3, 1e30
	moments := func(clip float64) (map[string]float64, error) { return secondMoments(ctx, config, clip) }
	free, err := moments(long)
	if err != nil {
		return err
	}
	clipped, err := moments(short)
	if err != nil {
		return err
	}
	some := false
	for _, optimiser := range slices.Sorted(maps.Keys(free)) {
		got, before := clipped[optimiser], free[optimiser]
		switch {
		case isLength(got, short, config):
			some = true
		case got == before && (upperAlone && optimiser == "lower" || before <= short*short):
		default:
			return fmt.Errorf("--clip %v: the second moments of %s add up to %v, and to %v without", short, optimiser, got, before)
		}
	}
	if !some {
		return errors.New("--clip clips nothing")
	}
	return nil
}

// isLength says whether second moments that began at 0 are those after some steps, not
// many, of gradients of that length: (1−β₂ᵏ) times its square.
func isLength(sum, length float64, c algo.Config) bool {
	beta2, err := strconv.ParseFloat(lookup(c, "beta2").String(), 64)
	for k := 1.0; k <= 10 && err == nil; k++ {
		if math.Abs(sum/((1-math.Pow(beta2, k))*length*length)-1) <= 1e-4 {
			return true
		}
	}
	return false
}

// secondMoments are the sums of the second moments of each optimiser, by its name, after
// one step without weight decay.
func secondMoments(ctx context.Context, config algo.Config, clip float64) (map[string]float64, error) {
	c := config.Clone()
	if err := Given(c, map[string]string{"clip": fmt.Sprint(clip), "weight-decay": "0"}); err != nil {
		return nil, err
	}
	r := newRig(ctx, c.Model())
	sets := newSets(1)
	if _, err := r.train(sets, 0, 1); err != nil {
		return nil, err
	}
	_, specs, err := r.model.Step(1, r.fewer())
	if err != nil {
		return nil, err
	}
	sums := map[string]float64{}
	for _, v := range specs {
		if v.Role != nn.Moment || !strings.HasSuffix(v.Name, ".v") {
			continue
		}
		x, err := sets[0].Get(v.Name)
		if err != nil {
			return nil, err
		}
		optimiser := strings.Split(strings.TrimPrefix(v.Name, adams), ".")[0]
		for _, one := range ddptest.Numbers(x) {
			sums[optimiser] += one
		}
	}
	return sums, nil
}
