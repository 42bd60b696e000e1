package rendezvous

import (
	"bytes"
	"fmt"
	"testing"
	"time"
)

// TestManyRanksJoin has 256 launchers of 16 ranks each form a group and exchange a
// blob of each rank, with every message as it is on the wire.
func TestManyRanksJoin(t *testing.T) {
	const hosts, nproc, blob = 256, 16, 200
	coord := NewCoordinator(CoordinatorConfig{Nodes: hosts, Job: "job", Self: "n000", JoinWait: time.Minute, AckWait: time.Minute})
	var nodes []*Node
	byName := map[string]*Node{}
	type letter struct {
		from, to string
		wire     []byte
	}
	var queue []letter
	started, gathered, largest := 0, 0, 0
	apply := func(who string, effects []Effect) {
		for _, e := range effects {
			switch e := e.(type) {
			case Send:
				b, err := Encode(e.Msg)
				if err != nil {
					t.Fatal(err)
				}
				largest = max(largest, len(b))
				queue = append(queue, letter{who, e.To, b})
			case StartWorkers:
				started += e.Nodes[e.Self].Nproc
			case Tell:
				if e.Msg.Kind != KindGathered || len(e.Msg.Blobs) != hosts*nproc || string(e.Msg.Blobs[4095][:8]) != "n255.15 " {
					t.Fatalf("%s: told %.100s", who, e.Msg)
				}
				gathered++
			case Finish:
				t.Fatalf("%s: %s", who, e)
			}
		}
	}
	deliver := func() {
		for ; len(queue) > 0; queue = queue[1:] {
			l := queue[0]
			m, err := Decode(l.wire)
			if err != nil {
				t.Fatal(err)
			}
			if l.to == "" {
				apply("coord", coord.Receive(l.from, m))
			} else {
				apply(l.to, byName[l.to].Receive(m))
			}
		}
	}
	apply("coord", coord.Start())
	for i := range hosts {
		name := fmt.Sprintf("n%03d", i)
		n := NewNode(NodeConfig{
			Info: NodeInfo{Name: name, Host: name, HostID: name + ".cluster.example.org/0123456789ab", Addr: fmt.Sprintf("2001:db8:1234:5678:9abc:def0:1234:%04x", i), Nproc: nproc, Want: -1, Nodes: hosts},
			Key:  []byte("k"), Join: "n000:1", JoinWait: time.Minute,
		})
		nodes, byName[name] = append(nodes, n), n
		apply(name, n.Start())
	}
	deliver()
	if started != hosts*nproc {
		t.Fatalf("%d ranks were started", started)
	}
	for i, n := range nodes {
		for l := range nproc {
			name := fmt.Sprintf("n%03d", i)
			apply(name, n.Started(l, 1+l))
			mine := append(fmt.Appendf(nil, "%s.%d ", name, l), bytes.Repeat([]byte{'x'}, blob)...)
			apply(name, n.FromWorker(l, Message{Kind: KindExchange, Name: "cards", Blobs: [][]byte{mine}}))
		}
	}
	deliver()
	if gathered != hosts {
		t.Errorf("%d launchers got all blobs", gathered)
	}
	if largest > MaxExchange/8 {
		t.Errorf("the largest message has %d bytes", largest)
	}
}

// TestEncodedOnce has what goes to all in the same memory, and what goes to one not.
func TestEncodedOnce(t *testing.T) {
	c := NewCoordinator(CoordinatorConfig{Nodes: 2, Job: "job", Self: "a", JoinWait: time.Minute, AckWait: time.Minute})
	var sent []Message
	for _, name := range []string{"a", "b"} {
		for _, e := range c.Receive(name, Message{Kind: KindRegister, Node: &NodeInfo{Name: name, Nproc: 1, Nodes: 2, Want: -1}, Command: &Command{}}) {
			if e, ok := e.(Send); ok {
				sent = append(sent, e.Msg)
			}
		}
	}
	if len(sent) != 2 {
		t.Fatalf("sent %v", sent)
	}
	var texts [2][]byte
	for i, m := range sent {
		b, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = b
		if back, err := Decode(b); err != nil || back.String() != m.String() || len(back.Nodes) != 2 {
			t.Errorf("%v came back as %v, %v", m, back, err)
		}
	}
	if &texts[0][0] != &texts[1][0] {
		t.Error("what went to two was encoded twice")
	}
}

// TestLostList has a launcher whose list is lost ask until it is sent again, and one
// whose commit is lost acknowledge again.
func TestLostList(t *testing.T) {
	c := NewCoordinator(CoordinatorConfig{Nodes: 2, Job: "job", Self: "a", JoinWait: time.Minute, AckWait: time.Minute})
	sent := func(kind Kind, to string, effects []Effect) (n int) {
		for _, e := range effects {
			if e, ok := e.(Send); ok && e.Msg.Kind == kind && e.To == to {
				n++
			}
		}
		return n
	}
	register := func(name string) []Effect {
		return c.Receive(name, Message{Kind: KindRegister, Node: &NodeInfo{Name: name, Nproc: 1, Nodes: 2, Want: -1}, Command: &Command{}})
	}
	register("a")
	if n := sent(KindAssign, "b", register("b")); n != 1 {
		t.Fatalf("%d lists for b", n)
	}
	var lists []int
	for i := 1; i <= 16; i++ {
		if sent(KindAssign, "b", register("b")) > 0 {
			lists = append(lists, i)
		}
	}
	if fmt.Sprint(lists) != "[4 8 16]" {
		t.Errorf("the list is sent again at questions %v", lists)
	}
	c.Receive("a", Message{Kind: KindAck})
	if n := sent(KindCommit, "b", c.Receive("b", Message{Kind: KindAck})); n != 1 {
		t.Errorf("%d commits for b", n)
	}
	if n := sent(KindCommit, "b", c.Receive("b", Message{Kind: KindAck})); n != 1 {
		t.Errorf("%d commits for b, which asks again", n)
	}
}
