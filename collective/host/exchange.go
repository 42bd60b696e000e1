package host

import (
	"context"
	"fmt"
	"unsafe"

	"ebtrain/collective/host/internal/reduce"
	"ebtrain/collective/schedule"
)

// linkError is trouble on the connection to another leader.
type linkError struct {
	rank int
	err  error
}

func (e *linkError) Error() string { return fmt.Sprintf("connection to rank %d: %v", e.rank, e.err) }
func (e *linkError) Unwrap() error { return e.err }

// differ is what rank finds out: rank a and rank b have not started the same, or one of
// them waits for its device.
func differ(rank, a int, ours named, b int, theirs named) error {
	switch {
	case ours.calls():
		return hung(rank, a, ours, b, theirs)
	case theirs.calls():
		return hung(rank, b, theirs, a, ours)
	}
	text := fmt.Sprintf("rank %d started %s, rank %d started %s", a, ours, b, theirs)
	return found(rank, codeMismatch, b, text)
}

// hung is that rank late has called the roll, but another has gone on: they do not disagree.
func hung(rank, late int, call named, other int, begun named) *failure {
	return found(rank, codeAborted, late, fmt.Sprintf("rank %d has come to %s, and rank %d to %s: both are alive, so the device of rank %d or a link to it hangs",
		late, call.label, other, begun, late))
}

// exchange is what leaders exchange at a time: a chunk, of which each host has a
// slice. Its elements come from partial results and end as results, which may be the
// same memory.
type exchange struct {
	named               // of the collective under way
	aimed        bool   // all that follows is known
	at           int    // byte of the vector, or of every part, where the chunk begins
	from, to     []byte // partial results, results
	wide, narrow int    // bytes of an element of either, or of what is cut
	cuts         []int  // elements [cuts[h], cuts[h+1]) are the slice of host h; in a grid it has its own
	job          reduce.Job
	root         int // the host that has Pieces
}

// addend and result are slices of host h.
func (x *exchange) addend(h int) []byte { return x.before(x.cuts[h], x.cuts[h+1]) }
func (x *exchange) result(h int) []byte { return x.after(x.cuts[h], x.cuts[h+1]) }

// before and after are elements of partial results and of results.
func (x *exchange) before(lo, hi int) []byte { return x.from[lo*x.wide : hi*x.wide] }
func (x *exchange) after(lo, hi int) []byte  { return x.to[lo*x.narrow : hi*x.narrow] }

// outgoing is what this host sends to host o.
func (m *mesh) outgoing(what schedule.What, o int) []byte {
	switch x := &m.exchange; {
	case what >= schedule.RowAddends:
		return m.outgoingInGrid(what, o)
	case what == schedule.Addends:
		return x.addend(o)
	case what == schedule.Pieces:
		return x.result(o)
	case what == schedule.Rest && o == x.root:
		return nil
	default:
		return x.result(m.host)
	}
}

// incoming is where what host o sends will lie.
func (m *mesh) incoming(what schedule.What, o int) []byte {
	switch x := &m.exchange; {
	case what >= schedule.RowAddends:
		return m.incomingInGrid(what, o)
	case what == schedule.Addends:
		return m.scratch.buffer(o, (x.cuts[m.host+1]-x.cuts[m.host])*x.wide)
	case what == schedule.Pieces && o == x.root:
		return x.result(m.host)
	case what == schedule.Pieces:
		return nil
	default:
		return x.result(o)
	}
}

// begin is what all steps of a collective need.
func (m *mesh) begin(h named) { m.exchange = exchange{named: h} }

// do carries out a step between leaders. All receives are posted before anything is
// sent, so leaders that send to each other never wait for one another.
func (m *mesh) do(ctx context.Context, s schedule.Step) error {
	whole := s.What == schedule.Whole
	switch s.Do {
	case schedule.Ask:
		return m.ask(ctx)
	case schedule.Agree:
		return m.agree(ctx)
	case schedule.Pack:
		m.pack(s.Bytes)
	case schedule.Post:
		if whole {
			m.postWhole(s)
		} else {
			m.post(s.What)
		}
	case schedule.Send:
		if whole {
			return m.sendWhole(ctx, s)
		}
		return m.send(ctx, s.What)
	case schedule.Wait:
		if whole {
			return m.hear(ctx, s)
		}
		return m.received(ctx, s.What)
	case schedule.Combine:
		m.combineAny(s)
	}
	return nil
}

func (m *mesh) combineAny(s schedule.Step) {
	switch s.What {
	case schedule.Whole:
		m.combineWhole(s)
	case schedule.RowAddends:
		m.combineRow()
	case schedule.ColumnAddends:
		m.combineColumns()
	default:
		m.combine()
	}
}

// ask sends the header of a collective to all leaders. The answers are
// compared when they are needed, so that small data can travel behind them.
func (m *mesh) ask(ctx context.Context) error {
	m.exchange.encode(&m.hello)
	for _, o := range m.others {
		l := m.links[o]
		l.due.Add(1)
		m.carrier.post(o, l.theirs[:])
		if err := m.carrier.send(o, m.hello[:]); err != nil {
			return err
		}
	}
	return m.carrier.flush(ctx)
}

// agree waits for the other leaders' headers and compares them with ours.
func (m *mesh) agree(ctx context.Context) error {
	for _, o := range m.others {
		l := m.links[o]
		if err := m.carrier.wait(ctx, o); err != nil {
			return err
		}
		h, err := decodeHeader(&l.theirs)
		if err != nil {
			return &linkError{l.rank, err}
		}
		if h.header != m.exchange.header {
			return differ(m.rank, m.rank, m.exchange.named, l.rank, h)
		}
	}
	return nil
}

// post has what the other leaders send filled in. Empty slices are not sent.
func (m *mesh) post(what schedule.What) {
	in := m.scratch.posted(what)
	for _, o := range m.senders(what) {
		if in[o] = m.incoming(what, o); len(in[o]) > 0 {
			m.carrier.post(o, in[o])
		}
	}
}

// send sends to the other leaders.
func (m *mesh) send(ctx context.Context, what schedule.What) error {
	for _, o := range m.receivers(what) {
		b := m.outgoing(what, o)
		if len(b) == 0 {
			continue
		}
		if err := m.carrier.send(o, b); err != nil {
			return err
		}
	}
	return m.carrier.flush(ctx)
}

// received waits until what was posted is filled.
func (m *mesh) received(ctx context.Context, what schedule.What) error {
	in := m.scratch.posted(what)
	for _, o := range m.senders(what) {
		if len(in[o]) == 0 {
			continue
		}
		if err := m.carrier.wait(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// combine reduces this host's slice of all hosts.
func (m *mesh) combine() {
	x, in := &m.exchange, m.scratch.posted(schedule.Addends)
	in[m.host] = x.addend(m.host)
	x.job.Run(x.result(m.host), in, &m.scratch.tree)
}

// netScratch is memory that exchanges between hosts reuse.
type netScratch struct {
	addends, results [][]byte // posted, by host
	cuts             []int
	bufs             [][]byte
	tree             reduce.Scratch
}

func newNetScratch(hosts int) netScratch {
	return netScratch{addends: make([][]byte, hosts), results: make([][]byte, hosts)}
}

// posted are the buffers to fill. Addends of a chunk are posted before the results of
// the one before have come. Nobody meets another in a row and in a column.
func (s *netScratch) posted(what schedule.What) [][]byte {
	switch what {
	case schedule.Addends, schedule.RowAddends, schedule.ColumnAddends:
		return s.addends
	}
	return s.results
}

// shares are the bounds of n elements cut into equal parts, one for each host.
func (s *netScratch) shares(n, hosts int) []int {
	s.cuts = append(s.cuts[:0], 0)
	for h := range hosts {
		_, hi := schedule.Share(n, hosts, h)
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
