package host

import (
	"fmt"
	"sync/atomic"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/host/internal/reduce"
)

// Least does what an all-reduce of small vectors, up to schedule.Small, does at least on
// one host, for measuring how far from it one is: each rank copies its vector to where the others
// read it, raises a flag in a cache line of its own, looks at those of the others and
// sums for itself. There is no header, no queue, no record, and nobody is woken. It
// belongs to one goroutine of each rank, and all ranks call Run as often.
type Least struct {
	comm   *Comm
	flags  []*atomic.Uint32 // of each rank: how often it has come
	stages [2][][]byte      // of each rank, used in turn
	turn   uint32
}

// leastNap is how long a rank sleeps that has looked in vain as long as one that waits in a
// barrier. Who yields without end may keep a processor for seconds from those that it
// waits for, and from launchers: Linux 6.18 forgets what a group of threads has had when
// one of them wakes another.
const leastNap = 50 * time.Microsecond

// NewLeast is for vectors of up to n bytes, in memory from Alloc. All ranks call it, as
// they do Alloc.
func (c *Comm) NewLeast(n int) (*Least, error) {
	if !c.peers.topo.oneHost() || n < 0 {
		return nil, fmt.Errorf("%w: the least of %d bytes on %d hosts, expected 0 or more on one", collective.ErrInvalid, n, len(c.peers.topo.hosts))
	}
	const line = 128 // two, which processors fetch together
	half := roundUp(n, line)
	if _, err := c.Alloc(line + 2*half); err != nil {
		return nil, err
	}
	l := &Least{comm: c}
	s := c.meeting.segments[len(c.meeting.segments)-1]
	for r := range c.meeting.views {
		part := s.of(r)
		l.flags = append(l.flags, wordAt(part))
		for h := range l.stages {
			l.stages[h] = append(l.stages[h], part[line+h*half:][:n])
		}
	}
	return l, nil
}

// Run replaces v by the sum of those of all ranks. If v is empty, they only meet.
func (l *Least) Run(v collective.Vec) error {
	m, data, stages := l.comm.meeting, v.Bytes(), l.stages[l.turn&1]
	local := m.topo.local
	if len(data) > len(stages[local]) {
		return fmt.Errorf("%w: the least of %d bytes, expected at most %d", collective.ErrInvalid, len(data), len(stages[local]))
	}
	copy(stages[local], data)
	if err := l.meet(); err != nil || len(data) == 0 {
		return err
	}
	for r, s := range stages {
		m.views[r] = s[:len(data)]
	}
	reduce.Job{From: v.Type, To: v.Type, Op: collective.Sum}.Run(data, m.views, &m.scratch)
	return nil
}

// meet returns when all ranks have come to it, or the group has ended. Ranks that find
// themselves on one processor step aside, as in a barrier.
func (l *Least) meet() error {
	a, cpu := l.comm.meeting.arena, -1
	l.turn++
	l.flags[a.local].Store(l.turn)
	for _, f := range l.flags {
		for i := 0; int32(f.Load()-l.turn) < 0; i++ {
			if i < a.spins {
				continue
			}
			if i == a.spins && i > 0 {
				cpu = a.sit(l.turn)
			}
			if f := l.comm.alarm.failure(); f != nil {
				return f
			}
			if i < a.spins+looks {
				a.courtesy.pause(i)
			} else {
				time.Sleep(leastNap)
			}
		}
	}
	if cpu >= 0 {
		a.stand(l.turn, cpu)
	}
	return nil
}
