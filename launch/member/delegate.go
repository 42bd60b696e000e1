package member

import (
	"encoding/json"
	"fmt"
	"net"
	"time"

	"github.com/hashicorp/memberlist"

	"ebtrain/launch/rendezvous"
)

// coordinatorMeta marks the coordinator among the members; behind it is the port
// of its life lines.
const coordinatorMeta = "coordinator"

// maxGossip is the largest message that is also gossiped, in bytes.
const maxGossip = 1000

// envelope is what travels between launchers: a message, or the
// acknowledgement of one.
type envelope struct {
	From string          `json:"from"`
	Seq  uint64          `json:"seq,omitempty"` // number of the message on its way, from 1; 0 if it is gossip
	Ack  uint64          `json:"ack,omitempty"` // number of the message acknowledged
	Msg  json.RawMessage `json:"msg,omitempty"`
}

// ack is an acknowledgement to be sent.
type ack struct {
	to  string
	seq uint64
}

func (m *Member) seal(seq uint64, msg rendezvous.Message) ([]byte, error) {
	body, err := rendezvous.Encode(msg)
	if err != nil {
		return nil, err
	}
	return json.Marshal(envelope{From: m.cfg.Name, Seq: seq, Msg: body})
}

// accept takes a frame: it queues a new message for the inbox, and
// acknowledges it also if it is not new.
func (m *Member) accept(frame []byte) error {
	var e envelope
	if err := json.Unmarshal(frame, &e); err != nil { // copies what it keeps
		return fmt.Errorf("malformed envelope: %w", err)
	}
	if e.Ack > 0 {
		m.acknowledged(e.From, e.Ack)
		return nil
	}
	msg, err := rendezvous.Decode(e.Msg)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.Seq > 0 {
		m.toAck = append(m.toAck, ack{e.From, e.Seq})
		m.changed.Broadcast()
		if e.Seq <= m.received[e.From] {
			return nil
		}
		m.received[e.From] = e.Seq
	}
	m.arrived = append(m.arrived, rendezvous.Inbound{From: e.From, Msg: msg})
	m.changed.Broadcast()
	return nil
}

// delegate receives memberlist's calls, none of which may block or call
// memberlist back.
type delegate struct{ m *Member }

func (d *delegate) NodeMeta(int) []byte {
	if d.m.cfg.Coordinator {
		_, port, _ := net.SplitHostPort(d.m.lifeLine.Addr().String())
		return []byte(coordinatorMeta + " " + port)
	}
	return nil
}

func (d *delegate) NotifyMsg(frame []byte) {
	if err := d.m.accept(frame); err != nil {
		d.m.cfg.Log.Warn("a message of another launcher was dropped", "error", err)
	}
}

func (d *delegate) GetBroadcasts(overhead, limit int) [][]byte {
	return d.m.gossip.GetBroadcasts(overhead, limit)
}

func (d *delegate) LocalState(bool) []byte { return nil }

func (d *delegate) MergeRemoteState([]byte, bool) {}

func (d *delegate) NotifyJoin(n *memberlist.Node) {
	d.m.alive.Add(1)
	port, coordinator := lifePort(n.Meta)
	if !coordinator {
		return
	}
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	first := d.m.coord != n.Name
	d.m.coord = n.Name
	d.m.changed.Broadcast()
	if addr := lifeAddr(n.Addr, port); first && addr != "" {
		d.m.wg.Go(func() { d.m.holdLife(n.Name, addr) })
	}
}

// NotifyLeave tells of a member that died or left. One that left has sent its
// last messages over another connection: they get time to arrive first. One that
// has a life line is looked after there, with more signs to go by.
func (d *delegate) NotifyLeave(n *memberlist.Node) {
	d.m.alive.Add(-1)
	in := rendezvous.Inbound{From: n.Name, Lost: true}
	d.m.mu.Lock()
	l := d.m.lives[n.Name]
	watched, left := l != nil && !l.left && !l.lost, l != nil && l.left
	d.m.mu.Unlock()
	switch {
	case watched && n.State != memberlist.StateLeft:
		return
	case n.State == memberlist.StateLeft || left:
		time.AfterFunc(leftWait, func() { d.m.push(in) })
		return
	}
	d.m.push(in)
}

func (d *delegate) NotifyUpdate(*memberlist.Node) {}

// push queues in for the inbox.
func (m *Member) push(in rendezvous.Inbound) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.arrived = append(m.arrived, in)
	m.changed.Broadcast()
}

// deliver moves what has arrived to the inbox, in order.
func (m *Member) deliver() {
	for {
		m.mu.Lock()
		for len(m.arrived) == 0 && !m.isDone() {
			m.changed.Wait()
		}
		if m.isDone() {
			m.mu.Unlock()
			return
		}
		in := m.arrived[0]
		m.arrived = m.arrived[1:]
		m.mu.Unlock()
		select {
		case m.inbox <- in:
		case <-m.done:
			return
		}
	}
}

func (m *Member) isDone() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// broadcast is a gossiped message; none replaces another.
type broadcast []byte

func (b broadcast) Invalidates(memberlist.Broadcast) bool { return false }
func (b broadcast) Message() []byte                       { return b }
func (b broadcast) Finished()                             {}
