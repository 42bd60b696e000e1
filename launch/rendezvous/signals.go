package rendezvous

import (
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// watchSignals turns the first signal into a request to stop, and gives the
// later ones their default effect; see Join about SIGHUP.
func (g *Group) watchSignals() {
	select {
	case s := <-g.signals:
		signal.Ignore(unix.SIGHUP)
		if g.conn == nil {
			signal.Ignore(unix.SIGPIPE)
		}
		signal.Stop(g.signals)
		// The launcher hears of it before this rank does, which may close the
		// connection at once: then the other ranks would never be asked.
		n, ok := s.(syscall.Signal)
		if ok && g.conn != nil {
			// An error means that the launcher is gone; receive deals with that.
			_ = g.conn.Send(Message{Kind: KindStop, Epoch: g.w.Restart, Text: unix.SignalName(n), Code: int(n)})
		}
		g.askedBy(n)
	case <-g.closed:
	}
}

// watchFlights hears SIGUSR2, which asks for the last collectives of this rank
// and, by its launcher, of the others on its node.
func (g *Group) watchFlights() {
	for {
		select {
		case <-g.usr2:
			if g.conn == nil || g.conn.Send(Message{Kind: KindFlight, Epoch: g.w.Restart}) != nil {
				g.askFlight() // there is no launcher to ask all
			}
		case <-g.closed:
			return
		}
	}
}

func (g *Group) askFlight() {
	select {
	case g.flights <- struct{}{}:
	default: // it is asked for already
	}
}

// Flights says, once for each value, that somebody wants to see the last
// collectives of this rank (SIGUSR2, to it or its launcher).
func (g *Group) Flights() <-chan struct{} { return g.flights }
