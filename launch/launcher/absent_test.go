package launcher

import (
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"ebtrain/launch/env"
	"ebtrain/launch/member"
	"ebtrain/launch/outlet"
	"ebtrain/launch/rendezvous"
)

func nowhere(t *testing.T) *os.File {
	t.Helper()
	f, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// A task that does not take part says so to those that wait for it, and leaves.
func TestAbsent(t *testing.T) {
	environ, asked := manager(t, 1, nil)
	Absent(t.Context(), Options{}, environ, errors.New("program x does not exist; look"))
	var all []string
	for request := range asked {
		all = append(all, request)
	}
	said := strings.Join(all, "\n")
	for _, want := range []string{"key=ebtrain-absent;value=task 1 (n1) of the step does not take part: program x does not exist, look;", "cmd=kvs-fence;", "cmd=finalize;"} {
		if !strings.Contains(said, want) {
			t.Errorf("want %q in %q", want, said)
		}
	}
	Absent(t.Context(), Options{}, nil, errors.New("it is in no step"))
	environ, asked = manager(t, 1, nil)
	Absent(t.Context(), Options{Apart: true}, environ, errors.New("others do not wait for it"))
	select {
	case request := <-asked:
		t.Errorf("a launcher apart asked %q", request)
	default:
	}
}

// A launcher that cannot begin does so, too.
func TestUnpreparedIsAbsent(t *testing.T) {
	environ, asked := manager(t, 1, nil)
	out, shown := outlet.Pair(nowhere(t), nowhere(t))
	_, err := configure(t.Context(), Options{KeyFile: "/nonexistent/key", Nodes: 2, NodeRank: 1, Step: env.Step{Store: true}}, environ, out, shown)
	var said strings.Builder
	for request := range asked {
		said.WriteString(request)
	}
	if want := "does not take part: --key-file /nonexistent/key: "; err == nil || !strings.Contains(said.String(), want) {
		t.Errorf("want %q in %q, and an error, got %v", want, &said, err)
	}
}

// keyed is the environment of a task of two that have a secret and no store.
func keyed(task string) []string {
	return []string{
		"EBTRAIN_KEY=a secret of the test, long enough", "SLURM_JOB_ID=7", "SLURM_STEP_ID=0", "SLURM_PROCID=" + task, "SLURM_NODEID=" + task,
		"SLURM_LOCALID=0", "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_NUM_NODES=2", "SLURM_STEP_NODELIST=n[0-1]", "SLURM_STEP_TASKS_PER_NODE=1(x2)", "SLURMD_NODENAME=n" + task,
	}
}

// Where the tasks have no store, one that does not take part says so to node 0, and where it is
// node 0, to those that come.
func TestAbsentByKey(t *testing.T) {
	for _, absent := range []string{"0", "1"} {
		t.Run(absent, func(t *testing.T) {
			at := Options{Endpoint: "127.0.0.1"}
			left := make(chan struct{})
			go func() {
				defer close(left)
				Absent(t.Context(), at, keyed(absent), errors.New("it has no GPU"))
			}()
			key, err := at.secret(keyed(absent))
			if err != nil {
				t.Fatal(err)
			}
			m, err := member.Open(t.Context(), member.Config{
				Name: "other", Coordinator: absent == "1", Endpoint: at.Endpoint, Key: key, Label: "ebtrain/slurm-7.0", Nodes: 2, Wait: time.Minute, Log: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				t.Fatal(err)
			}
			if absent == "0" {
				m.Send("", rendezvous.Message{Kind: rendezvous.KindRegister, Node: &rendezvous.NodeInfo{}, Command: &rendezvous.Command{}})
			}
			var said string
			for said == "" {
				switch in := <-m.Inbox(); in.Msg.Kind {
				case rendezvous.KindAbsent:
					said = in.Msg.Text
				case rendezvous.KindAbort:
					said = in.Msg.Cause.Error()
				}
			}
			if want := "task " + absent + " (n" + absent + ") of the step does not take part: it has no GPU"; said != want {
				t.Errorf("it said %q, want %q", said, want)
			}
			<-left
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A network that this node does not have is a mistake before others wait for the launcher.
func TestNetworkIsLookedAtFirst(t *testing.T) {
	out, shown := outlet.Pair(nowhere(t), nowhere(t))
	_, err := prepare(Options{Network: "nosuch0", Nodes: 2}, nil, out, shown)
	if err == nil || !strings.Contains(err.Error(), `--network "nosuch0" is no interface of this machine that is up`) {
		t.Errorf("got %v", err)
	}
}
