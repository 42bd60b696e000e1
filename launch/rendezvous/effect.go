package rendezvous

import (
	"fmt"
	"strings"
	"time"
)

// TimerKind names what a timer is for.
type TimerKind string

const (
	TimerJoin      TimerKind = "join"      // all nodes must have registered
	TimerRemind    TimerKind = "remind"    // say who is missing
	TimerLate      TimerKind = "late"      // who is to hear why the job has ended must have come
	TimerCommit    TimerKind = "commit"    // this node must have been given its place
	TimerAck       TimerKind = "ack"       // all nodes must have acknowledged
	TimerSettle    TimerKind = "settle"    // a better cause may still arrive
	TimerRegister  TimerKind = "register"  // say again that this node is there
	TimerAnswer    TimerKind = "answer"    // the coordinator must have decided
	TimerDoubt     TimerKind = "doubt"     // who came too late has replaced nobody
	TimerWindow    TimerKind = "window"    // there are enough nodes; more may still come
	TimerGrow      TimerKind = "grow"      // who has come since may be taken in
	TimerRegroup   TimerKind = "regroup"   // workers asked to stop, to be started again, must be gone
	TimerFlight    TimerKind = "flight"    // what the ranks did last must have come
	TimerKill      TimerKind = "kill"      // workers told of an abort must be gone
	TimerGone      TimerKind = "gone"      // workers that were killed must be gone
	TimerGrace     TimerKind = "grace"     // workers asked to stop must be gone
	TimerStrangers TimerKind = "strangers" // workers asked to stop must have joined
)

// Timer is a timer of one epoch. Timers are never canceled: one that no longer
// matters has no effect when it expires.
type Timer struct {
	Kind   TimerKind
	Epoch  int
	Flight int // of a TimerFlight: which table it is for, of which an epoch may have several
}

// Effect is what the machine wants done. Effects are carried out in order.
// The concrete types are Send, SetTimer, StartWorkers, Tell, Signal, Abandon,
// TakeFlight, ShowFlight, Note and Finish.
type Effect interface{ String() string }

// Send sends Msg to the launcher called To; "" is the coordinator.
type Send struct {
	To  string
	Msg Message
}

// SetTimer asks for the expiry of Timer after After.
type SetTimer struct {
	Timer Timer
	After time.Duration
}

// StartWorkers starts this node's ranks.
type StartWorkers struct {
	Epoch int
	Job   string
	Nodes []NodeInfo
	Self  int // index of this node in Nodes
}

// Tell sends Msg to the worker of local rank Local; to all if it is -1.
type Tell struct {
	Local int
	Msg   Message
}

// Signal sends signal Number to the process groups of the local ranks Locals.
type Signal struct {
	Locals []int
	Number int
}

// Abandon waits no longer for the local ranks Locals, which were killed and do not end.
type Abandon struct{ Locals []int }

// TakeFlight asks for what the ranks of this node did last in an epoch, dead or
// alive; the answer is given to Node.Flown. Flight is the coordinator's number of the table.
type TakeFlight struct {
	Epoch  int
	Flight uint64
}

// ShowFlight shows what ranks did last, and who lags. Records is the folder which
// the ranks have named, or "".
type ShowFlight struct {
	Ranks   []Flown
	Silent  []string // nodes that have not answered
	Cause   *Cause   // of the end of their epoch; nil if somebody has just asked
	Records string
}

// Note is a line for the user.
type Note struct{ Text string }

// Finish ends the launcher with Code. All workers of the node are gone, or abandoned.
// Cause is nil if all ranks ended well.
type Finish struct {
	Code  int
	Cause *Cause
}

func (e Send) String() string {
	to := e.To
	if to == "" {
		to = "coordinator"
	}
	return fmt.Sprintf("send %s: %s", to, e.Msg)
}

func (e SetTimer) String() string {
	return fmt.Sprintf("timer %s e%d after %v", e.Timer.Kind, e.Timer.Epoch, e.After)
}

func (e StartWorkers) String() string {
	base, n := Base(e.Nodes, e.Self), e.Nodes[e.Self].Nproc
	return fmt.Sprintf("start e%d ranks %d-%d of %d, job %s", e.Epoch, base, base+n-1, Size(e.Nodes), e.Job)
}

func (e Tell) String() string {
	if e.Local < 0 {
		return fmt.Sprintf("tell all: %s", e.Msg)
	}
	return fmt.Sprintf("tell local %d: %s", e.Local, e.Msg)
}

func (e Signal) String() string { return fmt.Sprintf("signal %d to locals %v", e.Number, e.Locals) }

func (e Abandon) String() string { return fmt.Sprintf("abandon locals %v", e.Locals) }

func (e TakeFlight) String() string { return fmt.Sprintf("take flight e%d", e.Epoch) }

func (e ShowFlight) String() string {
	text := "show flight"
	for _, f := range e.Ranks {
		text += fmt.Sprintf(" %d", f.Rank)
	}
	if len(e.Silent) > 0 {
		text += ", silent: " + strings.Join(e.Silent, ", ")
	}
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

func (e Note) String() string { return "note: " + e.Text }

func (e Finish) String() string {
	if e.Cause == nil {
		return fmt.Sprintf("finish %d", e.Code)
	}
	return fmt.Sprintf("finish %d: %s", e.Code, e.Cause.Error())
}

// String is the message in one line, without keys.
func (m Message) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s e%d", m.Kind, m.Epoch)
	if m.Node != nil {
		fmt.Fprintf(&b, " %s×%d want %d", m.Node.Name, m.Node.Nproc, m.Node.Want)
	}
	for i, n := range m.Nodes {
		fmt.Fprintf(&b, " %d=%s×%d", i, n.Name, n.Nproc)
	}
	if m.Kind == KindExchange || m.Kind == KindGathered {
		fmt.Fprintf(&b, " #%d %q %q", m.Seq, m.Name, m.Blobs)
	}
	for _, f := range m.Flown {
		fmt.Fprintf(&b, " %d", f.Rank)
	}
	for _, v := range m.Vitals {
		fmt.Fprintf(&b, " %d:%v", v.Rank, v.Quiet)
	}
	if m.Restart {
		b.WriteString(" restart")
	}
	if m.Code != 0 {
		fmt.Fprintf(&b, " code %d", m.Code)
	}
	if m.Text != "" {
		b.WriteString(" " + m.Text)
	}
	if m.Cause != nil {
		b.WriteString(": " + m.Cause.Error())
	}
	return b.String()
}
