package plan

// slot is a region of memory with the steps, first to last, during which it
// is in use.
type slot struct {
	first, last int
	bytes       int
	bucket      bool
	offset      int
	takenAt     int // the last step whose result took the slot over
}

// memory is the state of the assignment of places to values.
type memory struct {
	*ends
	slot  []int // by root: its slot, -1 if it needs none
	slots []slot
}

// Allocate gives every value its place, after the device has set the Scratch
// of the steps.
func (p *Plan) Allocate() { p.AllocateWithin(0) }

// AllocateWithin is Allocate if that takes at most so many bytes; 0 is any. It says
// how many it takes, and where they are too many that may be the least that any places
// of the values take, of which many have none then: to find them takes longer than all
// that comes before.
func (p *Plan) AllocateWithin(most int64) (need int64, ok bool) {
	m := &memory{ends: p.ends()}
	m.makeSlots()
	if need := m.least(); most > 0 && need > most {
		return need, false
	}
	m.allocate()
	need = int64(p.ArenaBytes) + int64(p.BucketBytes)
	return need, most == 0 || need <= most
}

// least is the size of what is in use at once, where that is largest, of both memories.
func (m *memory) least() (sum int64) {
	for _, bucket := range []bool{false, true} {
		change := make([]int64, len(m.Steps)+2) // of what is in use, from the step before
		for _, s := range m.slots {
			if s.bucket == bucket {
				change[s.first] += int64(s.bytes)
				change[s.last+1] -= int64(s.bytes)
			}
		}
		var use, top int64
		for _, c := range change {
			use += c
			top = max(top, use)
		}
		sum += top
	}
	return sum
}

func (m *memory) allocate() {
	p := m.Plan
	p.ArenaBytes = place(m.slots, false)
	p.BucketBytes = place(m.slots, true)
	for v := range p.Values {
		if s := m.slot[v]; s >= 0 {
			p.Values[v].Offset = m.slots[s].offset
		}
	}
	n := len(m.slots) - len(p.Steps)
	for i := range p.Steps {
		p.Steps[i].ScratchAt = m.slots[n+i].offset
	}
}

// makeSlots makes a slot for each root in planned memory, shared where a step
// works in place, and then one for the scratch memory of each step.
func (m *memory) makeSlots() {
	m.slot = make([]int, len(m.Values))
	for v := range m.Values {
		m.slot[v] = -1
		val := &m.Values[v]
		if val.Root == v && m.lives[v].made != never && val.Space == Bucket {
			m.slot[v] = m.newSlot(v)
		}
	}
	for i, s := range m.Steps {
		for _, v := range s.Out {
			r := m.Values[v].Root
			if m.Values[r].Space != Arena || m.slot[r] >= 0 {
				continue
			}
			if m.slot[r] = m.takeOver(i, r); m.slot[r] < 0 {
				m.slot[r] = m.newSlot(r)
			}
		}
	}
	for i, s := range m.Steps {
		scratch := slot{first: i, last: i, bytes: roundUp(s.Scratch)}
		if m.small(s.Scratch) {
			scratch.first, scratch.last = 0, len(m.Steps)
		}
		m.slots = append(m.slots, scratch)
	}
}

// small says whether an array is kept apart: its memory is in use all the time.
func (m *memory) small(bytes int) bool { return bytes <= m.o.Apart }

func (m *memory) newSlot(r int) int {
	m.slots = append(m.slots, slot{
		first: m.lives[r].made, last: m.lives[r].last(), bytes: roundUp(m.Values[r].Bytes()),
		bucket: m.Values[r].Space == Bucket, takenAt: never,
	})
	if s := &m.slots[len(m.slots)-1]; !s.bucket && m.small(m.Values[r].Bytes()) {
		s.first, s.last = 0, len(m.Steps)
	}
	return len(m.slots) - 1
}

// takeOver is the slot of an operand that dies at step i and whose place r,
// made by the step, can take; -1 if there is none.
func (m *memory) takeOver(i, r int) int {
	for _, v := range m.Steps[i].In {
		in := m.Values[v].Root
		if m.Values[in].Space != Arena || m.slot[in] < 0 {
			continue
		}
		if s := &m.slots[m.slot[in]]; s.last == i && s.takenAt != i && m.inPlace(i, in, r) {
			s.last, s.takenAt = m.lives[r].last(), i
			return m.slot[in]
		}
	}
	return -1
}
