package supervise

import (
	"sync"

	"ebtrain/launch/rendezvous"
)

// outbox sends messages to one rank from a goroutine of its own, so that a
// rank that does not read (it is stopped in a debugger) never holds up the
// launcher. It has no bound: a rank is sent few messages.
type outbox struct {
	mu     sync.Mutex
	cond   *sync.Cond
	queue  []rendezvous.Message
	closed bool
}

func newOutbox() *outbox {
	o := &outbox{}
	o.cond = sync.NewCond(&o.mu)
	return o
}

func (o *outbox) put(m rendezvous.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queue = append(o.queue, m)
	o.cond.Signal()
}

func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.cond.Signal()
}

// run sends what is put until close or the first error, which means that the
// rank has ended or closed its group.
func (o *outbox) run(c *rendezvous.Conn) {
	for {
		o.mu.Lock()
		for len(o.queue) == 0 && !o.closed {
			o.cond.Wait()
		}
		if len(o.queue) == 0 {
			o.mu.Unlock()
			return
		}
		m := o.queue[0]
		o.queue = o.queue[1:]
		o.mu.Unlock()
		if c.Send(m) != nil {
			return
		}
	}
}
