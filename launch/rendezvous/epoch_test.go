package rendezvous

import (
	"fmt"
	"strings"
	"testing"
)

// after is a job after some commands of TestScenarios.
func after(t *testing.T, commands ...string) *sim {
	t.Helper()
	s := &sim{}
	for _, line := range commands {
		if err := s.do(strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// hear gives the coordinator what is under way to it; what that answers is lost.
func (s *sim) hear() {
	for _, l := range s.queue {
		if l.to == "" {
			s.coord.Receive(l.from, l.msg)
		}
	}
}

// restarted is a job of two launchers whose first rank was killed: its epoch is 1.
var restarted = []string{
	"new nproc=1,1 restarts=1", "start", "deliver", "hello a.0", "hello b.0",
	"exit a.0 signal=SIGKILL:9", "deliver", "exit b.0 code=1", "deliver",
}

// Messages change nothing that are of an epoch that is over, or of a launcher that is no
// member; and none does once the job is over.
func TestLateMessages(t *testing.T) {
	s := after(t, restarted...)
	all := []Message{
		{Kind: KindAck}, {Kind: KindExchange, Name: "late", Blobs: [][]byte{{1}}}, {Kind: KindFlight}, {Kind: KindShare, Code: 3}, {Kind: KindDone, Code: 75},
		{Kind: KindVitals, Vitals: []Vital{vital(0, nil, nil)}}, {Kind: KindFail, Cause: &Cause{Kind: CauseSignal}},
	}
	ignored := func(when string, epoch int, from ...string) {
		for _, m := range all {
			m.Epoch = epoch
			for _, name := range from {
				if out := s.coord.Receive(name, m); len(out) > 0 {
					t.Errorf("%s: %s of %s: %v", when, m, name, out)
				}
			}
		}
	}
	ignored("in epoch 1", 0, "a", "b")
	ignored("in epoch 1", 2, "a", "b")
	ignored("in epoch 1", 1, "stranger")
	if s.coord.seen[0].Pid != 0 || s.coord.divides != 0 {
		t.Error("a late message is remembered")
	}
	for _, line := range []string{"hello a.0", "hello b.0", "exchange a.0 0 x one", "exchange b.0 0 x two", "deliver", "exit a.0", "exit b.0", "deliver"} {
		if err := s.do(strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
	}
	if log := strings.Join(s.log, "\n"); !strings.Contains(log, `a> tell all: gathered e1 #0 "x" ["one" "two"]`) || !strings.HasSuffix(log, "a> finish 0\nb> finish 0") {
		t.Errorf("the job goes on as\n%s", log)
	}
	ignored("once it is over", 1, "a", "b")
}

// What a launcher hears of an epoch that is over changes nothing, whether it waits for the
// next one or its ranks run; and a list that comes twice is acknowledged twice, as the first
// answer may be lost.
func TestLateAtALauncher(t *testing.T) {
	all := []Message{
		{Kind: KindAssign, Job: "job-e0", Nodes: []NodeInfo{{Name: "a", Nproc: 1}, {Name: "b", Nproc: 1}}}, {Kind: KindCommit}, {Kind: KindGathered, Name: "x"},
		{Kind: KindAbort, Cause: &Cause{Kind: CauseSignal}}, {Kind: KindStop, Text: "SIGINT", Code: 2}, {Kind: KindRegroup}, {Kind: KindEnd}, {Kind: KindFlight}, {Kind: KindFlown},
	}
	for when, commands := range map[string][]string{"waits": restarted[:len(restarted)-1], "runs": restarted} {
		b := after(t, commands...).node("b")
		for _, m := range all {
			if out := b.Receive(m); len(out) > 0 || b.epoch != 1 {
				t.Errorf("%s of epoch 0 where b %s: %v, in epoch %d", m, when, out, b.epoch)
			}
		}
	}
	b := after(t, restarted[:len(restarted)-1]...).node("b")
	all[0].Epoch, all[0].Job = 1, "job-e1"
	for range 2 {
		if out := fmt.Sprint(b.Receive(all[0])); out != "[send coordinator: ack e1]" {
			t.Errorf("a list is answered %s", out)
		}
	}
}

// What a launcher is told twice has no effect the second time; and neither has a list without
// it, nor what comes too late.
func TestToldTwice(t *testing.T) {
	b := NewNode(NodeConfig{Info: NodeInfo{Name: "b", Nproc: 1}})
	if out := b.Receive(Message{Kind: KindAssign, Job: "job", Nodes: []NodeInfo{{Name: "a", Nproc: 1}}}); len(out) > 0 || b.phase != joining {
		t.Errorf("a list without it: %v", out)
	}
	for _, m := range []Message{
		{Kind: KindCommit}, {Kind: KindGathered, Name: "x"}, {Kind: KindRegroup}, {Kind: KindStop, Text: "SIGINT", Code: 2}, {Kind: KindAbort, Cause: &Cause{Kind: CauseSignal}}, {Kind: KindEnd},
	} {
		b := after(t, "new nproc=1,1", "start", "deliver", "hello b.0").node("b")
		b.Receive(m)
		if out := b.Receive(m); len(out) > 0 {
			t.Errorf("%s, twice: %v", m, out)
		}
	}
	stopping := after(t, "new nproc=1,1", "start", "deliver", "hello b.0", "interrupt b SIGINT:2").node("b")
	if out := stopping.Receive(Message{Kind: KindRegroup}); len(out) > 0 {
		t.Errorf("ranks that stop are asked to regroup: %v", out)
	}
}

// A timer of an epoch that is over does nothing where one of this epoch would.
func TestLateTimers(t *testing.T) {
	form := restarted[:len(restarted)-1] // up to the begin of epoch 1
	for _, tt := range []struct {
		who   string
		timer TimerKind
		then  []string
	}{
		{"coord", TimerJoin, form},
		{"coord", TimerAck, form},
		{"coord", TimerSettle, append(restarted[:len(restarted):len(restarted)], "raise a.0 why", "deliver")},
		{"coord", TimerFlight, append(restarted[:len(restarted):len(restarted)], "flight a", "without b")},
		{"a", TimerCommit, form},
		{"a", TimerAnswer, append(restarted[:len(restarted):len(restarted)], "raise a.0 why")},
		{"a", TimerKill, append(restarted[:len(restarted):len(restarted)], "exit b.0 signal=SIGKILL:9", "deliver")},
		{"a", TimerGone, append(restarted[:len(restarted):len(restarted)], "exit b.0 signal=SIGKILL:9", "deliver")},
		{"a", TimerGrace, append(restarted[:len(restarted):len(restarted)], "interrupt a SIGTERM:15")},
		{"a", TimerStrangers, append(restarted[:len(restarted):len(restarted)], "interrupt a SIGTERM:15")},
	} {
		expire := func(epoch int) []Effect {
			s := after(t, tt.then...)
			if tt.timer == TimerAck {
				s.hear()
			}
			timer := Timer{tt.timer, epoch, epoch + 1} // each has had one table
			if tt.who == "coord" {
				return s.coord.Expired(timer)
			}
			return s.node(tt.who).Expired(timer)
		}
		if out := expire(0); len(out) > 0 {
			t.Errorf("%s of epoch 0 in epoch 1, at %s: %v", tt.timer, tt.who, out)
		}
		if out := expire(1); len(out) == 0 {
			t.Errorf("%s of epoch 1, at %s, does nothing", tt.timer, tt.who)
		}
	}
}

// What a node says of its ranks when a table has been shown without it counts for that one, and
// not for the next of the epoch, which would show what its ranks did then.
func TestLateFlown(t *testing.T) {
	s := after(t, "new nproc=1,1", "start", "deliver", "flight a")
	var late Message
	for len(s.queue) > 0 {
		l := s.queue[0]
		s.queue = s.queue[1:]
		switch {
		case l.msg.Kind == KindFlown && l.from == "b":
			late = l.msg
		case l.to == "":
			s.apply("coord", s.coord.Receive(l.from, l.msg))
		default:
			s.apply(l.to, s.node(l.to).Receive(l.msg))
		}
	}
	s.apply("coord", s.coord.Expired(Timer{Kind: TimerFlight, Flight: 1}))
	for _, line := range []string{"exit a.0 signal=SIGKILL:9", "without b"} {
		if err := s.do(strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
	}
	if late.Kind != KindFlown || !s.coord.AwaitsFlight() {
		t.Fatalf("node b has said %s, and the second table is awaited: %v", late, s.coord.AwaitsFlight())
	}
	if out := s.coord.Receive("b", late); len(out) > 0 {
		t.Errorf("what came late for the first table is in the second: %v", out)
	}
}

// A job that cannot be formed ends, also one whose ranks would be started again after a
// failure: where a node does not acknowledge, and where node 0 is cut off meanwhile.
func TestEndsUnformed(t *testing.T) {
	for want, end := range map[string]func(c *Coordinator) []Effect{
		"no acknowledgement within 10s from node 1 (host-b)": func(c *Coordinator) []Effect { return c.Expired(Timer{Kind: TimerAck}) },
		"node 0 (host-a) does not reach the other node":      func(c *Coordinator) []Effect { return c.Alone("b") },
	} {
		s := after(t, "new nproc=1,1 restarts=1", "start")
		s.hear()
		s.coord.Receive("a", Message{Kind: KindAck})
		out := fmt.Sprint(end(s.coord))
		if !strings.Contains(out, "send a: abort e0: "+want) || !strings.Contains(out, "send b: abort e0: "+want) {
			t.Errorf("want %s, got %s", want, out)
		}
	}
}

// Nodes are numbered by what they ask for, node 0 being the coordinator's, then by host and
// name, whatever order they come in.
func TestOrderOfNodes(t *testing.T) {
	for _, tt := range []struct{ come, want string }{
		{"c@h2 b@h2 a@h9", "a b c"},
		{"b@h3 c@h2 a@h1 d@h2", "a c d b"},
		{"a@h1 b@h1=2 c@h2 d@h3", "a c b d"},
		{"d@h0=1 c@h1=3 b@h2 a@h5", "a d b c"},
	} {
		come := strings.Fields(tt.come)
		c := NewCoordinator(CoordinatorConfig{Nodes: len(come), Job: "job", Self: "a"})
		for _, who := range come {
			name, rest, _ := strings.Cut(who, "@")
			host, number, asks := strings.Cut(rest, "=")
			n := NodeInfo{Host: host, Nproc: 1, Nodes: len(come), Want: -1}
			if asks {
				n.Want = int(number[0] - '0')
			}
			c.Receive(name, Message{Kind: KindRegister, Node: &n, Command: &Command{}})
		}
		var got []string
		for _, n := range c.nodes {
			got = append(got, n.Name)
		}
		if s := strings.Join(got, " "); s != tt.want || c.phase != assigning {
			t.Errorf("%s: got %s, want %s", tt.come, s, tt.want)
		}
	}
}

// Who comes while the others acknowledge is taken in once their ranks run, which could not
// be asked to stop before.
func TestComesWhileAssigned(t *testing.T) {
	s := after(t, "new nproc=1,1,1 expect=3 least=1", "start coord a b", "deliver", "expire coord window 0")
	c := s.node("c").cfg
	out := fmt.Sprint(s.coord.Receive("c", Message{Kind: KindRegister, Node: &c.Info, Command: &c.Run}))
	grow := Timer{Kind: TimerGrow}
	again := fmt.Sprint([]Effect{SetTimer{grow, s.coord.cfg.Window}})
	if !strings.Contains(out, "timer grow") {
		t.Errorf("it is answered %s", out)
	}
	if out := fmt.Sprint(s.coord.Expired(grow)); out != again {
		t.Errorf("before the ranks run: %s, want %s", out, again)
	}
	if err := s.do([]string{"deliver"}); err != nil {
		t.Fatal(err)
	}
	if out := fmt.Sprint(s.coord.Expired(grow)); !strings.Contains(out, "send a: regroup e0 from 2 to 3 nodes, with host-c") {
		t.Errorf("once they run: %s", out)
	}
}

// Who has been given its place acknowledges again, as often as it would register: its
// answer, or what that is answered with, may be lost. The first such timer is of the epoch in
// which it came.
func TestAcknowledgesAgain(t *testing.T) {
	b := NewNode(NodeConfig{Info: NodeInfo{Name: "b", Nproc: 1}, Again: 1})
	b.Start()
	b.Receive(Message{Kind: KindAssign, Epoch: 2, Nodes: []NodeInfo{{Name: "b", Nproc: 1}}})
	for _, epoch := range []int{0, 2, 2} {
		if out := fmt.Sprint(b.Expired(Timer{Kind: TimerRegister, Epoch: epoch})); out != "[send coordinator: ack e2 timer register e2 after 1ns]" {
			t.Errorf("got %s", out)
		}
	}
}

// A rank that joins is told the key of its job and epoch, which every node makes the same
// of the launchers' own, and what its launcher has meanwhile been told; one of another group is refused.
func TestHello(t *testing.T) {
	join := func(name string, commands ...string) []Effect {
		n := after(t, commands...).node(name)
		return n.FromWorker(0, Message{Kind: KindHello, Text: n.job})
	}
	formed := []string{"new nproc=2,2 restarts=1", "start", "deliver"}
	key := func(out []Effect) string { return fmt.Sprintf("%x", out[0].(Tell).Msg.Key) }
	again := append(formed[:3:3], "exit a.1 signal=SIGKILL:9", "deliver", "exit a.0 code=1", "exit b.0 code=1", "exit b.1 code=1", "deliver")
	first, other, second := key(join("a", formed...)), key(join("b", formed...)), key(join("a", again...))
	if len(first) != 64 || first != other || first == second {
		t.Errorf("keys %s on node 0, %s on node 1, %s in the next epoch", first, other, second)
	}
	stranger := after(t, formed...).node("a")
	stranger.cfg.Key = []byte("another")
	if got := key(stranger.FromWorker(0, Message{Kind: KindHello, Text: stranger.job})); len(got) != 64 || got == first {
		t.Errorf("of other launchers, in a job of the same name, the key is %s, too", got)
	}
	for want, commands := range map[string][]string{
		"tell local 0: stop e0 code 2 SIGINT": append(formed[:3:3], "interrupt a SIGINT:2"),
		"tell local 0: abort e0: rank 1":      append(formed[:3:3], "exit a.1 signal=SIGKILL:9", "deliver"),
	} {
		if out := fmt.Sprint(join("a", commands...)); !strings.Contains(out, want) {
			t.Errorf("want %s, got %s", want, out)
		}
	}
	n := after(t, formed...).node("a")
	n.Receive(Message{Kind: KindRegroup, Text: "more"})
	if out := fmt.Sprint(n.FromWorker(0, Message{Kind: KindHello, Text: n.job})); !strings.Contains(out, "tell local 0: stop e0") {
		t.Errorf("after regroup: %s", out)
	}
	if out := fmt.Sprint(n.FromWorker(1, Message{Kind: KindHello, Text: "job-e7"})); !strings.HasPrefix(out, `[tell local 1: refuse e0: this process belongs to group "job-e7"`) {
		t.Errorf("of another group: %s", out)
	}
}
