package host

import (
	"math/bits"

	"ebtrain/collective/host/internal/reduce"
)

// A step of recursive doubling: this host sends what it has to some hosts, and adds
// what it gets from one.
type step struct {
	to   []int
	from int
	less bool // from's sum is that of lower hosts: it comes first
	leaf bool // from's sum is its own alone, so it waits for nobody before it sends
}

// stepsOf are the steps of a host among lo to hi (exclusive). After them each has
// the sum of all, in the order of the tree of package reduce, which cuts after the
// largest power of two below their number: first the hosts on either side of the
// cut have the sum of their side, then each gets that of the other side. There
// may be fewer hosts on the right; then each of them sends to several.
//
// Who has come through its steps has heard, if not directly, from all hosts: each
// sends only what those before it have sent to it.
func stepsOf(host, lo, hi int) []step {
	n := hi - lo
	if n == 1 {
		return nil
	}
	left := 1 << (bits.Len(uint(n-1)) - 1)
	right, cut := n-left, lo+left
	if host < cut {
		at := host - lo
		s := step{from: cut + at%right, leaf: right == 1}
		if at < right {
			s.to = []int{cut + at}
		}
		return append(stepsOf(host, lo, cut), s)
	}
	at := host - cut
	s := step{from: lo + at, less: true, leaf: left == 1}
	for to := lo + at; to < cut; to += right {
		s.to = append(s.to, to)
	}
	return append(stepsOf(host, cut, hi), s)
}

// direct is the size of a message up to which whoever carries out the collective
// reads it itself, when it has sent its own: every connection has room for two of
// them that nobody has read, and there are no more, so that is no cycle of waiting.
// Larger ones are received by the link's goroutine, posted before anything is sent.
const direct = 8<<10 + headerBytes

// doubling is how leaders exchange what is small: in as many steps as there are
// levels of the tree, where direct exchange sends a header and two slices from
// each to each.
type doubling struct {
	steps   []step
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

// double reduces partial over all hosts and leaves the reduction in result on
// each. Before anything of another leader is added, its header is compared with h;
// nothing is left to compare or reduce of empty vectors. The types are those of
// reduceScatter.
func (m *mesh) double(h named, j reduce.Job, result, partial []byte) error {
	d := &m.doubling
	d.sized(headerBytes + len(partial))
	for i := range d.out {
		h.encode((*[headerBytes]byte)(d.out[i]))
	}
	for _, s := range d.steps {
		if s.leaf {
			m.links[s.from].due.Add(1)
		}
	}
	mine := d.out[0][:headerBytes+len(partial)]
	copy(mine[headerBytes:], partial)
	within := reduce.Job{From: j.From, To: j.From, Op: j.Op}
	for i, s := range d.steps {
		theirs := d.in[:len(mine)]
		if len(mine) > direct {
			m.links[s.from].post(theirs[:headerBytes])
			m.links[s.from].post(theirs[headerBytes:])
		}
		if err := m.sendAll(s.to, mine); err != nil {
			return err
		}
		if err := m.hear(h, s, theirs); err != nil {
			return err
		}
		if len(partial) == 0 {
			continue
		}
		d.sources = [2][]byte{mine[headerBytes:], theirs[headerBytes:]}
		if s.less {
			d.sources[0], d.sources[1] = d.sources[1], d.sources[0]
		}
		if i == len(d.steps)-1 {
			j.Run(result, d.sources[:], &d.tree)
			break
		}
		mine = d.out[(i+1)%2][:len(mine)] // no source: an extreme begins with the first, on every host
		within.Run(mine[headerBytes:], d.sources[:], &d.tree)
	}
	return nil
}

func (m *mesh) sendAll(to []int, message []byte) error {
	for _, o := range to {
		if _, err := m.links[o].data.Write(message); err != nil {
			return &linkError{m.links[o].rank, err}
		}
	}
	return nil
}

// hear reads the message of a step into b, and compares its header before it waits
// for what follows: of a leader that has started something else, nothing may.
func (m *mesh) hear(h named, s step, b []byte) error {
	l, posted := m.links[s.from], len(b) > direct
	n := headerBytes
	var err error
	if posted {
		err = l.wait()
	} else {
		n, err = l.read(b, headerBytes)
	}
	if err != nil {
		return &linkError{l.rank, err}
	}
	if s.leaf {
		l.came.Add(1)
	}
	theirs, err := decodeHeader((*[headerBytes]byte)(b))
	if err != nil {
		return &linkError{l.rank, err}
	}
	if theirs.header != h.header {
		return differ(m.rank, m.rank, h, l.rank, theirs)
	}
	if posted {
		err = l.wait()
	} else {
		_, err = l.read(b[n:], len(b)-n)
	}
	if err != nil {
		return &linkError{l.rank, err}
	}
	return nil
}
