package rendezvous

import (
	"strings"
	"testing"
	"time"
)

// Two hosts that say the same address of their ranks, as of a bridge that both have for
// containers, are told so before any rank is started; launchers of one host, under two
// names perhaps, may share one.
func TestSameAddress(t *testing.T) {
	for _, tt := range []struct {
		addr, host string
		refused    bool
	}{
		{"172.17.0.1", "n1/other", true}, {"172.17.0.1", "n0/one", false}, {"172.17.0.1", "n1/one", false}, {"172.17.0.2", "n1/other", false},
	} {
		c := NewCoordinator(CoordinatorConfig{Nodes: 3, Job: "job", Self: "a", JoinWait: time.Minute, AckWait: time.Minute})
		register := func(name string, n NodeInfo) (said string) {
			n.Nproc, n.Nodes = 1, 3
			for _, e := range c.Receive(name, Message{Kind: KindRegister, Node: &n, Command: &Command{}}) {
				said += e.String() + "\n"
			}
			return said
		}
		register("a", NodeInfo{Host: "n0", HostID: "n0/one", Addr: "172.17.0.1"})
		said := register("b", NodeInfo{Host: "n1", HostID: tt.host, Addr: tt.addr, Want: -1})
		if want := "its ranks would be at 172.17.0.1, as those of n0 are, which is another host: name with --network"; strings.Contains(said, want) != tt.refused {
			t.Errorf("%s on host %s: %q", tt.addr, tt.host, said)
		}
	}
}
