package member

import (
	"time"

	"ebtrain/launch/rendezvous"
)

// retryInterval is the time between attempts to send to a launcher that cannot
// be reached, or is not known yet.
const retryInterval = 50 * time.Millisecond

// line is the queue of one destination. Its goroutine sends one message at a
// time, so that they arrive in order.
type line struct {
	queue []rendezvous.Message
	gone  bool // the destination was known and is no more: it gets nothing
}

// Send queues msg for the launcher called to, "" for the coordinator, and
// never blocks. An abort is gossiped as well, in case the direct way fails.
func (m *Member) Send(to string, msg rendezvous.Message) {
	if msg.Kind == rendezvous.KindAbort {
		if frame, err := m.seal(msg); err == nil && len(frame) <= maxGossip {
			m.gossip.QueueBroadcast(broadcast(frame))
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closing {
		return
	}
	l := m.outbound[to]
	if l == nil {
		l = &line{}
		m.outbound[to] = l
		m.wg.Go(func() { m.transmit(to, l) })
	}
	l.queue = append(l.queue, msg)
	m.changed.Broadcast()
}

// queued reports whether any message waits to be sent. m.mu is held.
func (m *Member) queued() bool {
	for _, l := range m.outbound {
		if len(l.queue) > 0 && !l.gone {
			return true
		}
	}
	return false
}

// transmit sends the messages of a line until Close.
func (m *Member) transmit(to string, l *line) {
	known := false
	for {
		m.mu.Lock()
		for len(l.queue) == 0 && !m.isDone() {
			m.changed.Wait()
		}
		if m.isDone() {
			m.mu.Unlock()
			return
		}
		msg, name := l.queue[0], to
		if to == "" {
			name = m.coord
		}
		m.mu.Unlock()
		sent, found := m.try(name, msg)
		known = known || found
		m.mu.Lock()
		l.gone = known && !found
		if sent || l.gone && to != "" {
			l.queue = l.queue[1:]
		}
		m.mu.Unlock()
		if !sent {
			select {
			case <-m.done:
				return
			case <-time.After(retryInterval):
			}
		}
	}
}

// try sends msg once.
func (m *Member) try(name string, msg rendezvous.Message) (sent, found bool) {
	n := m.find(name)
	if name == "" || n == nil {
		return false, false
	}
	frame, err := m.seal(msg)
	if err != nil {
		m.cfg.Log.Error("a message cannot be sent", "kind", msg.Kind, "error", err)
		return true, true // and never will be
	}
	if err := m.list.SendReliable(n, frame); err != nil {
		m.cfg.Log.Debug("send to another launcher", "to", name, "error", err)
		return false, true
	}
	return true, true
}
