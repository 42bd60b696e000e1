package member

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/hashicorp/memberlist"

	"ebtrain/launch/rendezvous"
)

// coordinatorMeta marks the coordinator among the members.
const coordinatorMeta = "coordinator"

// maxGossip is the largest message that is also gossiped, in bytes.
const maxGossip = 1000

// envelope is what travels between launchers.
type envelope struct {
	From string          `json:"from"`
	Msg  json.RawMessage `json:"msg"`
}

func (m *Member) seal(msg rendezvous.Message) ([]byte, error) {
	body, err := rendezvous.Encode(msg)
	if err != nil {
		return nil, err
	}
	return json.Marshal(envelope{m.cfg.Name, body})
}

func open(frame []byte) (rendezvous.Inbound, error) {
	var e envelope
	if err := json.Unmarshal(frame, &e); err != nil {
		return rendezvous.Inbound{}, fmt.Errorf("malformed envelope: %w", err)
	}
	msg, err := rendezvous.Decode(e.Msg)
	return rendezvous.Inbound{From: e.From, Msg: msg}, err
}

// delegate receives memberlist's calls, none of which may block or call
// memberlist back.
type delegate struct{ m *Member }

func (d *delegate) NodeMeta(int) []byte {
	if d.m.cfg.Coordinator {
		return []byte(coordinatorMeta)
	}
	return nil
}

func (d *delegate) NotifyMsg(frame []byte) {
	in, err := open(frame) // copies what it keeps
	if err != nil {
		d.m.cfg.Log.Warn("a message of another launcher was dropped", "error", err)
		return
	}
	d.m.push(in)
}

func (d *delegate) GetBroadcasts(overhead, limit int) [][]byte {
	return d.m.gossip.GetBroadcasts(overhead, limit)
}

func (d *delegate) LocalState(bool) []byte { return nil }

func (d *delegate) MergeRemoteState([]byte, bool) {}

func (d *delegate) NotifyJoin(n *memberlist.Node) {
	d.m.alive.Add(1)
	if string(n.Meta) == coordinatorMeta {
		d.m.mu.Lock()
		d.m.coord = n.Name
		d.m.changed.Broadcast()
		d.m.mu.Unlock()
	}
}

// NotifyLeave tells of a member that died or left. One that left has sent its
// last messages over another connection: they get time to arrive first.
func (d *delegate) NotifyLeave(n *memberlist.Node) {
	d.m.alive.Add(-1)
	in := rendezvous.Inbound{From: n.Name, Lost: true}
	if n.State == memberlist.StateLeft {
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
