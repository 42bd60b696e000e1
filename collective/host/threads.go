package host

import (
	"context"
	"errors"
	"net"
)

// threads is a carrier with a goroutine for each connection, which reads. Contexts
// are looked at nowhere: collectives are run by one that does not end.
type threads struct {
	ends []*end // by host; nil at this one
}

// end is this leader's end of a connection.
type end struct {
	link   *link
	conn   net.Conn
	recv   chan []byte // buffers to fill, in order
	done   chan error  // one for each buffer
	posted int         // buffers that are not waited for
}

func newThreads(links []*link, conns []net.Conn) *threads {
	t := &threads{ends: make([]*end, len(links))}
	for o, l := range links {
		if l != nil {
			t.ends[o] = &end{link: l, conn: conns[o], recv: make(chan []byte, posts), done: make(chan error, posts)}
		}
	}
	return t
}

func (t *threads) heeds() bool { return false }

func (t *threads) post(o int, b []byte) {
	t.ends[o].posted++
	t.ends[o].recv <- b
}

func (t *threads) wait(_ context.Context, o int) error { return t.ends[o].wait() }

func (e *end) wait() error {
	err := <-e.done
	e.posted--
	return err
}

func (t *threads) read(_ context.Context, o int, b []byte, least int) (int, error) {
	return t.ends[o].read(b, least)
}

func (e *end) read(b []byte, least int) (n int, err error) {
	for n < least {
		got, err := e.conn.Read(b[n:])
		if n += got; got > 0 {
			e.link.hears()
		}
		if err != nil && n < least {
			return n, &linkError{e.link.rank, err}
		}
	}
	return n, nil
}

func (t *threads) send(o int, b []byte) error {
	if _, err := t.ends[o].conn.Write(b); err != nil {
		return &linkError{t.ends[o].link.rank, err}
	}
	return nil
}

func (t *threads) flush(context.Context) error { return nil }

func (t *threads) giveUp() {
	t.cut()
	for _, e := range t.ends {
		for e != nil && e.posted > 0 {
			_ = e.wait() // it is given up because of another error
		}
	}
}

func (t *threads) fill(o int) {
	e := t.ends[o]
	for b := range e.recv {
		_, err := e.read(b, len(b))
		if err == nil {
			e.link.filled(b)
		}
		e.done <- err
	}
}

func (t *threads) over() {
	for _, e := range t.ends {
		if e != nil {
			close(e.recv)
		}
	}
}

func (t *threads) cut() {
	for _, e := range t.ends {
		if e != nil {
			interrupt(e.conn)
		}
	}
}

func (t *threads) close() error {
	var err error
	for _, e := range t.ends {
		if e != nil {
			err = errors.Join(err, e.conn.Close())
		}
	}
	return err
}
