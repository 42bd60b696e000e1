package rendezvous

import (
	"testing"
	"time"
)

// TestStoppedBeforeCommit: a launcher is stopped when its ranks are about to be started;
// they are asked to stop then, with their time, and not killed as if there were none.
func TestStoppedBeforeCommit(t *testing.T) {
	info := NodeInfo{Name: "b", Host: "b", Nproc: 1, Want: -1, Nodes: 2, Least: 2}
	n := NewNode(NodeConfig{Info: info, JoinWait: time.Minute, AnswerWait: time.Second, StopWait: time.Second, KillWait: time.Second, GoneWait: 30 * time.Second, StrangerWait: 2 * time.Second, Grace: 10 * time.Second})
	n.Start()
	n.Receive(Message{Kind: KindAssign, Job: "job", Nodes: []NodeInfo{{Name: "a", Nproc: 1}, info}})
	n.Interrupt("SIGTERM", 15)
	started := false
	for _, e := range n.Receive(Message{Kind: KindCommit}) {
		if _, ok := e.(StartWorkers); ok {
			started = true
		}
	}
	if !started {
		t.Fatal("the ranks are not started")
	}
	n.Started(0, 7)
	if out := n.Expired(Timer{Kind: TimerAnswer}); len(out) > 0 {
		t.Errorf("when the answer is due: %v", out)
	}
	asked := false
	for _, e := range n.Receive(Message{Kind: KindStop, Text: "SIGTERM", Code: 15}) {
		if s, ok := e.(SetTimer); ok && s.Timer.Kind == TimerGrace && s.After == 10*time.Second {
			asked = true
		}
	}
	if !asked {
		t.Error("the ranks are not asked to stop")
	}
}
