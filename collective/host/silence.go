package host

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// looksAtData is how often, in the time for which data may stay unacknowledged, it is
// looked whether any have.
const looksAtData = 4

// watchData ends the group when what was sent to another leader has not been acknowledged
// for limit, though there is room for it: a firewall has forgotten the connection, or a link
// on the way takes smaller packets only and says nothing. TCP would go on for a quarter of
// an hour, and nobody else notices: the control connection and the launchers' say little,
// which passes.
func (m *mesh) watchData(a *alarm, limit time.Duration, over <-chan struct{}) {
	tick := time.NewTicker(limit / looksAtData)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-a.raised:
			return
		case <-tick.C:
		}
		for _, o := range m.others {
			if m.carrier.unanswered(o) >= limit {
				a.raise(a.gone(m.links[o].rank, fmt.Sprintf("it has acknowledged no data of rank %d for %v, though it has room for them: what lies between the hosts drops them, as a firewall, or a link that takes smaller packets only (MTU)", m.rank, limit), nil))
				return
			}
		}
	}
}

// unanswered is for how long the other end of a connection has acknowledged nothing, if
// something has been sent again since then that it has room for; else 0.
func unanswered(fd int) time.Duration {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil || info.Unacked == 0 || info.Retransmits == 0 || info.Snd_wnd == 0 {
		return 0
	}
	return time.Duration(info.Last_ack_recv) * time.Millisecond
}

func (t *threads) unanswered(o int) (d time.Duration) {
	c, ok := t.ends[o].conn.(syscall.Conn)
	if !ok {
		return 0
	}
	_ = onFD(c, func(fd int) error { d = unanswered(fd); return nil }) // it fails once c is closed
	return d
}

func (p *pump) unanswered(o int) time.Duration {
	w := p.flows[o].wire
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return 0
	}
	return unanswered(w.fd)
}
