package rendezvous

import (
	"errors"
	"fmt"
	"strings"

	"ebtrain/launch/exitcode"
)

// ErrAborted is wrapped by every error that follows from the end of the group
// rather than from the call that returns it.
var ErrAborted = errors.New("rendezvous: job aborted")

// CauseKind is why a job was aborted.
type CauseKind string

const (
	CauseSignal  CauseKind = "signal"  // a rank was killed: Signal, SignalNumber, Text if more is known
	CauseExit    CauseKind = "exit"    // a rank ended with ExitCode ≠ 0
	CauseCrash   CauseKind = "crash"   // a rank crashed by a fault of its own: Text
	CauseRaised  CauseKind = "raised"  // a rank called Abort: Text
	CauseUnfit   CauseKind = "unfit"   // a rank called Unfit: Text; it ends no job, but becomes CauseRaised or CauseRegroup
	CauseNode    CauseKind = "node"    // a whole node: Text
	CauseCut     CauseKind = "cut"     // a node has lost the network: Text
	CauseStuck   CauseKind = "stuck"   // a rank lives and does not get on: Text; Signal if it is stopped by one
	CauseStopped CauseKind = "stopped" // the user: Signal, SignalNumber, Text
	CauseRegroup CauseKind = "regroup" // none: the group is formed again, of other nodes: Text
	CauseRefused CauseKind = "refused" // the job never began: Text
)

// Cause says who ended a job and why. It is an error whose text is one line.
type Cause struct {
	Kind         CauseKind `json:"kind"`
	Rank         int       `json:"rank"` // -1 if it is not one rank
	Node         int       `json:"node"` // -1 if it is not one node
	Host         string    `json:"host,omitempty"`
	Pid          int       `json:"pid,omitempty"`
	Signal       string    `json:"signal,omitempty"` // "SIGSEGV"
	SignalNumber int       `json:"signal_number,omitempty"`
	ExitCode     int       `json:"exit_code,omitempty"`
	During       string    `json:"during,omitempty"` // last progress: "during all-reduce x, seq 3"
	Text         string    `json:"text,omitempty"`
}

// Error is the one line that every rank prints, for example
//
//	rank 5 (node03, pid 4411): killed by SIGSEGV during all-reduce generator/bucket 3, seq 8812
func (c *Cause) Error() string {
	during := ""
	if c.During != "" {
		during = " " + c.During
	}
	switch c.Kind {
	case CauseSignal:
		if c.Text != "" {
			return c.who() + ": " + oneLine(c.Text) + during
		}
		return c.who() + ": killed by " + c.Signal + during
	case CauseExit:
		return fmt.Sprintf("%s: exit status %d%s", c.who(), c.ExitCode, during)
	case CauseCrash:
		return c.who() + ": " + oneLine(c.Text) + during
	case CauseRaised, CauseUnfit, CauseNode, CauseStuck:
		return c.who() + ": " + oneLine(c.Text)
	case CauseCut:
		return c.who() + " " + oneLine(c.Text)
	}
	return oneLine(c.Text)
}

// Is makes errors.Is(cause, ErrAborted) true.
func (c *Cause) Is(target error) bool { return target == ErrAborted }

// who is the rank or the node that c is about, for people.
func (c *Cause) who() string {
	if c.Rank < 0 {
		return fmt.Sprintf("node %d (%s)", c.Node, c.Host)
	}
	if c.Pid == 0 {
		return fmt.Sprintf("rank %d (%s)", c.Rank, c.Host)
	}
	return fmt.Sprintf("rank %d (%s, pid %d)", c.Rank, c.Host, c.Pid)
}

// Code is the exit code of a launcher whose job ended by c: the failed rank's
// own, 128+n for a signal, else 1.
func (c *Cause) Code() int {
	switch {
	case c.SignalNumber > 0:
		return exitcode.Signal + c.SignalNumber
	case c.ExitCode > 0:
		return c.ExitCode
	}
	return 1
}

// mistake says that c is one on the command line, which is there again when the ranks
// are started again.
func (c *Cause) mistake() bool { return c.Kind == CauseExit && c.ExitCode == exitcode.Usage }

// oneLine is the lines of s in one, without blank ones.
func oneLine(s string) string {
	var parts []string
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			parts = append(parts, line)
		}
	}
	return strings.Join(parts, "; ")
}
