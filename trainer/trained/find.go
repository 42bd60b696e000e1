package trained

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"ebtrain/data"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/run/ckpt"
	"ebtrain/trainer/run/rundir"
)

// Newest is the step of a run's newest checkpoint.
const Newest int64 = -1

// read reads the checkpoint after step steps of the run at path, which is from. The
// run may go on meanwhile.
func read(path string, step int64, log *slog.Logger) (from string, s ckpt.State, groups map[string][]ckpt.Named, err error) {
	dir := rundir.Layout(path).Ckpt()
	if step == Newest {
		from, s, groups, err = ckpt.ReadLatest(dir, log)
		if errors.Is(err, ckpt.ErrNone) {
			err = none(path)
		}
		return from, s, groups, err
	}
	from = filepath.Join(dir, ckpt.Name(step))
	if s, groups, err = ckpt.Read(from); err == nil {
		return from, s, groups, nil
	}
	if gone := has(path, step); gone != nil { // asked afterwards: the run may have removed it meanwhile
		err = gone
	}
	return "", s, nil, err
}

// Origin is a checkpoint that a new run may begin with.
type Origin struct {
	run     *Run
	Weights []nn.Variable
	Step    int64
	Skipped []error // newer ones, that are damaged
}

// Fits says whether its model was trained on samples like those of s, of the data set called
// name: of the same size, vocabulary and scale.
func (o *Origin) Fits(name string, s data.Schema) error { return o.run.fits(name, s) }

// Find is the newest checkpoint, that looks whole, of the run at path, if step is Newest, or
// that of step, if there is one. Its tensors are not read.
func Find(path string, step int64) (*Origin, error) {
	config, s, model, err := describe(path)
	if err != nil {
		return nil, err
	}
	r := &Run{Path: path, Config: config, Settings: s, Model: model}
	specs, err := r.variables()
	if err != nil {
		return nil, err
	}
	var skipped []error
	if step == Newest {
		step, err = ckpt.NewestWhole(rundir.Layout(path).Ckpt(), func(err error) { skipped = append(skipped, err) })
		if errors.Is(err, ckpt.ErrNone) {
			err = none(path)
		}
	} else {
		err = has(path, step)
	}
	return &Origin{run: r, Weights: nn.Only(specs, nn.Weight), Step: step, Skipped: skipped}, err
}

// Checkpoints are the steps of checkpoints that the run at path has: steps, if it has them
// all, or, if steps is nil, all that are whole, rising, without those that are skipped since
// they are damaged.
func Checkpoints(path string, steps []int64, skipped func(error)) ([]int64, error) {
	if _, err := rundir.ReadConfig(path); err != nil {
		return nil, err
	}
	for _, step := range steps {
		if err := has(path, step); err != nil {
			return nil, err
		}
	}
	if steps != nil {
		return steps, nil
	}
	steps, err := ckpt.Whole(rundir.Layout(path).Ckpt(), skipped)
	if err == nil && len(steps) == 0 {
		err = none(path)
	}
	return steps, err
}

// has reports a checkpoint that the run at path does not have.
func has(path string, step int64) error {
	steps, err := ckpt.Steps(rundir.Layout(path).Ckpt())
	switch {
	case err != nil:
		return err
	case len(steps) == 0:
		return none(path)
	case !slices.Contains(steps, step):
		return fmt.Errorf("%s holds no checkpoint of step %d: it has %s (train keeps the newest --ckpt-keep, 0 all)", path, step, listed(steps))
	}
	return nil
}

func none(path string) error {
	return fmt.Errorf("%s holds no checkpoint yet: train writes one every --ckpt-every steps and at the end", path)
}

// listed names steps, of many the first and the last.
func listed(steps []int64) string {
	const most = 12
	words := make([]string, len(steps))
	for i, s := range steps {
		words[i] = fmt.Sprint(s)
	}
	if n := len(words); n > most {
		return fmt.Sprintf("%d, of steps %s, …, %s", n, strings.Join(words[:3], ", "), words[n-1])
	}
	if len(words) == 1 {
		return "that of step " + words[0]
	}
	return "those of steps " + strings.Join(words, ", ")
}
