package collective

import (
	"fmt"
	"sync"
	"time"
)

// Entry is one collective in the flight recorder. Done is zero while it runs.
type Entry struct {
	Seq     uint64
	Kind    Kind
	Op      Op
	Type    DType
	Len     int // elements
	Label   string
	Started time.Time
	Done    time.Time
	Err     error // nil while it runs and when it succeeded
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

// Begin records that collective seq begins to run.
func (r *Recorder) Begin(seq uint64, req Request) {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ring[r.n%uint64(len(r.ring))] = Entry{
		Seq: seq, Kind: req.Kind, Op: req.Op, Type: req.Vec.Type, Len: req.Vec.Len, Label: req.Label, Started: now,
	}
	r.n++
}

// End records that the collective begun last has ended, with err or well.
func (r *Recorder) End(err error) {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	e := &r.ring[(r.n-1)%uint64(len(r.ring))]
	e.Done, e.Err = now, err
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
	return fmt.Sprintf("seq %d %s %q %s", e.Seq, what, e.Label, state)
}
