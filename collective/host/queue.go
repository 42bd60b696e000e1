package host

import (
	"math"

	"ebtrain/collective"
)

// item is a collective that was started and is not over.
type item struct {
	seq    uint64
	req    collective.Request
	alloc  *allocation         // instead of a request, for Alloc
	within func(*Inside) error // besides a request, for Within
	roll   bool                // it is a roll call
	// zeros says that subnormal numbers count as zeros on the thread that started it: so
	// they do in its sums, on whatever thread of this package or of a caller that waits.
	zeros bool
}

// allocation is a call of Alloc.
type allocation struct {
	n   int
	mem collective.Vec // the result
}

// never is the number of a collective that was started after Close.
const never = math.MaxUint64

// queue holds the collectives of a rank in order, and how those that are over
// have ended. It neither waits nor locks: its runner's mu guards it. Its places
// are used again and again.
type queue struct {
	ring   []item // the item of number seq is at seq % len(ring), a power of two
	done   uint64 // collectives that are complete; the number of the head
	next   uint64 // of the collective that is started next
	broken error  // how the first collective that failed ended, and all after it
	closed bool
	helped bool // callers that wait run collectives, too

	busy  bool // somebody runs the head, or begins it
	begun bool // the head's begin is done

	asleep []*sleeper
	spare  []*sleeper // for reuse
}

// sleeper is a caller that waits for collective seq while somebody else runs
// the queue.
type sleeper struct {
	seq  uint64
	wake chan struct{} // capacity 1; told once that seq is over
}

// idle says whether there is nothing to run.
func (q *queue) idle() bool { return q.done == q.next || q.broken != nil }

// over says whether collective seq has ended, well or not.
func (q *queue) over(seq uint64) bool { return q.done > seq || q.broken != nil || seq == never }

// outcome is how collective seq, which is over, has ended.
func (q *queue) outcome(seq uint64) error {
	switch {
	case q.done > seq:
		return nil
	case seq == never:
		return collective.ErrClosed
	}
	return q.broken
}

// add gives it its number. After a failure nothing will run any more.
func (q *queue) add(it item) uint64 {
	if q.closed {
		return never
	}
	it.seq = q.next
	if q.broken == nil {
		q.push(it)
	}
	q.next++
	return it.seq
}

func (q *queue) at(seq uint64) *item { return &q.ring[seq&uint64(len(q.ring)-1)] }

func (q *queue) push(it item) {
	if q.next-q.done == uint64(len(q.ring)) {
		old := *q
		q.ring = make([]item, max(16, 2*len(old.ring)))
		for seq := old.done; seq != old.next; seq++ {
			*q.at(seq) = *old.at(seq)
		}
	}
	*q.at(q.next) = it
}

// take takes the head to run it, if there is one that nobody has. A helper gets
// no Alloc, which cannot be interrupted.
func (q *queue) take(helper bool) (it item, ok bool) {
	if q.busy || q.idle() || helper && (!q.helped || q.at(q.done).alloc != nil) {
		return item{}, false
	}
	q.busy = true
	return *q.at(q.done), true
}

// settle ends the head, which was taken, with err or well, and wakes whoever
// waits for it. An error is the end of all that follow, too.
func (q *queue) settle(err error) {
	q.busy, q.begun = false, false
	if err != nil {
		q.broken, q.ring = err, nil
	} else {
		*q.at(q.done) = item{} // lets go of the vector's memory
		q.done++
	}
	kept := q.asleep[:0]
	for _, s := range q.asleep {
		if q.over(s.seq) {
			s.wake <- struct{}{} // it has room: nobody else tells s before it is used again
		} else {
			kept = append(kept, s)
		}
	}
	clear(q.asleep[len(kept):])
	q.asleep = kept
}

// left says whether somebody must be found for what there is to do, now that
// nobody runs it. A head that Start has begun waits for its Wait.
func (q *queue) left() bool {
	return q.closed || !q.idle() && (!q.begun || q.next-q.done > 1 || len(q.asleep) > 0)
}

// sleep is a sleeper for collective seq.
func (q *queue) sleep(seq uint64) *sleeper {
	var s *sleeper
	if n := len(q.spare); n > 0 {
		s, q.spare = q.spare[n-1], q.spare[:n-1]
	} else {
		s = &sleeper{wake: make(chan struct{}, 1)}
	}
	s.seq = seq
	q.asleep = append(q.asleep, s)
	return s
}
