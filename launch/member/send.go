package member

import (
	"encoding/json"
	"time"

	"ebtrain/launch/rendezvous"
)

const (
	// retryInterval is the time between attempts to send to a launcher that
	// cannot be reached, or is not known yet.
	retryInterval = 50 * time.Millisecond
	// resendInterval is the time after which a message without an
	// acknowledgement is sent again.
	resendInterval = 300 * time.Millisecond
)

// line is the queue of one destination. Its goroutine sends one message at a
// time and waits for its acknowledgement: memberlist opens a connection per
// message, so two under way could overtake each other.
type line struct {
	queue []rendezvous.Message
	gone  bool          // the destination was known and is no more: it gets nothing
	seq   uint64        // number of the message at the head, from 1
	acked chan struct{} // the head has been acknowledged; never blocks the sender
}

// Send queues msg for the launcher called to, "" for the coordinator, and
// never blocks. An abort is gossiped as well, in case the direct way fails.
func (m *Member) Send(to string, msg rendezvous.Message) {
	if msg.Kind == rendezvous.KindAbort {
		if frame, err := m.seal(0, msg); err == nil && len(frame) <= maxGossip {
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
		l = &line{seq: 1, acked: make(chan struct{}, 1)}
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
		msg, seq, name := l.queue[0], l.seq, to
		if to == "" {
			name = m.coord
		}
		m.mu.Unlock()
		sent, found := m.try(name, seq, msg)
		known = known || found
		spoken, lost := m.lifeOf(name)
		m.mu.Lock()
		l.gone = known && !found && !spoken || lost
		if l.gone && to != "" {
			l.queue = nil
		}
		m.mu.Unlock()
		wait := retryInterval
		if sent {
			wait = resendInterval
		}
		select {
		case <-l.acked:
		case <-m.done:
			return
		case <-time.After(wait):
		}
	}
}

// try sends msg once.
func (m *Member) try(name string, seq uint64, msg rendezvous.Message) (sent, found bool) {
	n := m.find(name)
	if name == "" || n == nil {
		return false, false
	}
	frame, err := m.seal(seq, msg)
	if err != nil {
		m.cfg.Log.Error("a message cannot be sent", "kind", msg.Kind, "error", err)
		m.acknowledged(name, seq) // it never will be
		return true, true
	}
	if err := m.list.SendReliable(n, frame); err != nil {
		m.cfg.Log.Debug("send to another launcher", "to", name, "error", err)
		return false, true
	}
	return true, true
}

// acknowledged drops the head of the line to the launcher called name, if it
// is message seq.
func (m *Member) acknowledged(name string, seq uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.outbound[name]
	if l == nil && name == m.coord {
		l = m.outbound[""]
	}
	if l == nil || l.seq != seq || len(l.queue) == 0 {
		return
	}
	l.queue = l.queue[1:]
	l.seq++
	select {
	case l.acked <- struct{}{}:
	default:
	}
}

// sendAcks acknowledges what has arrived, in packets that may be lost: the
// message then comes again, and is acknowledged again.
func (m *Member) sendAcks() {
	for {
		m.mu.Lock()
		for len(m.toAck) == 0 && !m.isDone() {
			m.changed.Wait()
		}
		if m.isDone() {
			m.mu.Unlock()
			return
		}
		a := m.toAck[0]
		m.toAck = m.toAck[1:]
		m.mu.Unlock()
		n := m.find(a.to)
		frame, err := json.Marshal(envelope{From: m.cfg.Name, Ack: a.seq})
		if err == nil && n != nil {
			err = m.list.SendBestEffort(n, frame)
		}
		if err != nil {
			m.cfg.Log.Debug("acknowledge", "to", a.to, "error", err)
		}
	}
}
