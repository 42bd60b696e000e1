package plan

import (
	"container/heap"
	"fmt"
	"slices"
)

// scheduler orders units, which are fused nodes and others. A unit is ready
// when the units that make its inputs have run; of the ready ones the one that
// is due first runs, but those that would have to wait for a collective only
// when there are no others, or when it has surely come and others are to start from it.
type scheduler struct {
	*Plan
	units    []node
	maker    []int   // by value: the unit that makes it, -1 if none
	deps     [][]int // by unit: the units that make its inputs, each once
	users    [][]int // by unit: the units that it is a dep of
	missing  []int   // by unit: deps that have not run
	unwaited []int   // by unit: deps that are collectives not waited for
	waited   []bool  // by unit: a collective that has been waited for
	ran      []bool
	ready    queue // need no wait
	blocked  queue // need one, or have needed one
	relays   []int // blocked, and due at once
	steps    []Step
	started  []int // collectives, in order

	computed float64   // in all units that have run
	arrived  float64   // computed by when all that has started has come
	over     []float64 // by unit: the same of one collective
}

func schedule(p *Plan, units []node) []Step {
	n := len(units)
	s := &scheduler{Plan: p, units: units, maker: slices.Repeat([]int{-1}, len(p.Values)), deps: make([][]int, n), users: make([][]int, n),
		missing: make([]int, n), unwaited: make([]int, n), waited: make([]bool, n), ran: make([]bool, n), over: make([]float64, n)}
	for i, u := range units {
		for _, v := range u.out {
			s.maker[v] = i
		}
	}
	s.connect()
	due := s.times()
	s.ready.due, s.blocked.due = due, due
	for i := range units {
		if s.missing[i] == 0 {
			s.release(i)
		}
	}
	for s.next() {
	}
	for _, i := range s.started {
		s.wait(i)
	}
	if i := slices.Index(s.ran, false); i >= 0 {
		panic(fmt.Sprintf("plan: unit %d (%v) waits for itself", i, units[i].op))
	}
	return s.steps
}

// connect finds who depends on whom.
func (s *scheduler) connect() {
	last := slices.Repeat([]int{-1}, len(s.units)) // by unit: the last one that it is a dep of
	for i, u := range s.units {
		for _, v := range u.in {
			m := s.made(v)
			if m < 0 || last[m] == i {
				continue
			}
			last[m] = i
			s.deps[i] = append(s.deps[i], m)
			s.users[m] = append(s.users[m], i)
			s.missing[i]++
			if s.isStart(m) {
				s.unwaited[i]++
			}
		}
	}
}

// made is the unit that makes v, seen through aliases, -1 if none does.
func (s *scheduler) made(v int) int {
	for v >= 0 && s.maker[v] < 0 {
		v = s.Values[v].parent
	}
	if v < 0 {
		return -1
	}
	return s.maker[v]
}

func (s *scheduler) isStart(i int) bool { _, ok := s.units[i].op.(Start); return ok }

// release puts a unit whose inputs' units have run into a queue. A collective
// starts at once.
func (s *scheduler) release(i int) {
	switch {
	case s.isStart(i):
		s.start(i)
	case s.unwaited[i] > 0:
		heap.Push(&s.blocked, i)
		if s.blocked.due[i] == atOnce {
			s.relays = append(s.relays, i)
		}
	default:
		heap.Push(&s.ready, i)
	}
}

func (s *scheduler) start(i int) {
	u := &s.units[i]
	op := u.op.(Start)
	op.Number = len(s.started)
	u.op = op
	s.started = append(s.started, i)
	s.steps = append(s.steps, Step{Op: op, In: u.in, Scope: u.scope})
	s.sent(i)
	s.done(i)
}

func (s *scheduler) done(i int) {
	s.ran[i] = true
	for _, j := range s.users[i] {
		if s.missing[j]--; s.missing[j] == 0 {
			s.release(j)
		}
	}
}

// next runs a unit, and says whether there was one.
func (s *scheduler) next() bool {
	i := s.relay()
	if i < 0 {
		q := &s.ready
		if q.Len() == 0 {
			q = &s.blocked
		}
		if q.Len() == 0 {
			return false
		}
		i = heap.Pop(q).(int)
	}
	if !s.ran[i] { // or it was in another queue, too
		s.run(i)
	}
	return true
}

// run runs a unit, once it has waited for the collectives that it needs.
func (s *scheduler) run(i int) {
	for _, d := range s.deps[i] {
		s.wait(d)
	}
	u := s.units[i]
	s.steps = append(s.steps, Step{Op: u.op, In: u.in, Out: u.out, Scope: u.scope})
	s.computed += s.work(u)
	s.done(i)
}

// wait waits for unit i if it is a collective that nobody has waited for.
func (s *scheduler) wait(i int) {
	op, ok := s.units[i].op.(Start)
	if !ok || s.waited[i] {
		return
	}
	s.waited[i] = true
	s.steps = append(s.steps, Step{Op: Wait{op.Collective, op.Number}, Out: s.units[i].out, Scope: s.units[i].scope})
	for _, j := range s.users[i] {
		if s.unwaited[j]--; s.unwaited[j] == 0 && s.missing[j] == 0 { // it has not run: it would have waited
			heap.Push(&s.ready, j)
		}
	}
}

// queue is a heap of units by when they are due, then number.
type queue struct {
	due   []int // by unit
	units []int
}

func (q *queue) Len() int { return len(q.units) }
func (q *queue) Less(i, j int) bool {
	a, b := q.units[i], q.units[j]
	if q.due[a] != q.due[b] {
		return q.due[a] < q.due[b]
	}
	return a < b
}
func (q *queue) Swap(i, j int) { q.units[i], q.units[j] = q.units[j], q.units[i] }
func (q *queue) Push(x any)    { q.units = append(q.units, x.(int)) }
func (q *queue) Pop() any {
	n := len(q.units) - 1
	x := q.units[n]
	q.units = q.units[:n]
	return x
}
