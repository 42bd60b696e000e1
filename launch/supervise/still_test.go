package supervise

import (
	"log/slog"
	"os/exec"
	"testing"
	"time"

	"ebtrain/launch/rendezvous"
	"ebtrain/launch/statuspage"
)

// hints is a transport that keeps what it is to carry as hints, the last of all.
type hints struct {
	Transport
	last rendezvous.Message
}

func (h *hints) Hint(_ string, m rendezvous.Message) { h.last = m }

// A launcher that stands still, as its ranks do when a batch system suspends a job, does not
// take that for a time in which a rank did nothing; what it sees itself it does.
func TestLooksAfterStandstill(t *testing.T) {
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	page, file, err := statuspage.New()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = file.Close(), page.Close() }()
	info, told := rendezvous.NodeInfo{Name: "b", Nproc: 1}, &hints{}
	a := &agent{node: rendezvous.NewNode(rendezvous.NodeConfig{Info: info}), procs: []*process{{cmd: cmd, page: page}}}
	a.cfg.Node.Info, a.cfg.Transport, a.cfg.Log = info, told, slog.New(slog.DiscardHandler)
	a.node.Start()
	a.node.Receive(rendezvous.Message{Kind: rendezvous.KindAssign, Job: "job", Nodes: []rendezvous.NodeInfo{{Name: "a", Nproc: 1}, info}})
	a.node.Receive(rendezvous.Message{Kind: rendezvous.KindCommit})
	now := time.Now()
	watch := func(looks int) rendezvous.Vital {
		for range looks {
			a.watchRanks(now)
			now = now.Add(lookInterval)
		}
		if len(told.last.Vitals) != 1 {
			t.Fatalf("the coordinator is told %v", told.last)
		}
		return told.last.Vitals[0]
	}
	watch(3)
	now = now.Add(time.Minute)
	if v := watch(3); v.Idle > 2*time.Second || v.Quiet > 2*time.Second {
		t.Errorf("after a standstill it has been idle for %v, quiet for %v", v.Idle, v.Quiet)
	}
	if v := watch(2000); v.Idle < 250*time.Second || v.Quiet < 500*time.Second { // it may have been starting during the first looks
		t.Errorf("after 500 s it has been idle for %v, quiet for %v", v.Idle, v.Quiet)
	}
}
