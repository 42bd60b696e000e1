package rendezvous

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ebtrain/launch/exitcode"
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

// placed is launcher b of two with two ranks, in the middle of its way to them.
func placed(grace time.Duration) *Node {
	info := NodeInfo{Name: "b", Host: "b", Nproc: 2, Want: -1, Nodes: 2}
	n := NewNode(NodeConfig{Info: info, KillWait: time.Second, StrangerWait: 2 * time.Second, Grace: grace})
	n.Start()
	n.Receive(Message{Kind: KindAssign, Job: "job", Nodes: []NodeInfo{{Name: "a", Nproc: 1}, info}})
	return n
}

// A batch system sends SIGTERM more than once: that is one request to stop, also after another
// one, and kills nobody. What a user sends besides does.
func TestBatchSystemAsks(t *testing.T) {
	for batch, want := range map[bool][]bool{false: {true, true, true}, true: {false, false, true}} {
		for i, second := range []string{"SIGTERM", "SIGTERM", "SIGINT"} {
			n := placed(time.Second)
			n.cfg.Batch = batch
			n.Receive(Message{Kind: KindCommit})
			n.Started(0, 7)
			n.Interrupt([]string{"SIGTERM", "SIGUSR1", "SIGTERM"}[i], 15)
			out := fmt.Sprint(n.Interrupt(second, 15))
			if strings.Contains(out, "signal 9 to locals [0]") != want[i] {
				t.Errorf("batch %v: %s, the second, is answered %s", batch, second, out)
			}
		}
	}
}

// A host that is cut off before its ranks are started is what its launcher ends with.
func TestCutOffBeforeCommit(t *testing.T) {
	out := fmt.Sprint(placed(time.Second).Alone())
	if !strings.Contains(out, "finish 1: node 1 (b) does not reach the other node") {
		t.Errorf("got %s", out)
	}
}

// Of a short time to stop, ranks that have not joined hear when half of it is left.
func TestShortGrace(t *testing.T) {
	for grace, want := range map[time.Duration]string{time.Second: "timer strangers e0 after 500ms", time.Minute: "timer strangers e0 after 2s"} {
		n := placed(grace)
		n.Receive(Message{Kind: KindCommit})
		n.Started(0, 7)
		if out := fmt.Sprint(n.Receive(Message{Kind: KindStop, Text: "SIGTERM", Code: 15})); !strings.Contains(out, want) {
			t.Errorf("of %v: %s, want %s", grace, out, want)
		}
	}
}

// A rank that is started while the others are ended is killed.
func TestStartedTooLate(t *testing.T) {
	n := placed(time.Second)
	n.Receive(Message{Kind: KindCommit})
	n.Started(0, 7)
	n.Receive(Message{Kind: KindAbort, Cause: &Cause{Kind: CauseExit, ExitCode: 3}})
	if out := fmt.Sprint(n.Started(1, 8)); out != "[signal 9 to locals [1]]" {
		t.Errorf("got %s", out)
	}
}

// A rank that gives no blob to an exchange, or two, has no part in it.
func TestOneBlob(t *testing.T) {
	n := placed(time.Second)
	n.Receive(Message{Kind: KindCommit})
	for local := range 2 {
		n.Started(local, 7+local)
		for _, blobs := range [][][]byte{nil, {{1}, {2}}} {
			if out := n.FromWorker(local, Message{Kind: KindExchange, Name: "x", Blobs: blobs}); len(out) > 0 {
				t.Errorf("%d blobs: %v", len(blobs), out)
			}
		}
	}
}

// A rank that is not started yet has not left those that wait for it.
func TestNotYetStarted(t *testing.T) {
	n := placed(time.Second)
	n.Receive(Message{Kind: KindCommit})
	n.Started(0, 7)
	if out := n.FromWorker(0, Message{Kind: KindExchange, Name: "x", Blobs: [][]byte{{1}}}); len(out) > 0 {
		t.Errorf("got %v", out)
	}
}

// A rank that leaves while another waits for it is said to have.
func TestLeavesWaiting(t *testing.T) {
	n := placed(time.Second)
	n.Receive(Message{Kind: KindCommit})
	n.Started(0, 7)
	n.Started(1, 8)
	n.FromWorker(0, Message{Kind: KindExchange, Name: "x", Blobs: [][]byte{{1}}})
	out := fmt.Sprint(n.FromWorker(1, Message{Kind: KindBye}))
	if !strings.Contains(out, `fail e0: rank 2 (b, pid 8): left the group while rank 1 waits for it in exchange "x"`) {
		t.Errorf("got %s", out)
	}
}

// The launcher of a rank that raised the abort ends with that rank's own code, if it says
// more: not with that of who stopped cleanly or was killed since, nor with another rank's.
func TestCodeOfWhoRaised(t *testing.T) {
	for _, tt := range []struct {
		exit Exit
		want int
	}{
		{Exit{Code: 3}, 3}, {Exit{}, 1}, {Exit{Code: exitcode.Requeue}, 1}, {Exit{Signal: "SIGTERM", SignalNumber: 15, Code: 5}, 1},
	} {
		n := placed(time.Second)
		n.Receive(Message{Kind: KindCommit})
		n.Started(0, 7)
		n.Started(1, 8)
		n.Receive(Message{Kind: KindAbort, Cause: &Cause{Kind: CauseRaised, Rank: 2, Node: 1, Text: "why"}})
		n.Exited(0, Exit{Code: 9})
		code := -1
		for _, e := range n.Exited(1, tt.exit) {
			if f, ok := e.(Finish); ok {
				code = f.Code
			}
		}
		if code != tt.want {
			t.Errorf("%+v: code %d, want %d", tt.exit, code, tt.want)
		}
	}
}

// Why the kernel has killed a rank, where that is known, is the reason of the job's end.
func TestWhyKilled(t *testing.T) {
	n := placed(time.Second)
	n.Receive(Message{Kind: KindCommit})
	n.Started(0, 7)
	out := fmt.Sprint(n.Exited(0, Exit{Signal: "SIGKILL", SignalNumber: 9, Why: "out of memory", During: "during step 3"}))
	if !strings.Contains(out, "fail e0: rank 1 (b, pid 7): out of memory during step 3") {
		t.Errorf("got %s", out)
	}
}
