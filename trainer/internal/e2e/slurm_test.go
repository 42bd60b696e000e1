package e2e

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSlurm runs jobs under a real Slurm of four nodes on this machine: what launch/README.md
// says, as it is written there, and what becomes of a job when something breaks.
func TestSlurm(t *testing.T) {
	long(t)
	s := newSite(t)
	if err := os.Symlink(s.bin, s.path("bin")); err != nil {
		t.Fatal(err)
	}
	if onLoopbackOnly(t) {
		t.Skip("needs a network beside the loopback, by which nodes reach each other")
	}
	c := newCluster(s, nil)
	c.scripts()
	s.must(on(4, tiny("four", "--steps", "4"))...)
	c.beside = c.beginDeadline() // takes half a minute, beside the rest
	for _, sub := range []struct {
		name string
		run  func(*testing.T, *cluster)
	}{
		{"nothing to choose", nothingToChoose},
		{"no launcher", noLauncher},
		{"killed", killedUnderSlurm},
		{"stopped", stoppedUnderSlurm},
		{"mistakes", mistakesUnderSlurm},
		{"died at once", diedAtOnce},
		{"requeue", requeued},
		{"array", array},
	} {
		c.run(t, sub.name, sub.run)
	}
	c.awaitDeadline(c.beside)
}

// nothingToChoose is the first line of its Slurm section: two nodes, and four, give the bits of
// as many ranks on one host.
func nothingToChoose(t *testing.T, c *cluster) {
	for nodes, nproc := range map[string]string{"4": "1", "2": "2"} {
		out := "on" + nodes
		e := c.srun(append([]string{"-N" + nodes, "--mpi=pmi2", "bin/ddplaunch", "-nproc", nproc}, tiny(out, "--steps", "4")...)...).wait()
		if e.code != 0 || e.stderr != "" {
			t.Fatalf("%s nodes: %v", nodes, e)
		}
		c.sameFiles("four/ckpt", out+"/ckpt")
	}
	c.slurmGone()
}

// noLauncher starts a task for each rank, where there is PMI and where there is a
// key; on one node without a network.
func noLauncher(t *testing.T, c *cluster) {
	for out, args := range map[string][]string{
		"tasks": {"-N3", "-n4", "--mpi=pmi2"},
		"keyed": {"-N1", "-n4", "--export=ALL,EBTRAIN_KEY=a secret of the test; long enough"},
	} {
		e := c.srun(append(append(args, "bin/train"), tiny(out, "--steps", "4")[1:]...)...).wait()
		if e.code != 0 || e.stderr != "" {
			t.Fatalf("%s: %v", out, e)
		}
		c.sameFiles("four/ckpt", out+"/ckpt")
		c.checkLogs(out, 4)
		for line := range strings.Lines(e.stdout) {
			if !strings.HasPrefix(line, "[0] ") {
				t.Errorf("%s: a line of no rank, or of another than rank 0: %q", out, line)
			}
		}
	}
	e := c.srun("-N2", "-n4", "--mpi=pmi2", "bin/collbench", "--sizes", "4K", "--iters", "50", "--max-time", "50ms").wait()
	if e.code != 0 || e.stderr != "" || !strings.HasPrefix(e.stdout, "[0] # all-reduce sum f32, 4 ranks on ") || !regexp.MustCompile(`\n\[0\] # +bytes .*\n\[0\] +4096 .* 0\n`).MatchString(e.stdout) {
		t.Errorf("collbench: %v", e)
	}
	c.slurmGone()
}

// killedUnderSlurm kills a rank, and what looks after one: all tasks end at once and
// say who it was.
func killedUnderSlurm(t *testing.T, c *cluster) {
	launched := []string{"-N2", "--nodelist=n0,n1", "--mpi=pmi2", "bin/ddplaunch", "-nproc", "2", "train"}
	alone := []string{"-N2", "--nodelist=n0,n1", "--ntasks-per-node=2", "--mpi=pmi2", "bin/train"}
	for name, k := range map[string]struct {
		args   []string
		parent bool
		code   int
		says   string
	}{
		"rank of ddplaunch": {launched, false, 137, `rank 2 \(n1, pid %d\): killed by SIGKILL during `},
		"rank alone":        {alone, false, 137, `rank 2 \(n1, pid %d\): killed by SIGKILL during `},
		"launcher":          {launched, true, 1, `node 1 \(n1\): its launcher was killed, ranks 2-3 with it`},
		"task":              {alone, true, 1, `node 2 \(n1\): its launcher was killed, rank 2 with it`},
	} {
		c.run(t, name, func(t *testing.T, c *cluster) {
			out := strings.ReplaceAll(name, " ", "-")
			r := c.srun(append(slices.Clone(k.args), tiny(out, "--steps", "1000000", "--print-every", "1")[1:]...)...)
			c.awaitStep(r, out, 2)
			victim := c.slurmRanks()[2]
			says := k.says
			if strings.Contains(says, "%d") {
				says = fmt.Sprintf(says, victim)
			}
			if k.parent {
				victim = parentOf(t, victim)
			}
			if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			killed := time.Now()
			c.slurmGone()
			took := time.Since(killed)
			t.Logf("all ranks and launchers are gone after %v", took)
			if took > atOnce {
				t.Errorf("gone after %v, want %v at most", took, atOnce)
			}
			e := r.wait()
			said := regexp.MustCompile("(?m)^(ddplaunch|train|\\[[0-9,-]+\\] train): "+says).FindAllString(e.stderr, -1)
			if len(said) == 0 || len(said) > 8 { // equal ones together, if they come in time
				t.Errorf("want %s, once at most from each launcher and rank, in %s", says, e.stderr)
			}
			if code := e.code; code != k.code && !(k.parent && code == 137) { // srun's is the largest of its tasks'
				t.Errorf("exit code %d, want %d", code, k.code)
			}
		})
	}
}

// parentOf is the process that started another.
func parentOf(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	var state string
	var parent int
	if _, err := fmt.Sscan(string(b[strings.LastIndexByte(string(b), ')')+1:]), &state, &parent); err != nil {
		t.Fatal(err)
	}
	return parent
}

// stoppedUnderSlurm has Slurm ask a step to stop: all ranks do, at one step, with a
// checkpoint.
func stoppedUnderSlurm(t *testing.T, c *cluster) {
	r := c.srun(append([]string{"-N2", "-n2", "--mpi=pmi2", "bin/train"}, tiny("stopped", "--steps", "1000000")[1:]...)...)
	c.awaitStep(r, "stopped", 2)
	c.ask("scancel", "--user=root", "--signal=USR1", "--name=train")
	e := r.wait()
	if e.code != 75 || strings.Count(e.stderr, "train: stopped before the end; the same command with --resume goes on") < 1 {
		t.Errorf("want exit code 75, %v", e)
	}
	if len(c.content("stopped/ckpt")) == 0 {
		t.Error("no checkpoint was written")
	}
	c.slurmGone()
}

// mistakesUnderSlurm are ended by one sentence from each task, at once.
func mistakesUnderSlurm(t *testing.T, c *cluster) {
	for name, m := range map[string]struct {
		args []string
		says string
		n    int
		code int
	}{
		"no secret":          {[]string{"-N2", "bin/ddplaunch", "train"}, "ddplaunch: the tasks of this step have no common secret: start them with srun --mpi=pmi2, ", 2, 2},
		"no secret, alone":   {[]string{"-N1", "-n3", "bin/train"}, "train: the tasks of this step have no common secret: start them with srun --mpi=pmi2, ", 3, 2},
		"two on a node":      {[]string{"-N1", "-n2", "--mpi=pmi2", "bin/ddplaunch", "train"}, "ddplaunch: srun has started several ddplaunch on one node: want one on each (srun --nodes=1 --ntasks=1), or no ddplaunch", 2, 2},
		"another number":     {[]string{"-N2", "--mpi=pmi2", "bin/ddplaunch", "--nnodes", "3", "train"}, "ddplaunch: --nnodes 3, but srun has started ddplaunch on 2 nodes: leave --nnodes out", 2, 2},
		"no GPU":             {[]string{"-N2", "--mpi=pmi2", "bin/ddplaunch", "-nproc", "gpu", "train"}, "ddplaunch: --nproc-per-node gpu: this node shows no GPU", 2, 2},
		"node 0 cannot":      {[]string{"-N2", "--mpi=pmi2", "bin/ddplaunch", "--rdzv-endpoint", "203.0.113.7:29400", "train"}, "not an address of this machine, which is node 0: 203.0.113.7", 2, 1},
		"no program on one":  {[]string{"-N2", "--mpi=pmi2", "sh", "-c", `[ $SLURM_PROCID = 0 ] || exec bin/ddplaunch /nonexistent; exec bin/ddplaunch "$@"`, "sh", "train"}, "program /nonexistent does not exist", 2, 2},
		"no step of the job": {[]string{"-N1", "env", "-u", "SLURM_STEP_NUM_TASKS", "SLURM_JOB_NUM_NODES=2", "bin/ddplaunch", "train"}, "ddplaunch: the job has 2 nodes, but ddplaunch was not started by srun", 1, 2},
	} {
		c.run(t, name, func(t *testing.T, c *cluster) {
			args := m.args
			if i := slices.Index(args, "bin/ddplaunch"); name == "no GPU" {
				args = slices.Insert(slices.Clone(args), i, "env", "CUDA_VISIBLE_DEVICES=")
			}
			e := c.srun(append(slices.Clone(args), tiny("never", "--steps", "2")[1:]...)...).wait()
			if e.code != m.code || strings.Count(e.stderr, m.says) != m.n {
				t.Errorf("want exit code %d and %d times %q, %v", m.code, m.n, m.says, e)
			}
			for line := range strings.Lines(e.stderr) {
				if !strings.Contains(line, m.says) && !strings.HasPrefix(line, "srun: ") {
					t.Errorf("more than one sentence: %s", line)
				}
			}
		})
	}
	e := c.srun(append([]string{"-N2", "--mpi=pmi2", "env", "CUDA_VISIBLE_DEVICES=0,1", "bin/ddplaunch", "-nproc", "gpu"}, tiny("gpus", "--steps", "4")...)...).wait()
	if e.code != 0 {
		t.Errorf("two GPUs on each of two nodes: %v", e)
	}
	c.sameFiles("four/ckpt", "gpus/ckpt")
}

var scriptBlock = regexp.MustCompile("(?s)```sh\n(#!/bin/bash\n# ([a-z.]+)\n#SBATCH.*?)```")

// diedAtOnce is a task that ends before it could say anything: with srun --wait, as the others
// advise, nobody waits for it until --rdzv-timeout.
func diedAtOnce(t *testing.T, c *cluster) {
	for _, launcher := range []string{"bin/ddplaunch", ""} {
		script := `[ $SLURM_PROCID != 1 ] || kill -9 $$; exec ` + launcher + ` "$@"`
		args := tiny("never", "--steps", "2")
		args[0] = "bin/" + args[0]
		e := c.srun(append([]string{"-N2", "--mpi=pmi2", "--wait=2", "sh", "-c", script, "sh"}, args...)...).wait()
		if e.code != 128+int(syscall.SIGKILL) || !strings.Contains(e.stderr, "task 1: Killed") {
			t.Errorf("%q: want exit code 137, and who was killed, got %v", launcher, e)
		}
		c.slurmGone()
	}
}

// scripts writes the batch scripts of launch/README.md into the site.
func (s *site) scripts() {
	s.t.Helper()
	readme, err := os.ReadFile("../../../launch/README.md")
	if err != nil {
		s.t.Fatal(err)
	}
	found := scriptBlock.FindAllStringSubmatch(string(readme), -1)
	if len(found) != 2 {
		s.t.Fatalf("launch/README.md has %d batch scripts, want 2", len(found))
	}
	for _, f := range found {
		if err := os.WriteFile(s.path(f[2]), []byte(f[1]), 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
}

// state is what Slurm calls a job's state, and its restarts, as long as it knows it.
func (c *cluster) state(job string) (state string, restarts string) {
	text := c.ask("scontrol", "show", "job", job)
	field := func(name string) string {
		m := regexp.MustCompile(name + `=(\S+)`).FindStringSubmatch(text)
		if m == nil {
			return ""
		}
		return m[1]
	}
	return field("JobState"), field("Restarts")
}

// begunAgain has Slurm not wait two minutes before it starts a job again, but two
// seconds (it takes a start within the same second for the old one), and waits until
// it has.
func (c *cluster) begunAgain(job string) {
	c.t.Helper()
	var moved time.Time
	c.await("job "+job+" begins again", func() bool {
		state, restarts := c.state(job)
		if state == "PENDING" && restarts == "1" && time.Since(moved) > 5*time.Second {
			moved = time.Now()
			c.ask("scontrol", "update", "JobId="+job, "StartTime=now+2")
		}
		return restarts == "1" && (state == "RUNNING" || state == "COMPLETED")
	})
}

// ended waits for the end of a job, which must be a good one.
func (c *cluster) ended(job string) {
	c.t.Helper()
	var state string
	c.await("job "+job+" ends", func() bool {
		state, _ = c.state(job)
		return !slices.Contains([]string{"PENDING", "RUNNING", "COMPLETING", "REQUEUED"}, state)
	})
	if state != "COMPLETED" {
		c.t.Errorf("job %s is %s: %s", job, state, c.batchOutput(job))
	}
}

// requeued is its script for a job: stopped as --signal does it, put back into the queue,
// and gone on with; every step is there once, with the bits of a run left alone.
func requeued(t *testing.T, c *cluster) {
	const steps = 80
	c.must(on(2, tiny("whole", "--steps", fmt.Sprint(steps)))...)
	job := c.sbatch("train.sbatch", tiny("again", "--steps", fmt.Sprint(steps))[1:]...)
	if !c.comesTo("again", 3) {
		t.Fatalf("the job did not come to step 3: %s", c.batchOutput(job))
	}
	c.ask("scancel", "--signal=USR1", job)
	c.begunAgain(job)
	c.ended(job)
	if whole, again := c.losses("whole"), c.losses("again"); len(again) != steps || fmt.Sprint(whole) != fmt.Sprint(again) {
		t.Errorf("%d steps, or other losses\n%s", len(again), c.batchOutput(job))
	}
	c.sameFiles("whole/ckpt/step-00000080", "again/ckpt/step-00000080")
	c.slurmGone()
}

func (c *cluster) batchOutput(job string) string {
	b, err := os.ReadFile(c.path("slurm-" + job + ".out"))
	return fmt.Sprintf("%s (%v)", b, err)
}

// array is the other script: its tasks share the nodes, at once, and one that is
// stopped is put back by its own name.
func array(t *testing.T, c *cluster) {
	const steps = 100
	flags := tiny("", "--steps", fmt.Sprint(steps))
	i := slices.Index(flags, "--out")
	job := c.sbatch("seeds.sbatch", slices.Delete(flags, i, i+2)[1:]...)
	c.await("three tasks run at once", func() bool {
		return len(strings.Fields(c.ask("squeue", "-h", "-t", "running", "-j", job, "-o", "%i"))) == 3
	})
	if !c.comesTo("runs/seed1", 1) {
		t.Fatalf("no step 1: %s", c.batchOutput(job+"_1"))
	}
	c.ask("scancel", "--signal=USR1", job+"_1")
	c.begunAgain(job + "_1")
	for seed := range 3 {
		c.ended(fmt.Sprint(job, "_", seed))
	}
	seen := map[string]bool{}
	for seed := range 3 {
		all := c.losses(fmt.Sprint("runs/seed", seed))
		if first := fmt.Sprint(all[0]); len(all) != steps || seen[first] {
			t.Errorf("seed %d has %d steps, or the losses of another: %s", seed, len(all), first)
		} else {
			seen[first] = true
		}
	}
	c.slurmGone()
}

const deadlineScript = `#!/bin/bash
#SBATCH --nodes=1 --ntasks=3 --time=10
until [ -e go ]; do sleep 0.05; done
srun --overlap -n2 --mpi=pmi2 bin/train %s & several=$!
srun --overlap -n1 bin/train %s & one=$!
wait $several; echo "several: $?"
wait $one; echo "one: $?"
`

// beginDeadline starts a job that ends soon, in a way that no variable tells, and
// that nobody asks to stop.
func (c *cluster) beginDeadline() (job string) {
	c.t.Helper()
	flags := func(out string) string { return strings.Join(tiny(out, "--steps", "1000000")[1:], " ") }
	if err := os.WriteFile(c.path("deadline.sbatch"), fmt.Appendf(nil, deadlineScript, flags("several"), flags("one")), 0o755); err != nil {
		c.t.Fatal(err)
	}
	job = c.sbatch("deadline.sbatch")
	c.await("the job with an end runs", func() bool { state, _ := c.state(job); return state == "RUNNING" })
	c.ask("scontrol", "update", "JobId="+job, "EndTime=now+30") // of which a tenth is for stopping: three seconds, on a busy machine too
	if err := os.WriteFile(c.path("go"), nil, 0o644); err != nil {
		c.t.Fatal(err)
	}
	return job
}

// awaitDeadline wants that job to have stopped by itself, ranks with a launcher and
// one without, each with a checkpoint.
func (c *cluster) awaitDeadline(job string) {
	c.t.Helper()
	c.ended(job)
	text := c.batchOutput(job)
	for _, want := range []string{"several: 75\n", "one: 75\n", "train: the job's time ends at ", "(squeue)\n"} {
		if !strings.Contains(text, want) {
			c.t.Errorf("want %q in %s", want, text)
		}
	}
	for _, run := range []string{"several", "one"} {
		if len(c.content(run+"/ckpt")) == 0 {
			c.t.Errorf("%s has no checkpoint", run)
		}
	}
}

// onLoopbackOnly says that this machine has no address but the loopback's.
func onLoopbackOnly(t *testing.T) bool {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	return !slices.ContainsFunc(all, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && !p.Addr().IsLoopback()
	})
}
