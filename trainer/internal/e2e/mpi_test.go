package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// starter is one of MPI's programs that start tasks.
type starter struct {
	name    string   // of the program that a user types
	command []string // with what it needs here
	secret  bool     // it has no store of its own: the tasks need EBTRAIN_KEY
	each    string   // flag and value that start one task on each host
	two     string   // and the first two on the first of two
	agent   func(script string) []string
}

// mpiStarters are those that are installed: Hydra, of MPICH, and Open MPI. Where both
// are, their usual names are one's or the other's.
func mpiStarters(t *testing.T) (all []starter) {
	t.Helper()
	if path := firstOf("Hydra|HYDRA", "mpiexec.hydra", "mpiexec"); path != "" {
		all = append(all, starter{"mpiexec", []string{path}, false, "-ppn 1", " -ppn 2", func(script string) []string {
			return []string{"-launcher", "rsh", "-launcher-exec", script, "-hosts", "node0,node1"}
		}})
	}
	if path := firstOf("Open MPI|OpenRTE", "mpirun.openmpi", "mpirun"); path != "" {
		command := []string{path, "--oversubscribe", "--bind-to", "none", "-x", siteVar}
		if os.Geteuid() == 0 {
			command = append(command, "--allow-run-as-root")
		}
		all = append(all, starter{"mpirun", command, true, "-npernode 1", "", func(script string) []string {
			return []string{"--mca", "plm_rsh_agent", script, "--host", "node0:2,node1:2"}
		}})
	}
	switch {
	case len(all) == 0:
		t.Skip("neither mpiexec of MPICH nor mpirun of Open MPI is here: install mpich and openmpi-bin (TestTasksByHand runs all the same)")
	case len(all) == 1:
		t.Logf("only %s is here, so the other is left out: install mpich and openmpi-bin", all[0].name)
	}
	return all
}

// firstOf is the first of some programs whose --version says what a pattern says.
func firstOf(says string, names ...string) string {
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		out, _ := exec.Command(path, "--version").CombinedOutput()
		if regexp.MustCompile(says).Match(out) {
			return path
		}
	}
	return ""
}

const mpiKey = "EBTRAIN_KEY=a secret of the test; long enough"

// mpiSite is a site whose processes are marked, with bin in it.
func mpiSite(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.env = append(s.env, siteVar+"="+s.dir)
	return s
}

// mpi starts tasks: flags of the starter, then the program, as "train", and its own.
func (s *site) mpi(with starter, flags string, program ...string) *running {
	s.t.Helper()
	args, keyed := slices.Clone(with.command), *s
	if with.secret {
		keyed.env = append(slices.Clone(s.env), mpiKey)
		args = append(args, "-x", "EBTRAIN_KEY")
	}
	args = append(args, strings.Fields(flags)...)
	return keyed.startCommand(append(append(args, filepath.Join(s.bin, program[0])), program[1:]...))
}

// nobodyLeft waits until no process of the site is left.
func (s *site) nobodyLeft() {
	s.t.Helper()
	s.await("no process is left", func() bool { return len(ours(siteVar+"="+s.dir)) == 0 })
}

// TestTasksByHand starts tasks with the variables that mpirun gives them, so that they meet
// also where no mpirun is: they compute what two ranks of ddplaunch do.
func TestTasksByHand(t *testing.T) {
	long(t)
	s := newSite(t)
	s.must(on(2, tiny("two", "--steps", "4"))...)
	var tasks []*running
	for rank := range 2 {
		keyed := *s
		keyed.env = append(slices.Clone(s.env), mpiKey, "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_SIZE=2",
			fmt.Sprint("OMPI_COMM_WORLD_RANK=", rank), fmt.Sprint("OMPI_COMM_WORLD_LOCAL_RANK=", rank))
		args := tiny("hand", "--steps", "4")
		tasks = append(tasks, keyed.startCommand(append([]string{filepath.Join(s.bin, args[0])}, args[1:]...)))
	}
	for rank, r := range tasks {
		if e := r.wait(); e.code != 0 {
			t.Fatalf("task %d: %v", rank, e)
		}
	}
	if want, got := s.losses("two"), s.losses("hand"); len(got) != 4 || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("losses of tasks %v, of ranks of ddplaunch %v", got, want)
	}
}

// TestMPI runs jobs whose ranks are tasks of mpiexec and of mpirun, on this machine.
func TestMPI(t *testing.T) {
	long(t)
	all := mpiStarters(t)
	s := mpiSite(t)
	s.must(on(4, tiny("four", "--steps", "4"))...)
	for _, with := range all {
		for _, sub := range []struct {
			name string
			run  func(*site, starter)
		}{
			{"ranks", ranksOfMPI},
			{"killed", killedUnderMPI},
			{"stopped", stoppedUnderMPI},
			{"terminated", terminatedUnderMPI},
			{"mistakes", mistakesUnderMPI},
		} {
			t.Run(with.name+"/"+sub.name, func(t *testing.T) {
				part := *s
				part.t = t
				sub.run(&part, with)
				part.nobodyLeft()
			})
		}
	}
}

// ranksOfMPI gives the bits of as many ranks of ddplaunch, and its output, where rank 0
// speaks for all.
func ranksOfMPI(s *site, with starter) {
	out := with.name + "-four"
	e := s.mpi(with, "-np 4", tiny(out, "--steps", "4")...).wait()
	if e.code != 0 || e.stderr != "" {
		s.t.Fatalf("%v", e)
	}
	s.sameFiles("four/ckpt", out+"/ckpt")
	s.checkLogs(out, 4)
	for line := range strings.Lines(e.stdout) {
		if !strings.HasPrefix(line, "[0] ") {
			s.t.Errorf("a line of no rank, or of another than rank 0: %q", line)
		}
	}
}

// killedUnderMPI kills a rank: all tasks end at once, and say who it was.
func killedUnderMPI(s *site, with starter) {
	out := with.name + "-killed"
	r := s.mpi(with, "-np 4", tiny(out, "--steps", "1000000", "--print-every", "1")...)
	s.awaitStep(r, out, 2)
	victim := ranksOf(ours(siteVar + "=" + s.dir))[2]
	if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
	killed := time.Now()
	s.await("all ranks are gone", func() bool { return len(ranksOf(ours(siteVar+"="+s.dir))) == 0 })
	if took := time.Since(killed); took > atOnce {
		s.t.Errorf("gone after %v, want %v at most", took, atOnce)
	}
	e := r.wait()
	says := fmt.Sprintf(`(?m)^(train|\[[0-9,-]+\] train): rank 2 \(.+, pid %d\): killed by SIGKILL during `, victim)
	if e.code != 137 || !regexp.MustCompile(says).MatchString(e.stderr) {
		s.t.Errorf("want exit code 137 and %s, %v", says, e)
	}
}

// stoppedUnderMPI asks a task to stop, and then the program that started them, which
// passes it on: all do, with a checkpoint. The mpiexec of MPICH 4.0 then ends with 0 at
// times, whatever its tasks end with.
func stoppedUnderMPI(s *site, with starter) {
	for _, whom := range []string{"task", "all"} {
		out := with.name + "-stopped-" + whom
		r := s.mpi(with, "-np 2", tiny(out, "--steps", "1000000")...)
		s.awaitStep(r, out, 2)
		if whom == "all" {
			r.signal(syscall.SIGUSR1)
		} else if err := syscall.Kill(parentOf(s.t, ranksOf(ours(siteVar + "=" + s.dir))[1]), syscall.SIGUSR1); err != nil {
			s.t.Fatal(err)
		}
		e := r.wait()
		if lost := e.code == 0 && whom == "all" && !with.secret; e.code != 75 && !lost || !strings.Contains(e.stderr, "train: stopped before the end; the same command with --resume goes on") {
			s.t.Errorf("%s: want exit code 75, %v", whom, e)
		}
		if len(s.content(out+"/ckpt")) == 0 {
			s.t.Errorf("%s: no checkpoint was written", whom)
		}
	}
}

// terminatedUnderMPI ends that program by SIGTERM, which mpirun turns into a SIGTERM
// and, a second later, a SIGKILL for all, before they may have said anything: nobody
// is left.
func terminatedUnderMPI(s *site, with starter) {
	out := with.name + "-terminated"
	r := s.mpi(with, "-np 2", tiny(out, "--steps", "1000000")...)
	s.awaitStep(r, out, 2)
	r.signal(syscall.SIGTERM)
	if e := r.wait(); !with.secret && !strings.Contains(e.stderr, "train: SIGTERM: the ranks are asked to stop") {
		s.t.Errorf("want the ranks to be asked to stop, %v", e)
	}
}

// mistakesUnderMPI are ended by a sentence that says what to type.
func mistakesUnderMPI(s *site, with starter) {
	e := s.mpi(with, "-np 2", append([]string{"ddplaunch"}, tiny("never")...)...).wait()
	says := fmt.Sprintf("ddplaunch: %s has started several ddplaunch on one node: want one on each (%s %s), or no ddplaunch and one task for each rank (%[1]s train ...)", with.name, with.name, with.each)
	if e.code != 2 || !strings.Contains(e.stderr, says) {
		s.t.Errorf("want exit code 2 and %s, %v", says, e)
	}
	if with.secret {
		with.secret = false
		e := s.mpi(with, "-np 2", tiny("never")...).wait()
		if says := "train: mpirun has given its tasks no common secret: start them with EBTRAIN_KEY=$(openssl rand -hex 32) mpirun -x EBTRAIN_KEY ..."; e.code != 2 || !strings.Contains(e.stderr, says) {
			s.t.Errorf("want exit code 2 and %s, %v", says, e)
		}
	}
}

// TestMPIHosts runs such jobs on two machines with a network of their own: a task for
// each rank, and one ddplaunch on each.
func TestMPIHosts(t *testing.T) {
	long(t)
	all := mpiStarters(t)
	s := mpiSite(t)
	m := twoMachines(s)
	script := "#!/bin/sh\nto=$1\nshift\ncase $to in\n"
	hosts := "127.0.0.1 localhost\n"
	for i := range m {
		hosts += fmt.Sprintf("%s node%d\n", addresses[i][0], i)
		enter := m[i].enter("env", "-i", "PATH="+os.Getenv("PATH"), "HOME="+s.dir, "sh", "-c")
		script += fmt.Sprintf("node%d) exec '%s' \"$*\";;\n", i, strings.Join(enter, "' '"))
	}
	for name, text := range map[string]string{"agent": script + "esac\nexit 255\n", "hosts": hosts} { // as ssh would, without the variables of here
		if err := os.WriteFile(s.path(name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for i := range m {
		m[i].sh("mount --bind hosts /etc/hosts")
	}
	s.must(on(4, tiny("four", "--steps", "4"))...)
	for _, with := range all {
		t.Run(with.name, func(t *testing.T) {
			part := *s
			part.t = t
			with.command = m[0].enter(append(with.command, with.agent(s.path("agent"))...)...)
			head := ""
			if with.secret {
				head = " -x MASTER_ADDR=node0"
				e := part.mpi(with, "-np 2 "+with.each, tiny("never")...).wait()
				if says := "train: mpirun has not told its tasks, on several hosts, that of rank 0: start them with mpirun -x MASTER_ADDR=HOST ..., which names it"; e.code != 2 || !strings.Contains(e.stderr, says) {
					t.Errorf("want exit code 2 and %s, %v", says, e)
				}
			}
			for out, args := range map[string][]string{
				"-tasks":    append([]string{"-np 4" + with.two + head}, tiny(with.name+"-tasks", "--steps", "4")...),
				"-launched": append([]string{"-np 2 " + with.each + head, "ddplaunch", "-nproc", "2"}, tiny(with.name+"-launched", "--steps", "4")...),
			} {
				e := part.mpi(with, args[0], args[1:]...).wait()
				if e.code != 0 {
					t.Fatalf("%v", e)
				}
				part.sameFiles("four/ckpt", with.name+out+"/ckpt")
			}
			part.nobodyLeft()
		})
	}
}
