package member

import (
	"bytes"
	"net"
	"testing"
	"time"

	"ebtrain/launch/rendezvous"
)

// What gossips is as launch's design has it: only who has the job's key and label is heard,
// and the timings are those that were measured. Where there are many launchers they gossip
// and probe less often.
func TestGossipSettings(t *testing.T) {
	key := bytes.Repeat([]byte{7}, 32)
	for nodes, slower := range map[int]time.Duration{2: 1, 64: 4} {
		m := open1(t, Config{Name: "a", Coordinator: true, Endpoint: "127.0.0.1:0", Key: key, Label: "a job", Nodes: nodes})
		c := m.configure()
		if !bytes.Equal(c.SecretKey, key) || c.Label != "a job" || c.SkipInboundLabelCheck || !c.GossipVerifyIncoming || !c.GossipVerifyOutgoing {
			t.Errorf("%d launchers: key %x, label %q; unlabelled packets pass: %v, encryption is asked of others: %v, and of itself: %v",
				nodes, c.SecretKey, c.Label, c.SkipInboundLabelCheck, c.GossipVerifyIncoming, c.GossipVerifyOutgoing)
		}
		if c.ProbeInterval != slower*200*time.Millisecond || c.ProbeTimeout != 100*time.Millisecond || c.GossipInterval != slower*50*time.Millisecond || c.TCPTimeout != time.Second {
			t.Errorf("%d launchers: probes every %v, for %v, gossip every %v, connections for %v", nodes, c.ProbeInterval, c.ProbeTimeout, c.GossipInterval, c.TCPTimeout)
		}
		if c.SuspicionMult != 3 || c.SuspicionMaxTimeoutMult != 2 {
			t.Errorf("%d launchers: suspicion lasts %d times, at most %d times that", nodes, c.SuspicionMult, c.SuspicionMaxTimeoutMult)
		}
	}
}

// A packet of who has no key is dropped, though it names a launcher of the job. Packets of
// that one, which come after it, are taken.
func TestPacketWithoutKey(t *testing.T) {
	a, b := pair(t, "127.0.0.1")
	_, _ = a.line1(t, "b"), b.line1(t, "a")
	a.awaitPlace(t, "b")
	stranger, err := net.Dial("udp", b.port.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stranger.Close() })
	const userMsg = 8 // as memberlist begins a packet that is its user's
	abort := append([]byte{userMsg}, `{"from":"a","msg":{"kind":"abort","cause":{"kind":"stopped","rank":-1,"text":"of a stranger"}}}`...)
	deadline := time.Now().Add(arrives)
	for taken := 0; taken < 3; {
		if _, err := stranger.Write(abort); err != nil {
			t.Fatal(err)
		}
		a.Hint("b", rendezvous.Message{Kind: rendezvous.KindVitals, Epoch: 3})
		select {
		case in := <-b.Inbox():
			if in.Msg.Kind != rendezvous.KindVitals {
				t.Fatalf("taken: %+v", in)
			}
			taken++
		case <-time.After(50 * time.Millisecond): // the hint was lost
			if time.Now().After(deadline) {
				t.Fatal("nothing of the launcher itself arrived")
			}
		}
	}
}
