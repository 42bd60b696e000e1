package kernel

import "math"

// perThread is how many steps along the middle axis a thread does before the axis is cut,
// atOnce how many of them are loaded at the same time. So many blocks keep a device busy
// where each loads much for a step (some two for each multiprocessor of a large one), and so
// many (wanted) where it loads little. Reductions of up to so many points may share a launch
// with others (shared), and, up to smallest, are cut so that their blocks meet once.
const (
	perThread, atOnce = 16, 4
	busy, wanted      = 256, 512
	shared, smallest  = 1 << 18, 1 << 21
)

// steps is the middle axis in steps of a thread.
func (r *reduction) steps() int {
	if r.columns == 1 {
		return r.middle / r.V
	}
	return r.middle
}

// divide cuts the work into blocks: first so that columns lie in long runs, then in
// shorter ones, which leaves more threads for the middle axis. The axis is not cut where no
// thread has much to do then: to meet takes as long as some steps, and only what is not cut
// shares launches. It is sooner cut in a kernel that stores, which loads much for each step.
func (r *reduction) divide() {
	n := r.outer * r.middle * r.columns
	r.segments, r.length = 1, r.steps()
	for _, run := range []int{64, 32, 16, 8} {
		each := r.shape(run)
		if each <= 2*atOnce || each <= perThread && (!r.stores() || r.cells() >= busy || n <= shared) {
			return
		}
	}
	r.shape(16)
	if n <= smallest || r.stores() {
		r.cutOnce()
	} else {
		r.cut(min(wanted/r.cells(), ceil(r.steps(), r.ty*perThread)), r.ty)
	}
	if r.fan == 0 {
		for r.fan = 16; r.fan*r.fan < r.segments; r.fan *= 2 {
		}
	}
}

// cutOnce cuts the middle axis into so many segments that the device is busy, but so few
// that all meet in one round, where that does not leave a thread much more to do.
func (r *reduction) cutOnce() {
	if r.cells()*atOnce*r.ty < busy {
		r.shape(8)
	}
	steps, once := r.steps(), atOnce*r.ty
	n := min(wanted/r.cells(), max(ceil(steps, r.ty*perThread), min(ceil(steps, once), ceil(busy, r.cells()))))
	if n > once && ceil(steps, r.ty*once) <= 2*perThread {
		n = once
	}
	r.cut(n, once)
	if r.segments <= once {
		r.fan = once
	}
}

// cut cuts the middle axis into about n segments, of a multiple of so many steps.
func (r *reduction) cut(n, unit int) {
	steps := r.steps()
	r.length = max(1, int(math.Round(float64(steps)/float64(max(n, 1)*unit)))) * unit
	r.segments = ceil(steps, r.length)
}

// shape shapes a block whose columns lie in runs of at most so many threads; each
// thread then has that many steps along the middle axis.
func (r *reduction) shape(run int) (each int) {
	r.tx, r.tiles = 1, 1
	if r.columns > 1 {
		wide := r.columns / r.V
		r.tiles = ceil(wide, run)
		r.tx = ceil(wide, r.tiles)
	}
	for r.ty = 1; 2*r.ty*r.tx <= Block && 4*r.ty < r.steps(); r.ty *= 2 {
	}
	r.tz = min(Block/(r.tx*r.ty), r.outer)
	return ceil(r.steps(), r.ty)
}
