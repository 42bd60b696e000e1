package measure

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"ebtrain/trainer/run/rundir"
)

// World is a training on a number of ranks.
type World struct {
	Ranks   int
	Batch   int // over all ranks
	Records []rundir.Record
	CPU     float64 // seconds of processor time of all its processes, their start included
}

// Published is the run of a publication.
type Published struct {
	Steps int64
	Batch int
	// TeraOps are 10¹² floating-point operations: those of the convolutions and matrix
	// products of a step.
	TeraOps float64
}

// peakH100 is what an H100 SXM does in float32 outside its tensor cores, in 10¹²
// operations a second, by its data sheet.
const peakH100 = 67

const (
	secondsOfDay = 86_400
	mebi         = 1 << 20
)

// comparing are the measures that compare numbers of ranks.
func comparing() []Measure {
	all := []Measure{
		of("losses", "numbers compared", 0, "", func(e Evidence) (float64, error) {
			n, _, err := gap(e.Worlds)
			return float64(n), err
		}),
		of("loss-gap", "largest difference", -1, "", func(e Evidence) (float64, error) {
			_, largest, err := gap(e.Worlds)
			return largest, err
		}),
		of("step-s-1", "s a step, 1 rank", -1, "", ofWorld(1, World.stepTime)),
		of("step-s-2", "2 ranks", -1, "", ofWorld(2, World.stepTime)),
		of("cpu-step", "CPU, s a step", -1, "", ofWorld(2, World.stepCPU)),
		of("mem-1", "peak MiB, 1 rank", 0, "", ofWorld(1, World.peak)),
		of("mem-2", "of each of 2", 0, "", ofWorld(2, World.peak)),
		of("batch-published", "paper's batch", 0, "", ofPaper(func(p Published) float64 { return float64(p.Batch) })),
		of("steps-published", "paper's steps", 0, "", ofPaper(func(p Published) float64 { return float64(p.Steps) })),
		of("days-here", "days here", -1, "", daysHere),
		of("tera-ops", "10¹² operations a step", -1, "", ofPaper(func(p Published) float64 { return p.TeraOps })),
		of("days-h100", "days on an H100, more than", -1, "", ofPaper(Published.daysH100)),
	}
	for i := range all {
		all[i].Ranks = true
	}
	return all
}

// gap compares each number that the worlds logged with that of the first: how many
// there are, and the largest difference as a part of the larger one.
func gap(worlds []World) (n int, largest float64, err error) {
	if len(worlds) < 2 {
		return 0, 0, errors.New("fewer than two numbers of ranks were trained on")
	}
	a := worlds[0]
	for _, b := range worlds[1:] {
		if len(a.Records) == 0 || len(a.Records) != len(b.Records) {
			return 0, 0, fmt.Errorf("%d ranks logged %d steps, %d ranks %d", a.Ranks, len(a.Records), b.Ranks, len(b.Records))
		}
		for i, r := range a.Records {
			other := b.Records[i].Losses
			names := slices.Sorted(maps.Keys(r.Losses))
			if len(names) == 0 || !slices.Equal(names, slices.Sorted(maps.Keys(other))) {
				return 0, 0, fmt.Errorf("%d ranks logged %v, %d ranks %v", a.Ranks, names, b.Ranks, slices.Sorted(maps.Keys(other)))
			}
			for _, name := range names {
				n++
				largest = larger(largest, apart(r.Losses[name], other[name]))
			}
		}
	}
	return n, largest, nil
}

// larger is the larger of two, and NaN if one of them is.
func larger(a, b float64) float64 {
	if math.IsNaN(a) {
		return a
	}
	if math.IsNaN(b) {
		return b
	}
	return max(a, b)
}

// apart is the difference of two numbers as a part of the larger one; NaN unless both
// are finite.
func apart(a, b float64) float64 {
	if d := math.Abs(a - b); d != 0 { // or NaN
		return d / max(math.Abs(a), math.Abs(b))
	}
	return 0
}

// ofWorld takes a number from the training on so many ranks.
func ofWorld(ranks int, take func(World) (float64, error)) func(Evidence) (float64, error) {
	return func(e Evidence) (float64, error) {
		for _, w := range e.Worlds {
			if w.Ranks == ranks && len(w.Records) > 0 {
				return take(w)
			}
		}
		return 0, fmt.Errorf("nothing was trained on %d ranks", ranks)
	}
}

// stepTime is the seconds of the last step: the first is slower.
func (w World) stepTime() (float64, error) {
	return w.Records[len(w.Records)-1].StepMS / 1000, nil
}

// stepCPU is processor time, in seconds, that a step does not take more of: its share
// of all there was, start and end included, which is near where steps are long; or all
// ranks for as long as the step took, which is near where nothing else runs.
func (w World) stepCPU() (float64, error) {
	step, err := w.stepTime()
	return min(w.CPU/float64(len(w.Records)), step*float64(w.Ranks)), err
}

// peak is the largest resident size of the first rank, in MiB.
func (w World) peak() (float64, error) {
	bytes := w.Records[len(w.Records)-1].MemBytes
	if bytes <= 0 {
		return 0, errors.New("metrics.jsonl does not know how much memory it took")
	}
	return float64(bytes) / mebi, nil
}

// daysHere are the days of the publication's run on two processors, which see as many
// samples: two ranks that share a step's processor time, and do nothing else.
func daysHere(e Evidence) (float64, error) {
	const ranks = 2
	return ofWorld(ranks, func(w World) (float64, error) {
		cpu, err := w.stepCPU()
		samples := float64(e.Published.Steps) * float64(e.Published.Batch)
		return cpu / ranks * samples / float64(w.Batch) / secondsOfDay, err
	})(e)
}

// daysH100 are the days of the publication's run on a GPU that does nothing but its
// convolutions and products, at its peak.
func (p Published) daysH100() float64 {
	return p.TeraOps / peakH100 * float64(p.Steps) / secondsOfDay
}

// ofPaper takes a number of the publication's run, which are all above 0.
func ofPaper(take func(Published) float64) func(Evidence) (float64, error) {
	return func(e Evidence) (float64, error) {
		v := take(e.Published)
		if v <= 0 {
			return 0, errors.New("nothing is known of a publication's run")
		}
		return v, nil
	}
}
