package member

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/hashicorp/memberlist"

	"ebtrain/launch/rendezvous"
)

// maxAbort is the largest abort that also goes in a packet, in bytes.
const maxAbort = 1000

// leftWait is what the last messages of a launcher that left may take.
const leftWait = 500 * time.Millisecond

// packet is a message beside the link, the news, gossiped, that its sender leaves, or
// nothing: a sign of life.
type packet struct {
	From   string          `json:"from"`
	Leaves bool            `json:"leaves,omitempty"`
	Msg    json.RawMessage `json:"msg,omitempty"`
}

// packet holds a message without blobs.
func (m *Member) packet(msg rendezvous.Message) (packet, error) {
	body, err := json.Marshal(msg)
	return packet{From: m.cfg.Name, Msg: body}, err
}

// accept takes a packet.
func (m *Member) accept(b []byte) error {
	var p packet
	if err := json.Unmarshal(b, &p); err != nil { // copies what it keeps
		return fmt.Errorf("malformed packet: %w", err)
	}
	m.mu.Lock()
	if l := m.lives[p.From]; p.Leaves && m.places[p.From] != nil {
		m.parted = time.Now()
	} else if l != nil && !p.Leaves {
		m.heard(p.From, l)
	}
	m.mu.Unlock()
	if len(p.Msg) == 0 {
		return nil
	}
	var msg rendezvous.Message
	if err := json.Unmarshal(p.Msg, &msg); err != nil {
		return fmt.Errorf("malformed packet: %w", err)
	}
	if err := msg.Check(); err != nil {
		return err
	}
	if !m.ours(p.From) {
		return fmt.Errorf("it is of %s, which has no link with this one", p.From)
	}
	m.push(rendezvous.Inbound{From: p.From, Msg: msg})
	return nil
}

// ours says whether a launcher is one of this job's that messages come from: to the
// coordinator from those that have met it, by a link or a life line, of which either may be
// first where packets are lost; to others from the coordinator. A packet is
// proof of the key and the label, which may be another job's, too, or those of one that
// is over.
func (m *Member) ours(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cfg.Coordinator {
		return m.lives[name] != nil || m.links[name] != nil
	}
	return name != "" && name == m.coord
}

// delegate receives memberlist's calls, none of which may block or call
// memberlist back.
type delegate struct{ m *Member }

func (d *delegate) NodeMeta(int) []byte { return nil }

func (d *delegate) NotifyMsg(b []byte) {
	if err := d.m.accept(b); err != nil {
		d.m.cfg.Log.Warn("a message of another launcher was dropped", "error", err)
	}
}

func (d *delegate) GetBroadcasts(overhead, limit int) [][]byte {
	return d.m.gossip.GetBroadcasts(overhead, limit)
}

func (d *delegate) LocalState(bool) []byte { return nil }

func (d *delegate) MergeRemoteState([]byte, bool) {}

// NotifyJoin copies what it is given: memberlist writes it again whenever the member
// says something new of itself, and only now, under memberlist's lock, nobody writes.
// Whoever comes back from elsewhere joins again.
func (d *delegate) NotifyJoin(n *memberlist.Node) {
	at := *n
	d.m.alive.Add(1)
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	d.m.places[n.Name] = &at
	if l := d.m.lives[n.Name]; l == nil || !l.left { // gossip may not know yet that it has left
		delete(d.m.lost, n.Name)
	}
}

// NotifyLeave tells of a member that died or left, which memberlist does not tell apart
// (n.State is not kept up). One that left says so over its link, after its last messages:
// that gets time to arrive first. Of one that died the
// coordinator makes sure, and all make sure of the coordinator, with more signs to go by;
// until the job is complete, links and join's time-out are enough.
func (d *delegate) NotifyLeave(n *memberlist.Node) {
	d.m.alive.Add(-1)
	in := rendezvous.Inbound{From: n.Name}
	d.m.mu.Lock()
	l := d.m.lives[n.Name]
	left, judged := l != nil && l.left, d.m.cfg.Coordinator || n.Name == d.m.coord
	d.m.mu.Unlock()
	switch {
	case left:
		time.AfterFunc(leftWait, func() { d.m.lose(in) })
	case d.m.formed.Load() == 0:
	case judged:
		d.m.lookAfter(n.Name)
	default:
		d.m.lose(in)
	}
}

func (d *delegate) NotifyUpdate(*memberlist.Node) {}

// broadcast is a gossiped message; none replaces another.
type broadcast []byte

func (b broadcast) Invalidates(memberlist.Broadcast) bool { return false }
func (b broadcast) Message() []byte                       { return b }
func (b broadcast) Finished()                             {}
