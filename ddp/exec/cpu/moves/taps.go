package moves

import (
	"slices"

	"ebtrain/ddp/graph"
)

// tap is a source index and its weight.
type tap struct {
	at int
	w  float64
}

// run is indices first, first+step, … whose taps have the same weights, and lie move
// further for each.
type run struct{ first, step, count, move int }

// maxRunStep is as far as neighbours in a run may be from each other: an enlargement
// by so much has runs.
const maxRunStep = 4

// runsOf are the indices of taps in runs, as few as can be with one step.
func runsOf(taps [][]tap) (best []run) {
	for step := 1; step <= maxRunStep; step++ {
		var runs []run
		for phase := range min(step, len(taps)) {
			for i := phase; i < len(taps); {
				r := runAt(taps, i, step)
				runs = append(runs, r)
				i += r.count * step
			}
		}
		if best == nil || len(runs) < len(best) {
			best = runs
		}
	}
	return best
}

// runAt is the longest run from index first on.
func runAt(taps [][]tap, first, step int) run {
	r := run{first: first, step: step, count: 1}
	for at := first + step; at < len(taps); at += step {
		move, ok := apart(taps[at-step], taps[at])
		if !ok || r.count > 1 && move != r.move || move < 0 {
			break
		}
		r.count, r.move = r.count+1, move
	}
	return r
}

// apart says how much further taps b lie than a, and whether they are alike.
func apart(a, b []tap) (move int, ok bool) {
	if len(a) == 0 || len(b) == 0 {
		return 0, len(a) == len(b)
	}
	move = b[0].at - a[0].at
	return move, slices.EqualFunc(a, b, func(x, y tap) bool { return x.w == y.w && y.at-x.at == move })
}

// windowTaps are, for each window position, the indices of x inside it.
func windowTaps(k, stride, pad, dil, in, out int) [][]tap {
	taps := make([][]tap, out)
	for i := range taps {
		for q := range k {
			if at := i*stride + q*dil - pad; at >= 0 && at < in {
				taps[i] = append(taps[i], tap{at, 1})
			}
		}
	}
	return taps
}

// adjoint turns taps around: the sources become the results.
func adjoint(taps [][]tap, in int) [][]tap {
	t := make([][]tap, in)
	for i, list := range taps {
		for _, s := range list {
			t[s.at] = append(t[s.at], tap{i, s.w})
		}
	}
	return t
}

// poolTaps are the taps of a sum pool of an h×w image.
func poolTaps(w graph.Window, h, wd int) (rows, cols [][]tap) {
	oh, ow := w.Out(h, wd)
	return windowTaps(w.KH, w.StrideH, w.PadT, w.DilH, h, oh), windowTaps(w.KW, w.StrideW, w.PadL, w.DilW, wd, ow)
}

// upTaps are, for each index of the enlarged axis, its sources and weights.
func upTaps(mode graph.ResampleMode, scale, in int) [][]tap {
	taps := make([][]tap, in*scale)
	for i := range taps {
		if mode == graph.Nearest {
			taps[i] = []tap{{i / scale, 1}}
			continue
		}
		pos := max((float64(i)+0.5)/float64(scale)-0.5, 0)
		lo := min(int(pos), in-1)
		hi := min(lo+1, in-1)
		f := pos - float64(lo)
		if lo == hi || f == 0 {
			taps[i] = []tap{{lo, 1}}
			continue
		}
		taps[i] = []tap{{lo, 1 - f}, {hi, f}}
	}
	return taps
}
