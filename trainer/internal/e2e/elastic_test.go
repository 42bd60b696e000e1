package e2e

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestElastic trains with 2 to 4 launchers, each of which stands for a host: it
// begins with four, of which one is killed, so that two go on and one is spare;
// the spare takes the place of another that is killed; and when two more come, all
// four go on. The losses and the last checkpoint are those of a run that nobody
// disturbed, bit for bit.
func TestElastic(t *testing.T) {
	long(t)
	s := newSite(t)
	s.env = []string{"EBTRAIN_KEY=a secret of the test, long enough"}
	args := tiny("a", "--deterministic", "--steps", "1000000", "--ckpt-every", "5")
	launch := func(more ...string) *running {
		return s.start(append(append([]string{"ddplaunch", "--nnodes", "2:4", "--rdzv-timeout", "20s"}, more...), args...)...)
	}
	first := launch("--node-rank", "0", "--rdzv-endpoint", "127.0.0.1:0")
	at := first.invitation(t)
	others := []*running{launch("--join", at), launch("--join", at), launch("--join", at)}
	// Who comes late is taken in late, so epochs have no numbers here: what node 0 says
	// is looked for behind what it had said before.
	said := 0
	epoch := func(says string) {
		t.Helper()
		line := regexp.MustCompile(`ddplaunch: epoch \d+: ` + says)
		for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
			if at := line.FindStringIndex(first.err.String()[said:]); at != nil {
				said += at[1]
				return
			}
			if time.Since(begun) > patience/2 {
				t.Fatalf("no %v: %s", line, first.err.String())
			}
		}
	}
	first.awaitWorld(4)
	s.awaitStep(first, "a", 5)
	said = len(first.err.String())
	others[0].signal(syscall.SIGKILL)
	epoch("node ")
	first.awaitWorld(2)
	// Who is spare says so, and has no rank; the other is killed.
	var spare, busy *running
	for begun := time.Now(); spare == nil; time.Sleep(5 * time.Millisecond) {
		for i, r := range others[1:] {
			if r.worldSize() == 0 && others[2-i].worldSize() == 2 && strings.Contains(r.err.String(), "ddplaunch: this node is spare") {
				spare, busy = r, others[2-i]
			}
		}
		if time.Since(begun) > patience/2 {
			t.Fatalf("nobody is spare: %s", first.err.String())
		}
	}
	s.awaitStep(first, "a", int64(len(s.losses("a")))+10)
	busy.signal(syscall.SIGKILL)
	epoch(`node 1 \(`)
	s.awaitStep(first, "a", int64(len(s.losses("a")))+10)
	more := []*running{launch("--join", at), launch("--join", at)}
	epoch(`from \d to 4 nodes, with `)
	first.awaitWorld(4)
	s.awaitStep(first, "a", int64(len(s.losses("a")))+10)
	spare.signal(syscall.SIGTERM)
	for i, r := range append(more, first, spare) {
		if e := r.wait(); e.code != 75 {
			t.Errorf("launcher %d: want exit code 75, %v", i, e)
		}
	}
	many := s.losses("a")
	steps := len(many)
	s.must(tiny("whole", "--deterministic", "--steps", fmt.Sprint(steps))...)
	if one := s.losses("whole"); fmt.Sprint(one) != fmt.Sprint(many) {
		t.Errorf("the losses of %d steps differ from those of the undisturbed run", steps)
	}
	one, other := s.content(fmt.Sprintf("whole/ckpt/step-%08d", steps)), s.content(fmt.Sprintf("a/ckpt/step-%08d", steps))
	for name := range one { // state.json has the number of ranks
		if strings.HasSuffix(name, ".safetensors") && !bytes.Equal(one[name], other[name]) {
			t.Errorf("%s differs from that of the undisturbed run", name)
		}
	}
}

// worldSize is the number of ranks that the first rank of this launcher's node was told,
// 0 if the node has none.
func (r *running) worldSize() int {
	for _, pid := range r.children() {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			continue // it has ended
		}
		for kv := range bytes.SplitSeq(environ, []byte{0}) {
			if value, ok := bytes.CutPrefix(kv, []byte("WORLD_SIZE=")); ok {
				if n, err := strconv.Atoi(string(value)); err == nil {
					return n
				}
			}
		}
	}
	return 0
}

// awaitWorld waits until the ranks of this node are of so many.
func (r *running) awaitWorld(n int) {
	r.s.t.Helper()
	for begun := time.Now(); r.worldSize() != n; time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > patience/2 {
			r.s.t.Fatalf("there are not %d ranks: %s", n, r.err.String())
		}
	}
}

// TestElasticWithDisksOfTheirOwn has a host come later to a job whose run directory it
// does not see: it is sent the checkpoint, keeps one of its own from then on, and the
// losses are those of a run that nobody disturbed; of a model whose samples are a chain,
// too, which has flags that follow from others.
func TestElasticWithDisksOfTheirOwn(t *testing.T) {
	long(t)
	endless := strings.Fields("--deterministic --steps 1000000 --ckpt-every 5")
	t.Run("bidvl", func(t *testing.T) { newSite(t).hostComesLater(0, append(tiny("runs/a"), endless...), tiny("whole")) })
	t.Run("a chain", func(t *testing.T) {
		args := strings.Fields("train --preset bism-board-dsm --data checkerboard:train=500 --batch 8 --samples 4 --threads 1 --out")
		newSite(t).hostComesLater(0, slices.Concat(args, []string{"runs/a"}, endless), slices.Concat(args, []string{"whole"}))
	})
}

// TestElasticResumedWithDisksOfTheirOwn: of a job that only goes on with a run a host that
// comes later is sent, with the checkpoint, what the run is.
func TestElasticResumedWithDisksOfTheirOwn(t *testing.T) {
	long(t)
	s := newSite(t)
	args := strings.Fields("train --preset bism-board-dsm --data checkerboard:train=500 --batch 8 --samples 4 --threads 1 --deterministic --ckpt-every 5 --steps 1000000 --out")
	begun := s.start(append(args, "runs/a")...)
	s.awaitStep(begun, "runs/a", 5)
	begun.signal(syscall.SIGTERM)
	begun.wait()
	// To say where the data are begins no run on the host that has none.
	s.hostComesLater(len(s.losses("runs/a")), strings.Fields("train --resume --data checkerboard:train=500 --out runs/a"), append(args, "whole"))
}

// TestElasticWithoutWhoIsUnfit: a host that comes later, and on which the job's run cannot be,
// says so, and ends. The others say so, too, and go on.
func TestElasticWithoutWhoIsUnfit(t *testing.T) {
	long(t)
	t.Run("another run", func(t *testing.T) {
		newSite(t).unfitComes(`runs/a holds another run than this job's: `, func(m machine) {
			if e := m.launch(append([]string{"--nnodes", "1"}, tiny("runs/a", "--steps", "1")...)...).wait(); e.code != 0 {
				t.Fatal(e)
			}
		})
	})
	t.Run("other files", func(t *testing.T) { // which a rank sees once all have agreed
		newSite(t).unfitComes(`runs/a is not empty \(it has notes\)`, func(m machine) { m.sh("mkdir runs/a && touch runs/a/notes") })
	})
}

// unfitComes has a host come to a job, once prepare has made it one that cannot take part, and why.
func (s *site) unfitComes(why string, prepare func(m machine)) {
	t := s.t
	t.Helper()
	s.env = []string{"EBTRAIN_KEY=a secret of the test, long enough"}
	m := twoMachines(s)
	m[0].sh("mkdir runs")
	m[1].sh("mount -t tmpfs none runs")
	prepare(m[1])
	const at = "10.9.0.1:29400"
	args := append([]string{"--nnodes", "1:2"}, tiny("runs/a", "--steps", "1000000")...)
	first := m[0].launch(append([]string{"--node-rank", "0", "--rdzv-endpoint", at}, args...)...)
	s.awaitStep(first, "runs/a", 5)
	second := m[1].launch(append([]string{"--join", at}, args...)...)
	why = `rank 1 \(.*, pid \d+\): ` + why
	if e, says := second.wait(), regexp.MustCompile("train: "+why); e.code != 1 || !says.MatchString(e.stderr) {
		t.Errorf("the host that came: want exit code 1 and %v, %v", says, e)
	}
	first.awaitWorld(1)
	s.awaitStep(first, "runs/a", int64(len(s.losses("runs/a")))+5)
	first.signal(syscall.SIGTERM)
	if e, says := first.wait(), regexp.MustCompile(`epoch 2: node 1 \(.*\) is left out: `+why); e.code != 75 || !says.MatchString(e.stderr) {
		t.Errorf("the other: want exit code 75 and %v, %v", says, e)
	}
}

// hostComesLater trains args, whose run is in runs/a and has done from steps, on one host
// and then on two, and undisturbed, whose run is in whole, for as many steps.
func (s *site) hostComesLater(from int, args, undisturbed []string) {
	t := s.t
	t.Helper()
	s.env = []string{"EBTRAIN_KEY=a secret of the test, long enough"}
	m := twoMachines(s)
	m[0].sh("mkdir -p runs")
	m[1].sh("mount -t tmpfs none runs")
	const at = "10.9.0.1:29400"
	args = append([]string{"--nnodes", "1:2"}, args...)
	first := m[0].launch(append([]string{"--node-rank", "0", "--rdzv-endpoint", at}, args...)...)
	s.awaitStep(first, "runs/a", int64(from)+5)
	second := m[1].launch(append([]string{"--join", at}, args...)...)
	for begun := time.Now(); !strings.Contains(first.err.String(), "ddplaunch: epoch 1: from 1 to 2 nodes, with "); time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > patience/2 {
			t.Fatalf("no epoch 1: %s", first.err.String())
		}
	}
	s.awaitStep(first, "runs/a", int64(len(s.losses("runs/a")))+10)
	first.signal(syscall.SIGTERM)
	for i, r := range []*running{first, second} {
		if e := r.wait(); e.code != 75 {
			t.Errorf("launcher %d: want exit code 75, %v", i, e)
		} else if sent := strings.Contains(e.stderr, "this host's newest checkpoint is not the job's"); sent != (i == 1) {
			t.Errorf("launcher %d says that its host is sent a checkpoint: %v, %v", i, sent, e)
		}
	}
	m[1].sh("mkdir own && cp -r runs/a/ckpt own/ckpt && test -s runs/a/config.json -a -s runs/a/rank-1.log -a ! -e runs/a/metrics.jsonl")
	many := s.losses("runs/a")
	last := fmt.Sprintf("/ckpt/step-%08d", len(many))
	s.sameFiles("runs/a"+last, "own"+last)
	s.must(append(undisturbed, "--deterministic", "--steps", fmt.Sprint(len(many)))...)
	if one := s.losses("whole"); fmt.Sprint(one) != fmt.Sprint(many) {
		t.Errorf("the losses of %d steps differ from those of the undisturbed run", len(many))
	}
}
