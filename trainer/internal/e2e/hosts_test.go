package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ebtrain/launch/netns"
)

// machine is one of the hosts that a test makes of this machine. It is gone when the
// test, or its process, has ended.
type machine struct {
	*netns.Host
	s *site
}

// Addresses of the two machines, IPv4 and IPv6.
var addresses = [2][2]string{{"10.9.0.1", "fd00:9::1"}, {"10.9.0.2", "fd00:9::2"}}

// needMachines skips a test where no machines can be made.
func needMachines(s *site) {
	s.t.Helper()
	if err := netns.Possible(); err != nil {
		s.t.Skip(err)
	}
}

// twoMachines makes node0 and node1, connected by a network of their own.
func twoMachines(s *site) [2]machine {
	s.t.Helper()
	needMachines(s)
	m := [2]machine{hold(s, "node0"), hold(s, "node1")}
	m[0].sh(fmt.Sprintf("ip link add eth0 type veth peer name eth0 netns %d", m[1].PID))
	for i := range m {
		m[i].sh(fmt.Sprintf("ip addr add %s/24 dev eth0; ip addr add %s/64 dev eth0 nodad; ip link set eth0 up",
			addresses[i][0], addresses[i][1]))
	}
	return m
}

// hold makes a machine without a link, for as long as the test lasts.
func hold(s *site, name string) machine {
	s.t.Helper()
	h, err := netns.Hold(name, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := h.Close(); err != nil {
			s.t.Error(err)
		}
	})
	return machine{h, s}
}

// enter is the command line that runs args on m, in the site.
func (m machine) enter(args ...string) []string { return m.Enter(m.s.dir, args...) }

// sh runs a script of shell on m, in the site.
func (m machine) sh(script string) {
	m.s.t.Helper()
	m.read(script)
}

// read is what a script of shell on m prints.
func (m machine) read(script string) string {
	m.s.t.Helper()
	args := m.enter("sh", "-ec", script)
	cmd := exec.Command(args[0], args[1:]...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		m.s.t.Fatalf("%s: %s: %v\n%s%s", m.Name, script, err, out, &stderr)
	}
	return string(out)
}

// launch starts ddplaunch on m.
func (m machine) launch(args ...string) *running {
	m.s.t.Helper()
	return m.s.startCommand(m.enter(append([]string{filepath.Join(bin, "ddplaunch"), "--nnodes", "2", "--rdzv-timeout", "10s"}, args...)...))
}

// launchBoth starts args on both machines, node 0 at address.
func launchBoth(m [2]machine, address string, args ...string) [2]*running {
	m[0].s.t.Helper()
	return [2]*running{
		m[0].launch(append([]string{"--node-rank", "0", "--rdzv-endpoint", address}, args...)...),
		m[1].launch(append([]string{"--join", address}, args...)...),
	}
}

// hint is the line with which node 0 waits for the others.
func hint(address string) string {
	return fmt.Sprintf("ddplaunch: waiting for another node; on it: ddplaunch --nnodes 2 --join %s ...\n", address)
}

// TestTwoHosts trains on two hosts, over IPv4 and IPv6, and wants every bit of
// the run of two ranks on one host.
func TestTwoHosts(t *testing.T) {
	long(t)
	s := newSite(t)
	s.env = []string{"EBTRAIN_KEY=a secret of the test, long enough"}
	m := twoMachines(s)
	m[0].s.must(on(2, tiny("one", "--steps", "6"))...)
	for out, address := range map[string]string{"v4": "10.9.0.1:29400", "v6": "[fd00:9::1]:29400"} {
		t.Run(out, func(t *testing.T) {
			for i, r := range launchBoth(m, address, tiny(out, "--steps", "6")...) {
				want := []string{hint(address), ""}[i]
				if e := r.wait(); e.code != 0 || e.stderr != want {
					t.Fatalf("node %d: %v", i, e)
				}
			}
			one, two := s.losses("one"), s.losses(out)
			if fmt.Sprint(one) != fmt.Sprint(two) {
				t.Errorf("losses on one host\n%v\nand on two\n%v", one, two)
			}
			s.sameFiles("one/ckpt", out+"/ckpt")
		})
	}
}

// TestUnevenHosts trains with --deterministic on hosts of three ranks and one, and wants every
// bit of a run of four on one host.
func TestUnevenHosts(t *testing.T) {
	long(t)
	s := newSite(t)
	s.env = []string{"EBTRAIN_KEY=a secret of the test, long enough"}
	m := twoMachines(s)
	s.must(on(4, tiny("one", "--steps", "6", "--deterministic"))...)
	const address = "10.9.0.1:29400"
	args := tiny("uneven", "--steps", "6", "--deterministic")
	for i, r := range []*running{
		m[0].launch(append([]string{"--node-rank", "0", "--rdzv-endpoint", address, "-nproc", "3"}, args...)...),
		m[1].launch(append([]string{"--join", address, "-nproc", "1"}, args...)...),
	} {
		if e := r.wait(); e.code != 0 {
			t.Fatalf("node %d: %v", i, e)
		}
	}
	s.sameFiles("one/ckpt", "uneven/ckpt")
}

// TestLossOnTwoHosts kills a rank of node 1, and cuts the network: every rank of
// both nodes ends, with one sentence.
func TestLossOnTwoHosts(t *testing.T) {
	long(t)
	s := newSite(t)
	s.env = []string{"EBTRAIN_KEY=a secret of the test, long enough"}
	m := twoMachines(s)
	begin := func(out string) [2]*running {
		both := launchBoth(m, "[fd00:9::1]:29400", append([]string{"-nproc", "2"}, tiny(out, "--steps", "1000000", "--print-every", "1")...)...)
		s.awaitStep(both[0], out, 2)
		return both
	}
	t.Run("rank", func(t *testing.T) {
		both := begin("killed")
		family := append(both[0].children(), both[1].children()...)
		victim := both[1].byRank()[3]
		s.kill(victim)
		gone(t, family)
		var all string
		for i, r := range both {
			e := r.wait()
			text := strings.TrimPrefix(e.stderr, hint("[fd00:9::1]:29400"))
			if e.code != 137 || !strings.Contains(text, "ddplaunch: rank 3 (node1, ") {
				t.Errorf("node %d: %v", i, e)
			}
			all += text
		}
		checkObituary(t, all, 4, victim, "SIGKILL")
	})
	t.Run("network", func(t *testing.T) {
		both := begin("cut")
		family := append(both[0].children(), both[1].children()...)
		m[0].sh("ip link set eth0 down")
		cut := time.Now()
		for i, says := range []string{
			"node 1 (node1): lost with ranks 2-3: its host is dead or unreachable",
			"node 0 (node0): lost with ranks 0-1 and the coordinator: its host is dead or unreachable",
		} {
			e := both[i].wait()
			text := strings.TrimPrefix(e.stderr, hint("[fd00:9::1]:29400"))
			for line := range strings.Lines(text) {
				if !strings.Contains(line, says) && !strings.HasPrefix(line, "ddplaunch: flight: ") {
					t.Errorf("node %d: want only %q, got %q", i, says, line)
				}
			}
			if e.code != 1 || !strings.HasSuffix(text, "ddplaunch: "+says+"\n") {
				t.Errorf("node %d: want exit code 1, %v", i, e)
			}
		}
		if took := time.Since(cut); took > atOnce {
			t.Errorf("noticed after %v", took)
		}
		gone(t, family)
	})
}

// TestHostsThatDoNotMeet is about nodes that look for each other in the wrong
// place: each says what is missing, in one sentence.
func TestHostsThatDoNotMeet(t *testing.T) {
	long(t)
	s := newSite(t)
	s.env = []string{"EBTRAIN_KEY=a secret of the test, long enough"}
	m := twoMachines(s)
	const alone = "ddplaunch: 1 of 2 nodes joined within 1s (node0); missing: node 1\n"
	const nobody = "ddplaunch: no coordinator answered at %s within 1s (dial tcp %[1]s: %s): check the address, and that node 0 runs\n"
	for name, c := range map[string]struct{ at, join, first, second string }{
		"another family": {"10.9.0.1:29400", "[fd00:9::1]:29400", hint("10.9.0.1:29400") + alone, fmt.Sprintf(nobody, "[fd00:9::1]:29400", "connect: connection refused")},
		"nobody there":   {"[fd00:9::1]:29401", "10.9.0.1:1", hint("[fd00:9::1]:29401") + alone, fmt.Sprintf(nobody, "10.9.0.1:1", "connect: connection refused")},
		"no way there":   {"", "192.0.2.1:29402", "", fmt.Sprintf(nobody, "192.0.2.1:29402", "connect: network is unreachable")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var nodes []*running
			var says []string
			if c.at != "" {
				nodes = append(nodes, m[0].launch(append([]string{"--rdzv-timeout", "1s", "--node-rank", "0", "--rdzv-endpoint", c.at}, tiny("x", "--steps", "2")...)...))
				says = append(says, c.first)
			}
			if c.join != "" {
				nodes = append(nodes, m[1].launch(append([]string{"--rdzv-timeout", "1s", "--join", c.join}, tiny("x", "--steps", "2")...)...))
				says = append(says, c.second)
			}
			for i, r := range nodes {
				e := r.wait()
				if e.code != 1 || !strings.HasPrefix(e.stderr, says[i]) || strings.Count(e.stderr, "\n") != strings.Count(says[i], "\n") {
					t.Errorf("want exit code 1 and only %q, %v", says[i], e)
				}
			}
		})
	}
}

// TestHostsWithDisksOfTheirOwn leaves the run directory out of what the hosts
// share: each makes its own, from which the run goes on, with equal bits, and with the newest
// flags where one of them was absent for a while.
func TestHostsWithDisksOfTheirOwn(t *testing.T) {
	long(t)
	s := newSite(t)
	s.env = []string{"EBTRAIN_KEY=a secret of the test, long enough"}
	m := twoMachines(s)
	if err := os.Mkdir(s.path("runs"), 0o755); err != nil {
		t.Fatal(err)
	}
	m[1].sh("mount -t tmpfs none runs")
	begin := append([]string{"-nproc", "2"}, tiny("runs/a", "--steps", "2")...)
	goOn := []string{"-nproc", "2", "train", "--resume", "--out", "runs/a", "--threads", "1", "--steps", "4"}
	for _, args := range [][]string{begin, goOn} {
		for i, r := range launchBoth(m, "10.9.0.1:29400", args...) {
			if e := r.wait(); e.code != 0 || strings.TrimPrefix(e.stderr, hint("10.9.0.1:29400")) != "" {
				t.Fatalf("node %d: %v", i, e)
			}
		}
		m[1].sh("test -s runs/a/config.json -a -s runs/a/rank-2.log -a -s runs/a/rank-3.log -a ! -e runs/a/rank-0.log -a ! -e runs/a/metrics.jsonl; test -z \"$(ls -A runs/a | grep ^.seen)\"")
	}
	m[1].sh("mkdir other && cp -r runs/a/ckpt other/ckpt")
	s.sameFiles("runs/a/ckpt", "other/ckpt")
	s.must(on(4, tiny("one", "--steps", "4"))...)
	if one, two := s.losses("one"), s.losses("runs/a"); fmt.Sprint(one) != fmt.Sprint(two) {
		t.Errorf("losses on one host\n%v\nand on two\n%v", one, two)
	}
	// One of them goes on alone, with other flags: with both again these are the run's.
	if e := m[0].launch("--nnodes", "1", "-nproc", "2", "train", "--resume", "--out", "runs/a", "--steps", "5", "--ckpt-every", "1").wait(); e.code != 0 {
		t.Fatal(e)
	}
	for i, r := range launchBoth(m, "10.9.0.1:29400", "-nproc", "2", "train", "--resume", "--out", "runs/a") {
		if e := r.wait(); e.code != 0 {
			t.Fatalf("node %d: %v", i, e)
		}
	}
	m[1].sh(`grep -q '"ckpt-every": "1"' runs/a/config.json && test -d runs/a/ckpt/step-00000005`)
}

// TestHostsThatShareFiles trains on two nodes that share /dev/shm and a host name,
// as containers of one machine may, but no network: they are two hosts.
func TestHostsThatShareFiles(t *testing.T) {
	long(t)
	s := newSite(t)
	s.env = []string{"EBTRAIN_KEY=a secret of the test, long enough"}
	m := twoMachines(s)
	s.must(on(2, tiny("one", "--steps", "2"))...)
	for i := range m {
		m[i].sh("umount /dev/shm; hostname twin")
	}
	for i, r := range launchBoth(m, "10.9.0.1:29400", tiny("two", "--steps", "2")...) {
		want := []string{hint("10.9.0.1:29400"), ""}[i]
		if e := r.wait(); e.code != 0 || e.stderr != want {
			t.Fatalf("node %d: %v", i, e)
		}
	}
	s.sameFiles("one/ckpt", "two/ckpt")
}

// TestLaunchersOfOneHost trains under two launchers of one host and network, whose
// ranks share memory after they have tried.
func TestLaunchersOfOneHost(t *testing.T) {
	long(t)
	s := newSite(t)
	s.env = []string{"EBTRAIN_KEY=a secret of the test, long enough"}
	m := twoMachines(s)
	s.must(on(4, tiny("one", "--steps", "2"))...)
	m[1] = m[0]
	for i, r := range launchBoth(m, "10.9.0.1:29400", append([]string{"-nproc", "2"}, tiny("two", "--steps", "2")...)...) {
		want := []string{hint("10.9.0.1:29400"), ""}[i]
		if e := r.wait(); e.code != 0 || e.stderr != want {
			t.Fatalf("node %d: %v", i, e)
		}
	}
	s.sameFiles("one/ckpt", "two/ckpt")
	for rank := range 4 {
		log, err := os.ReadFile(s.path("two", fmt.Sprintf("rank-%d.log", rank)))
		if err != nil || strings.Contains(string(log), "TCP takes its place") {
			t.Errorf("rank %d does not share memory: %s, %v", rank, log, err)
		}
	}
}

// TestHostsWithOtherData has the same --data hold something else on each host: all
// ranks say so before they begin.
func TestHostsWithOtherData(t *testing.T) {
	long(t)
	s := newSite(t)
	s.env = []string{"EBTRAIN_KEY=a secret of the test, long enough"}
	m := twoMachines(s)
	for out, seed := range map[string]string{"shards": "1", "other": "2"} {
		s.must("mkshards", "synth", "--size", "32", "--seed", seed, "--train", "16", "--val", "8", "--test", "8", "--out", out)
	}
	m[1].sh("mount --bind other shards")
	for i, r := range launchBoth(m, "10.9.0.1:29400", tiny("a", "--data", "shards", "--steps", "2")...) {
		e := r.wait()
		text := strings.TrimPrefix(e.stderr, hint("10.9.0.1:29400"))
		if e.code != 2 || !strings.Contains(text, "train: --data holds other samples on rank 0 (digest ") {
			t.Errorf("node %d: want exit code 2 and what differs, %v", i, e)
		}
	}
	if _, err := os.Stat(s.path("a")); err == nil {
		t.Error("the run was begun")
	}
}

// TestAddresses has two hosts meet in every way in which node 0 may be called.
func TestAddresses(t *testing.T) {
	long(t)
	s := newSite(t)
	s.env = []string{"EBTRAIN_KEY=a secret of the test, long enough"}
	m := twoMachines(s)
	local := strings.TrimSpace(m[0].read("ip -6 -o addr show dev eth0 scope link | sed 's/.*inet6 \\([^/]*\\).*/\\1/'"))
	for i, hosts := range []string{"127.0.1.1 node0\n", "10.9.0.1 node0\n"} {
		file := fmt.Sprint("hosts", i)
		if err := os.WriteFile(s.path(file), []byte("127.0.0.1 localhost\n"+hosts), 0o644); err != nil {
			t.Fatal(err)
		}
		m[i].sh("mount --bind " + file + " /etc/hosts")
	}
	t.Run("own name on the loopback", func(t *testing.T) { s.meet(t, m, "node0:29500", "node0:29500", "10.9.0.1:29500") })
	t.Run("with a zone", func(t *testing.T) {
		at := fmt.Sprintf("[%s%%eth0]:29501", local)
		s.meet(t, m, at, at, at)
	})
	t.Run("none", func(t *testing.T) { s.meet(t, m, "", "", "10.9.0.1:") })
	t.Run("a name that comes later", func(t *testing.T) {
		time.AfterFunc(700*time.Millisecond, func() {
			if err := os.WriteFile(s.path("hosts1"), []byte("10.9.0.1 node0 late\n"), 0o644); err != nil {
				t.Error(err)
			}
		})
		s.meet(t, m, "10.9.0.1:29502", "late:29502", "10.9.0.1:29502")
	})
	t.Run("only IPv6", func(t *testing.T) {
		for i := range m {
			m[i].sh(fmt.Sprintf("ip addr del %s/24 dev eth0", addresses[i][0]))
		}
		s.meet(t, m, "", "", "[fd00:9::1]:")
	})
}

// meet trains on both machines: node 0 is told that it is at, and must say that
// others join it at says; node 1 joins it at join, or at what node 0 says.
func (s *site) meet(t *testing.T, m [2]machine, at, join, says string) {
	t.Helper()
	out := strings.NewReplacer(" ", "-", "/", "-").Replace(t.Name())
	args := []string{"--node-rank", "0"}
	if at != "" {
		args = append(args, "--rdzv-endpoint", at)
	}
	first := m[0].launch(append(args, tiny(out, "--steps", "2")...)...)
	if join == "" {
		join = first.invitation(t)
	}
	second := m[1].launch(append([]string{"--join", join}, tiny(out, "--steps", "2")...)...)
	for i, r := range []*running{first, second} {
		if e := r.wait(); e.code != 0 || i == 0 && !strings.Contains(e.stderr, " --join "+says) {
			t.Errorf("node %d: want a good end and --join %s, %v", i, says, e)
		}
	}
}

// invitation is where node 0 says that others join it.
func (r *running) invitation(t *testing.T) string {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < patience/2; time.Sleep(5 * time.Millisecond) {
		if _, after, ok := strings.Cut(r.err.String(), " --join "); ok && strings.Contains(after, "\n") {
			return strings.Fields(after)[0]
		}
	}
	t.Fatalf("node 0 does not say where it is: %s", r.err.String())
	return ""
}
