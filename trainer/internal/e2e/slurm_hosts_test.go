package e2e

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestSlurmHosts runs jobs under a real Slurm whose four nodes are machines with
// networks of their own.
func TestSlurmHosts(t *testing.T) {
	long(t)
	s := newSite(t)
	if err := os.Symlink(s.bin, s.path("bin")); err != nil {
		t.Fatal(err)
	}
	c := newCluster(s, fourMachines(s))
	s.must(on(4, tiny("four", "--steps", "4"))...)

	// Two jobs with the same key at once, on the same two nodes, without PMI: each
	// finds its own node 0, by the first host's name, on one of few ports.
	keyed := []string{"-N2", "--nodelist=node0,node1", "--export=ALL,EBTRAIN_KEY=a secret of the test; long enough", "bin/ddplaunch", "--port-range", "29400:29415", "-nproc", "2"}
	var both []*running
	for i := range 2 {
		both = append(both, c.srun(append(slices.Clone(keyed), tiny(fmt.Sprint("keyed", i), "--steps", "4")...)...))
	}
	for i, r := range both {
		if e := r.wait(); e.code != 0 {
			t.Fatalf("job %d: %v", i, e)
		}
		s.sameFiles("four/ckpt", fmt.Sprintf("keyed%d/ckpt", i))
	}

	c.mistakesWithoutStore()

	// No launcher, and no key of the user's.
	e := c.srun(append([]string{"-N4", "-n4", "--mpi=pmi2", "bin/train"}, tiny("pmi", "--steps", "4")[1:]...)...).wait()
	if e.code != 0 || e.stderr != "" {
		t.Fatalf("without a launcher: %v", e)
	}
	s.sameFiles("four/ckpt", "pmi/ckpt")

	// The data have a network of their own, and a host is cut off from the other one.
	r := c.srun(append([]string{"-N4", "--mpi=pmi2", "bin/ddplaunch", "--network", "data0", "--port-range", "29500:29502"}, tiny("cut", "--steps", "1000000", "--print-every", "1")...)...)
	s.awaitStep(r, "cut", 2)
	for i, m := range c.machines {
		data := regexp.MustCompile(`10\.78\.0\.\d+:2950[0-2]\b`).FindAllString(m.read("ss -Htn state established"), -1)
		if len(data) == 0 {
			t.Errorf("node %d has no connections on the network for data", i)
		}
	}
	// Down, not only off the bridge: a bridge has the least of its ports' addresses, and
	// a port by itself that has it too goes on to take what is sent to node 0.
	c.machines[0].sh("ip link set port3 down; ip link set dataport3 down")
	cut := time.Now()
	c.await("all ranks are gone", func() bool { return len(c.slurmRanks()) == 0 })
	t.Logf("all ranks are gone %v after the cut", time.Since(cut))
	if took := time.Since(cut); took > atOnce {
		t.Errorf("all ranks are gone after %v", took)
	}
	c.machines[0].sh("ip link set port3 up; ip link set dataport3 up")
	if e := r.wait(); e.code != 1 || !strings.Contains(e.stderr, "node 3 (node3): lost with rank 3: its host is dead or unreachable") {
		t.Errorf("want exit code 1 and who was cut off, %v", e)
	}
	c.slurmGone()
}

// mistakesWithoutStore are of one task of three, which have a secret and no store: all others hear
// of it, also who comes later, and nobody waits for the whole --rdzv-timeout.
func (c *cluster) mistakesWithoutStore() {
	c.t.Helper()
	const late = `[ $SLURM_PROCID != 2 ] || sleep 3; `
	const noProgram = `exec bin/ddplaunch /nonexistent; exec bin/ddplaunch "$@"`
	const absent = "of the step does not take part: program /nonexistent does not exist"
	for name, m := range map[string]struct{ script, says string }{
		"first":          {late + `[ $SLURM_PROCID != 0 ] || ` + noProgram, "task 0 (node0) " + absent},
		"second":         {late + `[ $SLURM_PROCID != 1 ] || ` + noProgram, "task 1 (node1) " + absent},
		"one is refused": {late + `[ $SLURM_PROCID != 1 ] || exec bin/ddplaunch "$@" --batch 16; exec bin/ddplaunch "$@"`, `node node1 was refused: of train it has "--batch", node 0 has no argument 17`},
	} {
		args := []string{"-N3", "--nodelist=node0,node1,node2", "--export=ALL,EBTRAIN_KEY=a secret of the test; long enough", "sh", "-c", m.script, "sh"}
		e := c.srun(append(args, tiny("never", "--steps", "2")...)...).wait()
		if e.code == 0 || strings.Count(e.stderr, m.says) < 2 {
			c.t.Errorf("%s: want %q from both others, %v", name, m.says, e)
		}
	}
	c.slurmGone()
}
