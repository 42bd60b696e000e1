package member

import (
	"errors"
	"net/netip"
	"syscall"
	"time"

	"github.com/hashicorp/memberlist"

	"ebtrain/launch/rendezvous"
)

// keep runs the link to the coordinator, over new connections where one breaks,
// until the coordinator is gone.
func (m *Member) keep(c *secure, l *link, has uint64) {
	for {
		err := l.run(c, has, func(msg rendezvous.Message) { m.push(rendezvous.Inbound{From: l.peer, Msg: msg}) })
		for err != nil {
			if m.ctx.Err() != nil {
				return
			}
			m.cfg.Log.Debug("link to the coordinator", "error", err)
			if how, gone := m.gone(l.peer, err); gone {
				m.lose(rendezvous.Inbound{From: l.peer, How: how})
				return
			}
			if c, has, err = m.redial(); err != nil {
				select {
				case <-m.ctx.Done():
				case <-time.After(redialInterval):
				}
			}
		}
	}
}

// gone says whether a link to the coordinator has ended for good, and how: it has said
// farewell, its port is closed, or another launcher is where it was.
func (m *Member) gone(coordinator string, err error) (how rendezvous.Loss, gone bool) {
	switch {
	case errors.Is(err, errFarewell):
		m.hasLeft(coordinator)
		return rendezvous.Unreachable, true
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, errAnother), foreign(err):
		return rendezvous.Killed, true
	}
	return how, false
}

// redial is a new connection of the link to the coordinator, and the number of the last
// message which that has received.
func (m *Member) redial() (c *secure, has uint64, err error) {
	if c, err = m.dial(m.ctx, m.at); err != nil {
		return nil, 0, err
	}
	if _, has, err = m.introduce(c, false); err != nil {
		_ = c.Close()
		return nil, 0, err
	}
	return c, has, nil
}

// rejoin makes the coordinator a member here, again and again: the first packets
// may be lost, and partitions do not heal by themselves.
func (m *Member) rejoin() {
	at := netip.AddrPortFrom(m.at.Addr().WithZone(""), m.at.Port()).String() // see transport.zoned
	for m.ctx.Err() == nil {
		m.mu.Lock()
		name := m.coord
		m.mu.Unlock()
		if m.find(name) == nil {
			if _, err := m.list.Join([]string{at}); err != nil {
				m.cfg.Log.Debug("join the members", "error", err)
			}
		}
		select {
		case <-m.ctx.Done():
		case <-time.After(rejoinInterval):
		}
	}
}

// find is the member called name, nil if there is none.
func (m *Member) find(name string) *memberlist.Node {
	for _, n := range m.list.Members() {
		if n.Name == name {
			return n
		}
	}
	return nil
}
