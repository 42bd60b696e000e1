package host

import (
	"context"

	"ebtrain/collective/host/internal/reduce"
	"ebtrain/collective/schedule"
)

// doubling is what leaders need who exchange by recursive doubling: a message for the
// round under way, and one that is made for the next.
type doubling struct {
	rounds  []schedule.Round
	out     [2][]byte // header and sum, used in turn
	in      []byte
	sources [2][]byte
	tree    reduce.Scratch
}

// sized is buffers for messages of n bytes.
func (d *doubling) sized(n int) {
	if len(d.in) < n {
		d.in, d.out[0], d.out[1] = aligned(n), aligned(n), aligned(n)
	}
}

// pack puts n bytes of partial results behind a header. Before anything of another
// leader is added, its header is compared with ours.
func (m *mesh) pack(n int) {
	d := &m.doubling
	d.sized(headerBytes + n)
	for i := range d.out {
		m.exchange.encode((*[headerBytes]byte)(d.out[i]))
	}
	for _, r := range d.rounds {
		if r.Leaf {
			m.links[r.From].due.Add(1)
		}
	}
	copy(d.out[0][headerBytes:], m.exchange.from[:n])
}

// mine and theirs are the messages of a round.
func (d *doubling) mine(s schedule.Step) []byte   { return d.out[s.Round%2][:headerBytes+s.Bytes] }
func (d *doubling) theirs(s schedule.Step) []byte { return d.in[:headerBytes+s.Bytes] }

// postWhole has the message of a round received that is too long to be read by hear.
func (m *mesh) postWhole(s schedule.Step) {
	from, theirs := m.doubling.rounds[s.Round].From, m.doubling.theirs(s)
	m.carrier.post(from, theirs[:headerBytes])
	m.carrier.post(from, theirs[headerBytes:])
}

func (m *mesh) sendWhole(ctx context.Context, s schedule.Step) error {
	for _, o := range m.doubling.rounds[s.Round].To {
		if err := m.carrier.send(o, m.doubling.mine(s)); err != nil {
			return err
		}
	}
	return m.carrier.flush(ctx)
}

// hear reads the message of a round, and compares its header before it waits for what
// follows: of a leader that has started something else, nothing may.
func (m *mesh) hear(ctx context.Context, s schedule.Step) error {
	r, b := m.doubling.rounds[s.Round], m.doubling.theirs(s)
	l := m.links[r.From]
	posted := len(b) > schedule.Direct
	n := headerBytes
	var err error
	if posted {
		err = m.carrier.wait(ctx, r.From)
	} else {
		n, err = m.carrier.read(ctx, r.From, b, headerBytes)
	}
	if err != nil {
		return err
	}
	if r.Leaf {
		l.came.Add(1)
	}
	theirs, err := decodeHeader((*[headerBytes]byte)(b))
	if err != nil {
		return &linkError{l.rank, err}
	}
	if theirs.header != m.exchange.header {
		return differ(m.rank, m.rank, m.exchange.named, l.rank, theirs)
	}
	if posted {
		err = m.carrier.wait(ctx, r.From)
	} else {
		_, err = m.carrier.read(ctx, r.From, b[n:], len(b)-n)
	}
	return err
}

// combineWhole adds what a round has brought, and leaves the sum in the message of the
// next, or in the result. The next message is no source: an extreme begins with the
// first, on every host.
func (m *mesh) combineWhole(s schedule.Step) {
	d, x := &m.doubling, &m.exchange
	d.sources = [2][]byte{d.mine(s)[headerBytes:], d.theirs(s)[headerBytes:]}
	if d.rounds[s.Round].Less {
		d.sources[0], d.sources[1] = d.sources[1], d.sources[0]
	}
	if s.Last {
		x.job.Run(x.to[:s.Bytes/x.wide*x.narrow], d.sources[:], &d.tree)
		return
	}
	within := x.job.Within()
	within.Run(d.out[(s.Round+1)%2][headerBytes:headerBytes+s.Bytes], d.sources[:], &d.tree)
}
