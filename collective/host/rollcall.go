package host

import (
	"math"
	"sync"
	"time"
	"weak"

	"ebtrain/collective"
)

// rollCall ends the group of a device if somebody does not come to what all wait for
// in host memory. Its methods are called by the goroutine that runs the collectives.
type rollCall struct {
	comm  *Comm
	limit time.Duration // 0 is none
	timer *time.Timer

	mu    sync.Mutex         // held by late, so that it is over when the wait is
	what  collective.Request // that the ranks must come to; none if Kind is 0
	alone bool               // coming is all there is to it: no data are moved
	again bool               // the limit is over, and others know better who has not come
	due   time.Time          // until then late is early: its timer was that of the wait before
}

func newRollCall(c *Comm, limit time.Duration) *rollCall {
	r := &rollCall{comm: c, limit: limit}
	if limit > 0 && !c.peers.topo.leads() { // leaders know more of other hosts
		r.limit += time.Second
	}
	// What a timer calls is kept in memory as long as the timer is: a stopped one, too, until
	// the runtime tidies up, which it need not do for hours. So a group that is closed is not.
	self := weak.Make(r)
	r.timer = time.AfterFunc(math.MaxInt64, func() {
		if r := self.Value(); r != nil {
			r.late()
		}
	})
	r.timer.Stop()
	return r
}

// expect says what ranks must come to. Nothing but their coming takes time, or, where
// alone is false, data are moved, for as long as they need once all have come.
func (r *rollCall) expect(req collective.Request, alone bool) {
	if r.limit <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.what, r.alone, r.again = req, alone, false
	r.set(r.limit)
}

// set has late called in a while.
func (r *rollCall) set(d time.Duration) {
	r.due = time.Now().Add(d)
	r.timer.Reset(d)
}

// over says that the wait is.
func (r *rollCall) over() {
	if r.limit <= 0 {
		return
	}
	r.timer.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.what = collective.Request{}
}

// late ends the group: somebody has not come.
func (r *rollCall) late() {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.what.Kind == 0 || time.Now().Before(r.due):
	case !r.alone && len(r.comm.Missing()) == 0:
		r.set(r.limit)
	case !r.again && len(r.comm.Missing()) == 0: // a leader that hears from whom is missing names it
		r.again = true
		r.set(time.Second)
	default:
		r.comm.alarm.abort(r.comm.NotCome(r.what, r.limit))
	}
}
