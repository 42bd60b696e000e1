package supervise

import (
	"log/slog"
	"testing"

	"ebtrain/launch/rendezvous"
)

// What a rank has said and comes after its end is for nobody: its node may have begun another
// epoch, of which no rank runs.
func TestLateMessage(t *testing.T) {
	a := &agent{node: rendezvous.NewNode(rendezvous.NodeConfig{}), events: make(chan func(), 1)}
	p := &process{over: true}
	a.procs = []*process{p}
	a.postFrom(p, rendezvous.Message{Kind: rendezvous.KindBye})
	(<-a.events)()
}

// A launcher whose node 0 does not answer says itself why the job ends, also where node 0
// shows what all say.
func TestDeserted(t *testing.T) {
	info := rendezvous.NodeInfo{Name: "b", Nproc: 1}
	for answers, want := range map[bool]bool{true: true, false: false} {
		a := &agent{node: rendezvous.NewNode(rendezvous.NodeConfig{Info: info}), quiet: map[string]bool{}}
		a.cfg.Gather, a.cfg.Transport, a.cfg.Log = true, silent{}, slog.New(slog.DiscardHandler)
		a.node.Start()
		a.node.Receive(rendezvous.Message{Kind: rendezvous.KindAssign, Job: "job", Nodes: []rendezvous.NodeInfo{{Name: "a", Nproc: 1}, info}})
		a.node.Receive(rendezvous.Message{Kind: rendezvous.KindCommit})
		a.node.Started(0, 7)
		a.node.Exited(0, rendezvous.Exit{Code: 3})
		var out []rendezvous.Effect
		if answers {
			out = a.node.Receive(rendezvous.Message{Kind: rendezvous.KindAbort, Cause: &rendezvous.Cause{Kind: rendezvous.CauseExit, Rank: 1, ExitCode: 3}})
		} else {
			out = a.node.Expired(rendezvous.Timer{Kind: rendezvous.TimerAnswer})
		}
		for _, e := range out {
			if f, ok := e.(rendezvous.Finish); ok {
				a.apply([]rendezvous.Effect{f})
			}
		}
		if a.finish == nil || a.saidByNode0(a.finish.Cause) != want {
			t.Errorf("it answers: %v; the end is %v, said by node 0: %v", answers, a.finish, !want)
		}
	}
}

// silent is a transport that carries nothing.
type silent struct{ Transport }
