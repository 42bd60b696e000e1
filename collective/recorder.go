package collective

import (
	"fmt"
	"sync"
	"time"
)

// Entry is one collective in the flight recorder. Done is zero while it runs.
type Entry struct {
	Seq      uint64
	Enqueued bool // on a stream: Seq is its number in the program, not the group's
	Kind     Kind
	Op       Op
	Type     DType
	Len      int // elements
	Label    string
	Started  time.Time
	Done     time.Time
	Err      error // nil while it runs and when it succeeded
}

// Recorder keeps the last collectives that a rank began: a flight recorder.
// Its methods may be called from any goroutine.
type Recorder struct {
	born time.Time // never changes

	mu   sync.Mutex
	ring []Entry
	n    uint64 // entries ever begun
}

// NewRecorder keeps the last size collectives; size must be positive.
func NewRecorder(size int) *Recorder { return &Recorder{born: time.Now(), ring: make([]Entry, size)} }

// now is the time, from one look at a clock: time.Now looks at two, which a small
// collective would notice.
func (r *Recorder) now() time.Time { return r.born.Add(time.Since(r.born)) }

// Begin records that collective seq of the group begins to run. End is to be given what it
// returns.
func (r *Recorder) Begin(seq uint64, req Request) uint64 {
	return r.add(Entry{Seq: seq}, req)
}

// Enqueue is Begin for the collective that has number n in its program, and that is put on a
// stream: others of the group may run beside it.
func (r *Recorder) Enqueue(n uint64, req Request) uint64 {
	return r.add(Entry{Seq: n, Enqueued: true}, req)
}

func (r *Recorder) add(e Entry, req Request) uint64 {
	e.Kind, e.Op, e.Type, e.Len, e.Label = req.Kind, req.Op, req.Vec.Type, req.Vec.Len, req.Label
	e.Started = r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ring[r.n%uint64(len(r.ring))] = e
	r.n++
	return r.n
}

// End records that a collective has ended, with err or well; begun is what Begin or Enqueue
// returned for it. One that is no longer kept is left out.
func (r *Recorder) End(begun uint64, err error) {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if size := uint64(len(r.ring)); begun+size > r.n {
		e := &r.ring[(begun-1)%size]
		e.Done, e.Err = now, err
	}
}

// Recent is what is recorded, oldest first.
func (r *Recorder) Recent() []Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := uint64(len(r.ring))
	out := make([]Entry, 0, min(r.n, size))
	for i := r.n - min(r.n, size); i < r.n; i++ {
		out = append(out, r.ring[i%size])
	}
	return out
}

// String is the entry on one line, with its duration.
func (e Entry) String() string {
	what := e.Kind.String()
	switch e.Kind {
	case AllReduce, ReduceScatter:
		what += fmt.Sprintf(" %s %s[%d]", e.Op, e.Type, e.Len)
	case AllGather, Broadcast:
		what += fmt.Sprintf(" %s[%d]", e.Type, e.Len)
	}
	state := "running since " + e.Started.Format("15:04:05.000000")
	if !e.Done.IsZero() {
		state = "took " + e.Done.Sub(e.Started).String()
	}
	if e.Err != nil {
		state = "failed after " + e.Done.Sub(e.Started).String()
	}
	count := "seq"
	if e.Enqueued {
		count = "enqueued"
	}
	return fmt.Sprintf("%s %d %s %q %s", count, e.Seq, what, e.Label, state)
}
