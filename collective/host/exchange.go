package host

import (
	"fmt"
	"unsafe"

	"ebtrain/collective/host/internal/reduce"
)

// linkError is trouble on the connection to another leader.
type linkError struct {
	rank int
	err  error
}

func (e *linkError) Error() string { return fmt.Sprintf("connection to rank %d: %v", e.rank, e.err) }
func (e *linkError) Unwrap() error { return e.err }

// differ is what rank finds out: rank a and rank b have not started the same.
func differ(rank, a int, ours named, b int, theirs named) error {
	text := fmt.Sprintf("rank %d started %s, rank %d started %s", a, ours, b, theirs)
	return found(rank, codeMismatch, b, text)
}

// ask sends the header of a collective to all leaders. The answers are
// compared when they are needed, so that small data can travel behind them.
func (m *mesh) ask(h named) error {
	m.own, m.asked = h, true
	h.encode(&m.hello)
	for _, o := range m.others {
		l := m.links[o]
		l.due.Add(1)
		l.post(l.theirs[:])
		if _, err := l.data.Write(m.hello[:]); err != nil {
			return &linkError{l.rank, err}
		}
	}
	return nil
}

// agree waits for the other leaders' headers and compares them with ours.
func (m *mesh) agree() error {
	if !m.asked {
		return nil
	}
	m.asked = false
	for _, o := range m.others {
		l := m.links[o]
		if err := l.wait(); err != nil {
			return &linkError{l.rank, err}
		}
		h, err := decodeHeader(&l.theirs)
		if err != nil {
			return &linkError{l.rank, err}
		}
		if h.header != m.own.header {
			return differ(m.rank, m.rank, m.own, l.rank, h)
		}
	}
	return nil
}

// swap sends out[h] to host h and fills in[h] from it, for all others. Empty
// buffers are not sent. All receives are posted before anything is sent, so
// leaders that send to each other never wait for one another.
func (m *mesh) swap(out, in [][]byte) error {
	if err := m.send(out, in); err != nil {
		return err
	}
	return m.received(in)
}

// send is the first half of swap, up to where the others' headers are compared.
func (m *mesh) send(out, in [][]byte) error {
	m.post(in)
	if err := m.write(out); err != nil {
		return err
	}
	return m.agree()
}

// post has in filled from the other leaders.
func (m *mesh) post(in [][]byte) {
	for _, o := range m.others {
		if len(in[o]) > 0 {
			m.links[o].post(in[o])
		}
	}
}

// write sends out to the other leaders.
func (m *mesh) write(out [][]byte) error {
	for _, o := range m.others {
		if len(out[o]) == 0 {
			continue
		}
		if _, err := m.links[o].data.Write(out[o]); err != nil {
			return &linkError{m.links[o].rank, err}
		}
	}
	return nil
}

// received waits until in, which was posted, is filled.
func (m *mesh) received(in [][]byte) error {
	for _, o := range m.others {
		if len(in[o]) == 0 {
			continue
		}
		if err := m.links[o].wait(); err != nil {
			return &linkError{m.links[o].rank, err}
		}
	}
	return nil
}

// reduceScatter reduces partial over all hosts and leaves elements
// [cuts[h], cuts[h+1]) of the reduction in result on host h. The reduction's
// elements have type j.To in result and its accumulator in partial.
func (m *mesh) reduceScatter(j reduce.Job, result, partial []byte, cuts []int) error {
	wide := j.From.Size()
	lo, hi := cuts[m.host], cuts[m.host+1]
	out, in := m.scratch.lists(len(m.links))
	for _, o := range m.others {
		out[o] = partial[cuts[o]*wide : cuts[o+1]*wide]
		in[o] = m.scratch.buffer(o, (hi-lo)*wide)
	}
	if err := m.swap(out, in); err != nil {
		return err
	}
	in[m.host] = partial[lo*wide : hi*wide]
	narrow := j.To.Size()
	j.Run(result[lo*narrow:hi*narrow], in, &m.scratch.tree)
	return nil
}

// allGather sends elements [cuts[h], cuts[h+1]) of buf from host h to all.
func (m *mesh) allGather(buf []byte, size int, cuts []int) error {
	out, in := m.scratch.lists(len(m.links))
	for _, o := range m.others {
		out[o] = buf[cuts[m.host]*size : cuts[m.host+1]*size]
		in[o] = buf[cuts[o]*size : cuts[o+1]*size]
	}
	return m.swap(out, in)
}

// broadcast sends buf from host root to all: first a piece to each, which all
// then gather, so that no host sends it all more than twice.
func (m *mesh) broadcast(buf []byte, root int) error {
	cuts := m.scratch.shares(len(buf), len(m.links))
	out, in := m.scratch.lists(len(m.links))
	if m.host == root {
		for _, o := range m.others {
			out[o] = buf[cuts[o]:cuts[o+1]]
		}
	} else {
		in[root] = buf[cuts[m.host]:cuts[m.host+1]]
	}
	if err := m.swap(out, in); err != nil {
		return err
	}
	out, in = m.scratch.lists(len(m.links))
	for _, o := range m.others {
		if o != root {
			out[o] = buf[cuts[m.host]:cuts[m.host+1]]
		}
		if m.host != root {
			in[o] = buf[cuts[o]:cuts[o+1]]
		}
	}
	return m.swap(out, in)
}

// netScratch is memory that exchanges between hosts reuse.
type netScratch struct {
	out, in [][]byte
	late    [][]byte // posted and not waited for
	cuts    []int
	bufs    [][]byte
	tree    reduce.Scratch
}

// shares are the bounds of n elements cut into equal parts, one for each host.
func (s *netScratch) shares(n, hosts int) []int {
	s.cuts = append(s.cuts[:0], 0)
	for h := range hosts {
		_, hi := share(n, hosts, h)
		s.cuts = append(s.cuts, hi)
	}
	return s.cuts
}

// byRanks are the bounds, in units of u elements, of each host's ranks in the
// order host by host.
func (s *netScratch) byRanks(t topology, u int) []int {
	s.cuts = append(s.cuts[:0], 0)
	for h, ranks := range t.hosts {
		s.cuts = append(s.cuts, s.cuts[h]+len(ranks)*u)
	}
	return s.cuts
}

func (s *netScratch) lists(hosts int) (out, in [][]byte) {
	if s.out == nil {
		s.out, s.in, s.late = make([][]byte, hosts), make([][]byte, hosts), make([][]byte, hosts)
	}
	clear(s.out)
	clear(s.in)
	return s.out, s.in
}

// keep remembers what was posted.
func (s *netScratch) keep(posted [][]byte) { copy(s.late, posted) }

// buffer is n bytes to receive from host h.
func (s *netScratch) buffer(h, n int) []byte {
	for len(s.bufs) <= h {
		s.bufs = append(s.bufs, nil)
	}
	if len(s.bufs[h]) < n {
		s.bufs[h] = aligned(n)
	}
	return s.bufs[h][:n]
}

// aligned is at least n bytes of memory, aligned for every type.
func aligned(n int) []byte {
	words := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
}
