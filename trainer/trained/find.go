package trained

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"ebtrain/trainer/run/ckpt"
	"ebtrain/trainer/run/rundir"
)

// Newest is the step of a run's newest checkpoint.
const Newest int64 = -1

// find is the path of the checkpoint after step steps of the run at path.
func find(path string, step int64, log *slog.Logger) (string, error) {
	dir := rundir.Layout(path).Ckpt()
	if step == Newest {
		newest, err := ckpt.Latest(dir, log)
		if errors.Is(err, ckpt.ErrNone) {
			err = none(path)
		}
		return newest, err
	}
	steps, err := ckpt.Steps(dir)
	switch {
	case err != nil:
		return "", err
	case len(steps) == 0:
		return "", none(path)
	case !slices.Contains(steps, step):
		return "", fmt.Errorf("%s holds no checkpoint of step %d: it has %s (train keeps the newest --ckpt-keep, 0 all)", path, step, listed(steps))
	}
	return filepath.Join(dir, ckpt.Name(step)), nil
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
