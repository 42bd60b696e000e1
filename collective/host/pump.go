package host

import (
	"context"
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pump is a carrier without threads: whoever waits reads and writes all wires
// himself. At first he looks again and again, lets others run in between, and then
// sleeps until there is something to do.
type pump struct {
	flows []*flow // by host; nil at this one
	polls []unix.PollFd
	asked []*flow // of polls

	courtesy courtesy
}

// flow is what goes over one wire.
type flow struct {
	link *link
	wire *wire

	in             [posts][]byte // buffers in turn
	posted, filled int           // how many, ever
	taken          int           // those waited for
	got            int           // bytes in the buffer that is being filled
	out            []byte        // what is not yet sent

	dry, full bool // there was nothing to read, no room to write
}

// posts is how many buffers are posted to a link at a time: a header and the data of
// both halves of an all-reduce, and some to spare.
const posts = 8

// burst is how many bytes are written at a time, before what has come is read.
const burst = 256 << 10

func newPump(links []*link, wires []*wire, c courtesy) *pump {
	p := &pump{courtesy: c, flows: make([]*flow, len(links))}
	for o, l := range links {
		if l != nil {
			p.flows[o] = &flow{link: l, wire: wires[o]}
		}
	}
	return p
}

func (p *pump) heeds() bool { return true }

func (p *pump) post(o int, b []byte) {
	f := p.flows[o]
	f.in[f.posted%posts] = b
	f.posted++
}

func (p *pump) wait(ctx context.Context, o int) error {
	f := p.flows[o]
	f.taken++
	return p.drive(ctx, func() bool { return f.filled >= f.taken })
}

func (p *pump) read(ctx context.Context, o int, b []byte, least int) (int, error) {
	f := p.flows[o]
	n := 0
	for n < least {
		got, err := f.read(b[n:])
		if errors.Is(err, errAgain) {
			err = p.await(ctx, f)
		}
		if err != nil {
			return n, err
		}
		n += got
	}
	return n, nil
}

func (p *pump) send(o int, b []byte) error {
	f := p.flows[o]
	f.out = b
	_, err := f.write()
	return err
}

func (p *pump) flush(ctx context.Context) error {
	return p.drive(ctx, func() bool {
		for _, f := range p.flows {
			if f != nil && len(f.out) > 0 {
				return false
			}
		}
		return true
	})
}

// drive reads and writes until done.
func (p *pump) drive(ctx context.Context, done func() bool) error {
	for !done() {
		moved := false
		for _, f := range p.flows {
			if f == nil {
				continue
			}
			m, err := f.move()
			if err != nil {
				return err
			}
			moved = moved || m
		}
		if moved {
			continue
		}
		if err := p.await(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// move reads and writes once, if it can, and says whether it has.
func (f *flow) move() (moved bool, err error) {
	if len(f.out) > 0 && !f.full {
		if moved, err = f.write(); err != nil {
			return moved, err
		}
	}
	if f.filled == f.posted || f.dry {
		return moved, nil
	}
	b := f.in[f.filled%posts]
	n, err := f.read(b[f.got:])
	if err != nil {
		if errors.Is(err, errAgain) {
			err = nil
		}
		return moved, err
	}
	if f.got += n; f.got == len(b) {
		f.link.filled(b)
		f.in[f.filled%posts] = nil
		f.filled, f.got = f.filled+1, 0
	}
	return true, nil
}

func (f *flow) read(b []byte) (int, error) {
	n, err := f.wire.read(b)
	if f.dry = errors.Is(err, errAgain); f.dry {
		return 0, errAgain
	}
	if err != nil {
		return 0, &linkError{f.link.rank, err}
	}
	f.link.hears()
	return n, nil
}

func (f *flow) write() (bool, error) {
	n, err := f.wire.write(f.out[:min(len(f.out), burst)])
	if f.full = errors.Is(err, errAgain); f.full {
		return false, nil
	}
	if err != nil {
		return false, &linkError{f.link.rank, err}
	}
	f.out = f.out[n:]
	return true, nil
}

// await returns when one of the wires that there is something to do for may be ready:
// those of flows with something posted or to send, and of extra, which is read.
func (p *pump) await(ctx context.Context, extra *flow) error {
	p.ask(extra)
	var err error
	if p.courtesy.until(func() bool {
		var ready bool
		ready, err = p.poll(0)
		return ready || err != nil
	}) {
		return err
	}
	nap := -1
	if ctx.Done() != nil {
		nap = int(shortNap.Milliseconds())
	}
	for {
		if ready, err := p.poll(nap); ready || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// ask fills polls.
func (p *pump) ask(extra *flow) {
	p.polls, p.asked = p.polls[:0], p.asked[:0]
	for _, f := range p.flows {
		if f == nil {
			continue
		}
		events := int16(unix.POLLRDHUP) // of a cut
		if f == extra || f.filled < f.posted {
			events |= unix.POLLIN
		}
		if len(f.out) > 0 {
			events |= unix.POLLOUT
		}
		if events != unix.POLLRDHUP {
			p.polls, p.asked = append(p.polls, unix.PollFd{Fd: int32(f.wire.fd), Events: events}), append(p.asked, f)
		}
	}
}

// poll looks, or waits for so many milliseconds, whether one of those that were asked
// is ready.
func (p *pump) poll(ms int) (bool, error) {
	var n int
	var err error
	if ms == 0 {
		n, err = look(p.polls)
	} else {
		n, err = unix.Poll(p.polls, ms)
	}
	if errors.Is(err, unix.EINTR) {
		return false, nil
	}
	if err != nil || n == 0 {
		return false, err
	}
	for i, f := range p.asked {
		if r := p.polls[i].Revents; r != 0 {
			f.dry = f.dry && r&^unix.POLLOUT == 0
			f.full = f.full && r&^unix.POLLIN == 0
		}
	}
	return true, nil
}

// look is poll(2) that does not wait. Go is not told of it: of a thread that it takes to be
// in the kernel it looks after every 50 us, and what wakes threads that often may have a
// processor for itself (DESIGN.md, "Nobody wakes threads").
func look(fds []unix.PollFd) (int, error) {
	var soon unix.Timespec
	n, _, e := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(unsafe.SliceData(fds))), uintptr(len(fds)), uintptr(unsafe.Pointer(&soon)), 0, 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}

// giveUp: nobody writes to what is posted but who calls it.
func (p *pump) giveUp() {
	p.cut()
	for _, f := range p.flows {
		if f != nil {
			f.in, f.filled, f.taken, f.out = [posts][]byte{}, f.posted, f.posted, nil
		}
	}
}

func (p *pump) fill(int) {}
func (p *pump) over()    {}

func (p *pump) cut() {
	for _, f := range p.flows {
		if f != nil {
			f.wire.cut()
		}
	}
}

func (p *pump) close() error {
	var err error
	for _, f := range p.flows {
		if f != nil {
			err = errors.Join(err, f.wire.close())
		}
	}
	return err
}
