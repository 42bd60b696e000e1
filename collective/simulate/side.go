package simulate

import "math"

// side is one of the groups of a crowd, which share machines and know nothing of each
// other. Its ranks go through their steps, and start collectives; these are carried out
// one after the other by a second actor of each rank, a line.
//
// When a collective begins, its list is played as if every rank had a processor. Its
// actors then need that of a real one: whatever its serial part (messages, reducing)
// takes longer than that delays the collective, of all ranks that of the slowest, since
// all need something of all; and it is not over before all of it is done, also what
// runs beside links (copying bytes in and out of them).
type side struct {
	*player
	crowd   *crowd
	boxes   []*crowded // of each rank
	lines   []*actor   // of each rank
	started []int      // by collective: how many ranks have, in all steps
	starts  [][]float64
	through []int // by step: how many ranks have ended it

	begun   int     // collectives that have, in all steps
	working int     // lines that are not through with the last of them
	whole   float64 // when the last rank has begun it
	delay   float64 // what it has lost to others so far
}

func newSide(c *crowd, p *player) *side {
	for h := range p.group.stretch {
		p.group.stretch[h] = 1 // processors are shared out here
	}
	p.group.crowded = true
	s := &side{player: p, crowd: c, started: make([]int, len(p.collectives))}
	for range p.collectives {
		s.starts = append(s.starts, make([]float64, len(p.clock)))
	}
	return s
}

// join has a rank be on a machine.
func (s *side) join(rank int, m *crowded) {
	line := &actor{side: s, rank: rank}
	m.actors = append(m.actors, &actor{side: s, rank: rank, doing: toBegin}, line)
	s.boxes, s.lines = append(s.boxes, m), append(s.lines, line)
}

// prepare makes room for so many steps.
func (s *side) prepare(steps int) {
	s.steps, s.through = make([]split, steps), make([]int, steps)
	for i := range s.steps {
		s.steps[i].exposed = make([]float64, len(s.labels))
	}
	for r := range s.ratio {
		s.ratio[r] = s.draw(0, r)
	}
}

// goOn has an actor that is through with something go on to what takes time.
func (s *side) goOn(m *crowded, a *actor) {
	switch a.doing {
	case toBegin:
		if a == s.lines[a.rank] {
			s.serve(m, a)
			return
		}
	case computes, wakes:
		a.event++
	case waits:
		e := s.parts[a.part][a.event]
		a.woken = s.label[e.Collective]
		s.wait(a.rank, e.Collective, &s.steps[a.step])
		if m.wakes && s.late(m, a) {
			return
		}
		a.event++
	case lates:
		if s.wakes(a) {
			return
		}
		a.event++
	case serves:
		s.served(m, a)
		return
	case carries:
		s.carried(m, a)
		return
	}
	a.doing = idle
	for s.walk(m, a) {
		if !s.end(m, a) {
			return
		}
	}
}

// late has a rank that has waited be late, or wake, and says whether it does.
func (s *side) late(m *crowded, a *actor) bool {
	s.woken++
	if s.crowd.delay == 0 {
		return s.wakes(a)
	}
	a.begin, a.doing = m.now+s.crowd.delay, lates
	s.steps[a.step].exposed[a.woken] += s.crowd.delay
	return true
}

// wakes has a rank need what waking takes of a processor, and says whether that is any.
func (s *side) wakes(a *actor) bool {
	if s.crowd.wake == 0 {
		return false
	}
	a.left, a.doing = s.crowd.wake, wakes
	return true
}

// walk has a rank go on until it does what takes time, or, if it is true, has ended its
// step.
func (s *side) walk(m *crowded, a *actor) bool {
	for ; a.part < len(s.parts); a.part, a.event = a.part+1, 0 {
		for ; a.event < len(s.parts[a.part]); a.event++ {
			e := s.parts[a.part][a.event]
			if e.Kind == Compute {
				if a.left = e.US * s.ratio[a.rank]; a.left > 0 {
					a.doing = computes
					return false
				}
				continue
			}
			if s.over(a) > m.now {
				a.doing, s.clock[a.rank] = waits, m.now
				return false
			}
		}
		if a.part < len(s.collectives) {
			s.starts[a.part][a.rank] = m.now
			s.started[a.part]++
			s.next(m.now)
		}
	}
	return true
}

// end has a rank that has ended its step begin the next, and says whether there is one.
func (s *side) end(m *crowded, a *actor) bool {
	if s.through[a.step]++; s.through[a.step] == len(s.clock) {
		s.steps[a.step].us, s.ended = m.now-s.ended, m.now
	}
	*a = actor{side: s, rank: a.rank, step: a.step + 1}
	s.ratio[a.rank] = s.draw(a.step, a.rank)
	return a.step < len(s.steps)
}

// over is when the collective that an actor waits for is over on its rank; for ever, if
// that is not known.
func (s *side) over(a *actor) float64 {
	k := s.parts[a.part][a.event].Collective
	done := s.begun
	if s.working > 0 {
		done--
	}
	if a.step*len(s.collectives)+k >= done {
		return math.Inf(1)
	}
	return s.runs[k][a.rank].end
}

// next begins collectives that all ranks have started, if none is under way.
func (s *side) next(now float64) {
	for s.working == 0 {
		step, k := s.begun/len(s.collectives), s.begun%len(s.collectives)
		if s.started[k] < (step+1)*len(s.clock) {
			return
		}
		sum, messages, bytes := &s.steps[step], s.group.messages, s.group.bytes
		s.start(k, s.starts[k])
		sum.messages, sum.bytes = sum.messages+s.group.messages-messages, sum.bytes+s.group.bytes-bytes
		s.whole, s.delay = now, 0
		for _, r := range s.runs[k] {
			s.whole = max(s.whole, r.begin)
		}
		for r, run := range s.runs[k] {
			if run.work+run.beside > 0 {
				s.working++
				*s.lines[r] = actor{side: s, rank: r, doing: toBegin, begin: s.whole}
			}
		}
		s.begun++
		s.changed()
	}
}

// changed has all machines of the group find their next events.
func (s *side) changed() {
	for i, m := range s.boxes {
		if i == 0 || m != s.boxes[i-1] {
			s.crowd.changed(m)
		}
	}
}

// run is that of a line.
func (s *side) run(a *actor) *span { return &s.runs[(s.begun-1)%len(s.collectives)][a.rank] }

// serve has a line do the serial part of a collective.
func (s *side) serve(m *crowded, a *actor) {
	if a.left, a.doing = s.run(a).work, serves; a.left == 0 {
		s.served(m, a)
	}
}

// served: the serial part is done.
func (s *side) served(m *crowded, a *actor) {
	run := s.run(a)
	s.delay = max(s.delay, m.now-s.whole-run.work)
	if a.left, a.doing = run.beside, carries; a.left == 0 {
		s.carried(m, a)
	}
}

// carried: a line is through. With the last it is known when the collective ends.
func (s *side) carried(m *crowded, a *actor) {
	a.doing = idle
	if s.working--; s.working > 0 {
		return
	}
	runs := s.runs[(s.begun-1)%len(s.collectives)]
	for r := range runs {
		runs[r].end = max(runs[r].end+s.delay, m.now)
	}
	s.changed()
	s.next(m.now)
}

// sidesOf are as many players of the same as there are groups; the draws of each have
// names of their own.
func sidesOf(c Cluster, step Step, n Noise, seed uint64, small, large tariff) ([]*player, error) {
	var all []*player
	for i := range max(1, c.Beside) {
		p, err := newPlayer(c, step, n, seed+uint64(i)<<32)
		if err != nil {
			return nil, err
		}
		p.small, p.large = small, large
		all = append(all, p)
	}
	return all, nil
}

// together is the result of groups side by side: the steps of all of them.
func together(all []*player) Result {
	one := *all[0]
	one.steps, one.processor, one.woken = nil, 0, 0
	for _, p := range all {
		one.steps = append(one.steps, p.steps...)
		one.processor, one.woken = one.processor+p.processor, one.woken+p.woken
	}
	return one.result()
}
