package rendezvous

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/launch/env"
)

// oneRequest is the time within which signals are one request: timeout(1) sends its own
// to the program, and at once again to the program's group. Programs without a group have
// cliflag.OneRequest, which may not be imported here: it comes with flags.
const oneRequest = 100 * time.Millisecond

// watchSignals turns the first signal into a request to stop, and gives those after
// oneRequest their default effect; see Join about SIGHUP, and Node.Interrupt about a batch
// system's SIGTERM.
func (g *Group) watchSignals() {
	select {
	case s := <-g.signals:
		signal.Ignore(unix.SIGHUP)
		if env.InBatchJob(os.Environ()) {
			signal.Ignore(unix.SIGTERM)
		}
		if g.conn == nil {
			signal.Ignore(unix.SIGPIPE)
		}
		// The launcher hears of it before this rank does, which may close the
		// connection at once: then the other ranks would never be asked.
		n, ok := s.(syscall.Signal)
		if ok && g.conn != nil {
			// An error means that the launcher is gone; receive deals with that.
			_ = g.conn.Send(Message{Kind: KindStop, Epoch: g.w.Restart, Text: unix.SignalName(n), Code: int(n)})
		}
		g.askedBy(n)
		select {
		case <-time.After(oneRequest):
			signal.Stop(g.signals)
		case <-g.closed:
		}
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
