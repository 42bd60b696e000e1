package plan

import (
	"container/heap"
	"fmt"
	"slices"
)

// scheduler orders units. A unit is ready when the units that make its inputs
// have run; of the ready ones the one with the least key runs, but those that
// would have to wait for a collective only when there are no others.
type scheduler struct {
	l       *lowering
	units   []unit
	maker   map[int]int // value → unit that makes it
	missing []int       // by unit: inputs' units that have not run
	users   [][]int
	started []bool // by unit: a collective that has started
	waited  []bool // by unit: a collective that has been waited for
	ready   queue  // need no wait
	blocked queue  // need one
	steps   []Step
	pending []int // collectives started and not waited for, in order
	number  int
}

func (l *lowering) schedule(units []unit) []Step {
	s := &scheduler{l: l, units: units, maker: map[int]int{}, missing: make([]int, len(units)),
		users: make([][]int, len(units)), started: make([]bool, len(units)), waited: make([]bool, len(units))}
	for i, u := range units {
		for _, v := range u.out {
			s.maker[v] = i
		}
	}
	for i := range units {
		for _, d := range s.deps(i) {
			s.missing[i]++
			s.users[d] = append(s.users[d], i)
		}
	}
	s.ready.key, s.blocked.key = units, units
	for i := range units {
		if s.missing[i] == 0 {
			s.release(i)
		}
	}
	for s.next() {
	}
	s.finish()
	if n := s.ready.Len() + s.blocked.Len(); n > 0 {
		panic(fmt.Sprintf("plan: %d units depend on each other", n))
	}
	return s.steps
}

// deps are the units that make the inputs of unit i, each once.
func (s *scheduler) deps(i int) []int {
	var deps []int
	for _, v := range s.units[i].in {
		if m, ok := s.made(v); ok && !slices.Contains(deps, m) {
			deps = append(deps, m)
		}
	}
	return deps
}

// made is the unit that makes v, seen through aliases.
func (s *scheduler) made(v int) (int, bool) {
	for {
		if m, ok := s.maker[v]; ok {
			return m, true
		}
		if v = s.l.plan.Values[v].parent; v < 0 {
			return 0, false
		}
	}
}

func (s *scheduler) isStart(i int) bool { _, ok := s.units[i].op.(Start); return ok }

// release puts a unit whose inputs' units have run into a queue. A collective
// starts at once.
func (s *scheduler) release(i int) {
	if s.isStart(i) {
		s.start(i)
		return
	}
	for _, d := range s.deps(i) {
		if s.isStart(d) && !s.waited[d] {
			heap.Push(&s.blocked, i)
			return
		}
	}
	heap.Push(&s.ready, i)
}

func (s *scheduler) start(i int) {
	u := &s.units[i]
	op := u.op.(Start)
	op.Number = s.number
	s.number++
	u.op = op
	s.started[i] = true
	s.pending = append(s.pending, i)
	s.steps = append(s.steps, Step{Op: op, In: u.in, Scope: u.scope})
	s.done(i)
}

func (s *scheduler) done(i int) {
	for _, j := range s.users[i] {
		if s.missing[j]--; s.missing[j] == 0 {
			s.release(j)
		}
	}
}

func (s *scheduler) next() bool {
	q := &s.ready
	if q.Len() == 0 {
		q = &s.blocked
	}
	if q.Len() == 0 {
		return false
	}
	i := heap.Pop(q).(int)
	waited := false
	for _, d := range s.deps(i) {
		if s.isStart(d) && !s.waited[d] {
			s.wait(d)
			waited = true
		}
	}
	u := s.units[i]
	s.steps = append(s.steps, Step{Op: u.op, In: u.in, Out: u.out, Scope: u.scope})
	if waited {
		again := s.blocked.units
		s.blocked.units = nil
		slices.Sort(again)
		for _, j := range again {
			s.release(j)
		}
	}
	s.done(i)
	return true
}

func (s *scheduler) wait(i int) {
	u := s.units[i]
	op := u.op.(Start)
	s.waited[i] = true
	s.pending = slices.DeleteFunc(s.pending, func(j int) bool { return j == i })
	s.steps = append(s.steps, Step{Op: Wait{op.AllReduce, op.Number}, Out: u.out, Scope: u.scope})
}

// finish waits for every collective and assigns the variables.
func (s *scheduler) finish() {
	for len(s.pending) > 0 {
		s.wait(s.pending[0])
	}
}

// queue is a heap of units by key, then number.
type queue struct {
	key   []unit
	units []int
}

func (q *queue) Len() int { return len(q.units) }
func (q *queue) Less(i, j int) bool {
	a, b := q.units[i], q.units[j]
	if q.key[a].key != q.key[b].key {
		return q.key[a].key < q.key[b].key
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
