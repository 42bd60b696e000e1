package rendezvous

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ebtrain/launch/statuspage"
)

var losses = map[string]Loss{"": Unreachable, "killed": Killed, "mute": Mute}

var update = flag.Bool("update", false, "write the scenarios' outputs; commit only what you can explain")

// TestScenarios runs every file of testdata: commands, "----", and what the
// coordinator and the nodes then want done.
//
//	new nproc=2,1 [restarts=1] [want=-1,1] [hosts=n0,n1]  a coordinator and nodes a, b, …,
//	    [expect=3] [least=2]  of which so many are expected, or that many suffice,
//	    [remind=10s]          and who is missing is said after that time,
//	    [together=yes]        and all of which one command has started
//	share a.0 8              local rank 0 of node a says that the ranks share 8 parts
//	start [coord] [a …]      begin; without names the coordinator and all nodes
//	deliver                  carry all messages, and those that follow from them
//	without c                the same, but what c is sent or sends is lost
//	drop                     lose all messages under way
//	hello a.0                local rank 0 of node a joins; also: bye, raise a.0 TEXT, unfit a.0 TEXT, exchange a.0 SEQ NAME BLOB
//	exit a.0 [code=N] [signal=SIGKILL:9] [during=TEXT] [crash=TEXT]
//	startfail a.0 TEXT
//	interrupt a SIGINT:2     the user signals launcher a
//	ending a 58s             launcher a hears that the job's time ends then
//	wstop a.0 SIGUSR1:10     a rank was signaled itself
//	absent x TEXT            launcher x, which may be a stranger, does not take part
//	stopfrom x SIGINT:2 E    launcher x, which may be a stranger, asks in epoch E for a stop
//	lost b [killed]          the coordinator hears that b is dead
//	orphan b [killed]        b hears that the coordinator is dead
//	alone b                  b finds itself cut off; the coordinator, if it is alone a b, by b's silence
//	flight a                 somebody asks launcher a what the ranks did last
//	vital a.0 quiet=5s idle=5s in=3+ met=2 [halted] [stopped] [disk]   local rank 0 of node a is quiet; it has ended
//	                         3 collectives and is in the next, and 2 exchanges
//	awaits                   does the coordinator await others, to tell them of the end?
//	expire coord|a TIMER EPOCH [FLIGHT]
//
// What nodes run is train, or run=train:8,train:9:b2 of new: train --batch 8, and
// train --batch 9 of build b2.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 8 {
		t.Fatalf("found %d scenarios, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { runScenario(t, file) })
	}
}

func runScenario(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &sim{}
	var out strings.Builder
	for block := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
		commands, want, _ := strings.Cut(block, "\n----\n")
		commands = strings.TrimSuffix(commands, "\n----")
		s.log = nil
		for line := range strings.Lines(commands) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				if err := s.do(strings.Fields(line)); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
			}
		}
		got := strings.Join(s.log, "\n")
		fmt.Fprintf(&out, "%s\n\n", strings.TrimSuffix(commands+"\n----\n"+got, "\n"))
		if !*update && got != want {
			t.Errorf("after\n%s\ngot\n%s\nwant\n%s", commands, got, want)
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(strings.TrimSpace(out.String())+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// sim is a coordinator, nodes, and the messages between them.
type sim struct {
	coord *Coordinator
	nodes []*Node
	queue []letter
	log   []string
}

type letter struct {
	from, to string
	msg      Message
}

func (s *sim) apply(who string, effects []Effect) {
	for _, e := range effects {
		s.log = append(s.log, who+"> "+e.String())
		switch e := e.(type) {
		case Send:
			s.queue = append(s.queue, letter{who, e.To, e.Msg})
		case TakeFlight:
			s.apply(who, s.node(who).Flown(e, []Flown{{Rank: int(who[0] - 'a')}})) // of each node one
		case StartWorkers:
			for l := range e.Nodes[e.Self].Nproc {
				s.apply(who, s.node(who).Started(l, 100*(e.Self+1)+10*e.Epoch+l))
			}
		}
	}
}

func (s *sim) node(name string) *Node {
	i := int(name[0] - 'a')
	if len(name) != 1 || i < 0 || i >= len(s.nodes) {
		panic("no node " + name)
	}
	return s.nodes[i]
}

func (s *sim) do(f []string) error {
	opt := map[string]string{}
	var args []string
	for i, a := range f[1:] {
		if k, v, ok := strings.Cut(a, "="); ok && slices.Contains([]string{"nproc", "restarts", "want", "hosts", "code", "signal", "during", "crash", "expect", "run", "stuck", "least", "quiet", "idle", "in", "met", "together", "remind"}, k) {
			opt[k] = v
			if k == "during" {
				opt[k] = strings.Join(append([]string{v}, f[i+2:]...), " ")
				break
			}
			continue
		}
		args = append(args, a)
	}
	rest := func() string { return strings.Join(args[min(1, len(args)):], " ") }
	var node *Node
	var who string
	var local int
	if len(args) > 0 && f[0] != "expire" && f[0] != "start" && f[0] != "lost" {
		name, l, _ := strings.Cut(args[0], ".")
		who = name
		if f[0] != "stopfrom" && f[0] != "absent" {
			node = s.node(name)
		}
		local, _ = strconv.Atoi(l)
	}
	signal := func(s string) (string, int) {
		name, n, _ := strings.Cut(s, ":")
		num, _ := strconv.Atoi(n)
		return name, num
	}
	switch f[0] {
	case "new":
		return s.create(opt)
	case "start":
		if len(args) == 0 {
			s.apply("coord", s.coord.Start())
			for i := range s.nodes {
				args = append(args, string(rune('a'+i)))
			}
		}
		for _, a := range args {
			if a == "coord" {
				s.apply("coord", s.coord.Start())
				continue
			}
			s.apply(a, s.node(a).Start())
		}
	case "deliver", "without":
		for ; len(s.queue) > 0; s.queue = s.queue[1:] {
			switch p := s.queue[0]; {
			case f[0] == "without" && (p.from == who || p.to == who):
			case p.to == "":
				s.apply("coord", s.coord.Receive(p.from, p.msg))
			default:
				s.apply(p.to, s.node(p.to).Receive(p.msg))
			}
		}
	case "drop":
		s.queue = nil
	case "hello":
		s.apply(who, node.FromWorker(local, Message{Kind: KindHello, Text: node.job}))
	case "bye":
		s.apply(who, node.FromWorker(local, Message{Kind: KindBye}))
	case "raise":
		s.apply(who, node.FromWorker(local, Message{Kind: KindFail, Cause: &Cause{Text: rest()}}))
	case "unfit":
		s.apply(who, node.FromWorker(local, Message{Kind: KindFail, Cause: &Cause{Kind: CauseUnfit, Text: rest()}}))
	case "share":
		parts, _ := strconv.Atoi(args[1])
		s.apply(who, node.FromWorker(local, Message{Kind: KindShare, Code: parts}))
	case "wstop":
		name, n := signal(args[1])
		s.apply(who, node.FromWorker(local, Message{Kind: KindStop, Text: name, Code: n}))
	case "exchange":
		seq, _ := strconv.ParseUint(args[1], 10, 64)
		s.apply(who, node.FromWorker(local, Message{Kind: KindExchange, Seq: seq, Name: args[2], Blobs: [][]byte{[]byte(args[3])}}))
	case "exit":
		code, _ := strconv.Atoi(opt["code"])
		name, n := signal(opt["signal"])
		s.apply(who, node.Exited(local, Exit{Code: code, Signal: name, SignalNumber: n, During: opt["during"], Crash: opt["crash"]}))
	case "startfail":
		s.apply(who, node.StartFailed(local, errors.New(rest())))
	case "ending":
		left, err := time.ParseDuration(args[1])
		if err != nil {
			return err
		}
		s.apply(who, node.Ending(left))
	case "interrupt":
		name, n := signal(args[1])
		s.apply(who, node.Interrupt(name, n))
	case "lost":
		s.apply("coord", s.coord.Lost(args[0], losses[rest()]))
	case "stopfrom":
		name, n := signal(args[1])
		epoch, _ := strconv.Atoi(args[2])
		s.apply("coord", s.coord.Receive(who, Message{Kind: KindStop, Epoch: epoch, Text: name, Code: n}))
	case "absent":
		s.apply("coord", s.coord.Receive(who, Message{Kind: KindAbsent, Text: rest()}))
	case "awaits":
		s.log = append(s.log, fmt.Sprint("coord awaits others: ", s.coord.AwaitsOthers()))
	case "orphan":
		s.apply(who, node.Lost(losses[rest()]))
	case "alone":
		if args[0] == "a" {
			s.apply("coord", s.coord.Alone(rest()))
			break
		}
		s.apply(who, node.Alone())
	case "flight":
		s.apply(who, node.Flight())
	case "vital":
		s.apply(who, node.Vitals([]Vital{vital(local, opt, args[1:])}))
	case "expire":
		epoch, _ := strconv.Atoi(args[2])
		timer := Timer{Kind: TimerKind(args[1]), Epoch: epoch}
		if len(args) > 3 {
			timer.Flight, _ = strconv.Atoi(args[3])
		}
		if args[0] == "coord" {
			s.apply("coord", s.coord.Expired(timer))
		} else {
			s.apply(args[0], s.node(args[0]).Expired(timer))
		}
	default:
		return fmt.Errorf("unknown command %q", f[0])
	}
	return nil
}

// vital is what is seen of a rank.
func vital(local int, opt map[string]string, flags []string) Vital {
	v := Vital{Rank: local, Pid: 7, Met: make([]statuspage.Meetings, 2), During: "during step"}
	v.Quiet, _ = time.ParseDuration(opt["quiet"])
	v.Idle, _ = time.ParseDuration(opt["idle"])
	for k, key := range []string{"in", "met"} {
		n, in := strings.CutSuffix(opt[key], "+")
		v.Met[k].Ended, _ = strconv.ParseUint(n, 10, 64)
		v.Met[k].Begun = v.Met[k].Ended
		if in {
			v.Met[k].Begun++
		}
	}
	v.Stopped, v.Disk = slices.Contains(flags, "stopped"), slices.Contains(flags, "disk")
	v.Halted = v.Stopped || slices.Contains(flags, "halted")
	return v
}

func (s *sim) create(opt map[string]string) error {
	procs := strings.Split(opt["nproc"], ",")
	restarts, _ := strconv.Atoi(opt["restarts"])
	expect := len(procs)
	if n, err := strconv.Atoi(opt["expect"]); err == nil {
		expect = n
	}
	least, _ := strconv.Atoi(opt["least"])
	var hosts []string
	if opt["hosts"] != "" {
		hosts = strings.Split(opt["hosts"], ",")
	}
	run := make([]Command, len(procs))
	for i := range run {
		run[i] = Command{Program: "train", Digest: "b1"}
		if all := strings.Split(opt["run"], ","); i < len(all) && all[i] != "" {
			parts := strings.Split(all[i], ":")
			run[i].Program = parts[0]
			if len(parts) > 1 {
				run[i].Args = []string{"--batch", parts[1]}
			}
			if len(parts) > 2 {
				run[i].Digest = parts[2]
			}
		}
	}
	*s = sim{coord: NewCoordinator(CoordinatorConfig{
		Nodes: expect, Least: least, Window: 2 * time.Second, MaxRestarts: restarts, Job: "job", Together: opt["together"] != "", Self: "a", Run: run[0], Hosts: hosts,
		JoinWait: time.Minute, AckWait: 10 * time.Second, Settle: 50 * time.Millisecond, Grace: 10 * time.Second,
	})}
	s.coord.cfg.Remind, _ = time.ParseDuration(opt["remind"])
	s.coord.cfg.StuckAfter, _ = time.ParseDuration(opt["stuck"])
	for i, p := range procs {
		nproc, err := strconv.Atoi(p)
		if err != nil {
			return err
		}
		want := -1
		if w := strings.Split(opt["want"], ","); i < len(w) && w[i] != "" {
			want, _ = strconv.Atoi(w[i])
		}
		name := string(rune('a' + i))
		s.nodes = append(s.nodes, NewNode(NodeConfig{
			Info: NodeInfo{Name: name, Host: "host-" + name, Nproc: nproc, Want: want, Nodes: expect, Least: least},
			Run:  run[i],
			Key:  []byte("k"), Join: "a:1",
			Again: 200 * time.Millisecond, JoinWait: time.Minute, AnswerWait: time.Second, StopWait: time.Second, KillWait: time.Second, GoneWait: 30 * time.Second, StrangerWait: 2 * time.Second, Grace: 10 * time.Second,
		}))
	}
	return nil
}
