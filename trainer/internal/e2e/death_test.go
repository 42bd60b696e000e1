package e2e

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// atOnce bounds the end of a job after a death: less than any time-out that could end it
// otherwise, and more than any load of the machine should make of the two seconds after
// which all ranks have ended as a rule, which chaos measures.
const atOnce = 20 * time.Second

// TestKilledRank kills one rank.
func TestKilledRank(t *testing.T) {
	long(t)
	for _, n := range []int{2, 4} {
		t.Run(fmt.Sprintf("of %d", n), func(t *testing.T) {
			s := newSite(t)
			r := s.start(on(n, tiny("a", "--steps", "1000000", "--print-every", "1"))...)
			s.awaitStep(r, "a", 2)
			ranks, family := r.ranks(), r.children()
			shared := sharedFiles(t, ranks)
			victim := ranks[n-1]
			killed := time.Now()
			s.kill(victim)
			e := r.wait()
			if took := time.Since(killed); took > atOnce {
				t.Errorf("the job ended %v after the death, want %v at most", took, atOnce)
			}
			gone(t, family)
			s.checkShared(shared)
			if e.code != 128+int(syscall.SIGKILL) {
				t.Errorf("want exit code 137, got %d", e.code)
			}
			checkObituary(t, e.stderr, n, victim, "SIGKILL")
			s.checkLogs("a", n)
		})
	}
}

// TestCrashedRank has one rank crash, of which the runtime of Go shows a trace and then ends
// it with the code of a mistake on the command line: it is told for what it is.
func TestCrashedRank(t *testing.T) {
	long(t)
	s := newSite(t)
	r := s.start(on(2, tiny("a", "--steps", "1000000", "--print-every", "1"))...)
	s.awaitStep(r, "a", 2)
	family, victim := r.children(), r.ranks()[1]
	if err := syscall.Kill(victim, syscall.SIGSEGV); err != nil {
		t.Fatal(err)
	}
	e := r.wait()
	gone(t, family)
	if want := 128 + int(syscall.SIGSEGV); e.code != want {
		t.Errorf("want exit code %d, got %v", want, e)
	}
	var others strings.Builder
	for line := range strings.Lines(e.stderr) {
		if !strings.HasPrefix(line, "[1]") { // the trace
			others.WriteString(line)
		}
	}
	checkObituary(t, others.String(), 2, victim, "SIGSEGV")
}

// TestStoppedRank stops one rank, which lives on and does nothing: the others do
// not wait for ever.
func TestStoppedRank(t *testing.T) {
	long(t)
	for stopped := range 2 {
		t.Run(fmt.Sprint("rank ", stopped), func(t *testing.T) {
			s := newSite(t)
			r := s.start(on(3, append(tiny("a", "--steps", "1000000", "--print-every", "1"), "--batch", "12"))...)
			s.awaitStep(r, "a", 2)
			family, victim := r.children(), r.byRank()[stopped]
			if err := syscall.Kill(victim, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			e := r.wait()
			took := time.Since(begun)
			t.Logf("the job ended after %v", took)
			if took > atOnce {
				t.Errorf("the job ended %v after the stop, want %v at most", took, atOnce)
			}
			gone(t, family)
			sentence := regexp.MustCompile(fmt.Sprintf(`rank %d \([^ ]+, pid %d\): stopped by a signal during [a-z].*: rank %d (waits|and 1 more wait) for it during [a-z].*`, stopped, victim, (2-stopped)/2))
			if e.code != 1 || !strings.HasPrefix(sentence.FindString(e.stderr[max(0, strings.LastIndex(e.stderr, "ddplaunch: ")):]), "rank ") {
				t.Errorf("want exit code 1 and that %v, %v", sentence, e)
			}
		})
	}
}

// TestFlight asks a rank for its last collectives: all ranks write them to their
// logs, the launcher says how far each is, and the run goes on.
func TestFlight(t *testing.T) {
	long(t)
	s := newSite(t)
	r := s.start(on(2, tiny("a", "--steps", "1000000", "--print-every", "1"))...)
	s.awaitStep(r, "a", 2)
	if err := syscall.Kill(r.ranks()[1], syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	for rank := range 2 {
		for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
			b, err := os.ReadFile(s.path("a", fmt.Sprintf("rank-%d.log", rank)))
			if err == nil && strings.Count(string(b), `"msg":"flight"`) > 5 && strings.Contains(string(b), " all-reduce ") {
				break
			}
			if time.Since(begun) > patience/2 {
				t.Fatalf("the log of rank %d has no collectives: %v\n%s", rank, err, b)
			}
		}
	}
	s.awaitStep(r, "a", int64(len(s.losses("a")))+2)
	r.signal(syscall.SIGTERM)
	if e := r.wait(); e.code != 75 || !strings.Contains(e.stderr, "ddplaunch: flight: ranks  seq ") {
		t.Errorf("want exit code 75 and a table, %v", e)
	}
	report, err := os.ReadFile(s.path("a", "flight.txt"))
	if err != nil || !regexp.MustCompile(`(?s)^== [^\n]*: somebody asked\nranks .*\n-- rank 1 .*\n\d+ +[0-9:.]+ +all-reduce +[^\n]* mean f32\[\d+\] +took `).Match(report) {
		t.Errorf("the table in the run's folder: %v\n%s", err, report)
	}
}

// checkLogs wants every line of a run's rank-N.log to name its rank, once.
func (s *site) checkLogs(run string, n int) {
	s.t.Helper()
	for rank := range n {
		b, err := os.ReadFile(s.path(run, fmt.Sprintf("rank-%d.log", rank)))
		if err != nil || len(b) == 0 {
			s.t.Errorf("log of rank %d: %d bytes, %v", rank, len(b), err)
		}
		for line := range strings.Lines(string(b)) {
			if strings.Count(line, `"rank":`) != 1 || !strings.Contains(line, fmt.Sprintf(`"rank":%d,`, rank)) {
				s.t.Errorf("log of rank %d does not name its rank once: %s", rank, line)
			}
		}
	}
}

// checkObituary wants one sentence, from every surviving rank and the launcher.
func checkObituary(t *testing.T, stderr string, n, victim int, signal string) {
	t.Helper()
	sentence := regexp.MustCompile(fmt.Sprintf(`rank %d \([^ ]+, pid %d\): killed by %s during [a-z].*`, n-1, victim, signal))
	said, by := "", map[int]bool{}
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "ddplaunch: flight: ") {
			continue // what all did last
		}
		text := sentence.FindString(line)
		if text == "" || said != "" && text != said {
			t.Errorf("want only one sentence of rank, pid, signal and phase, got %q", line)
		}
		said = text
		for _, rank := range speakers(line) {
			by[rank] = true
		}
	}
	for rank := range n - 1 {
		if !by[rank] {
			t.Errorf("rank %d did not say why it ended:\n%s", rank, stderr)
		}
	}
	if !strings.Contains(stderr, "ddplaunch: "+said) {
		t.Errorf("the launcher did not say why it ended:\n%s", stderr)
	}
}

// speakers are the ranks of a folded line, as in "[0,2-3] train: …".
func speakers(line string) (ranks []int) {
	list, _, ok := strings.Cut(strings.TrimPrefix(line, "["), "]")
	if !ok || line[0] != '[' {
		return nil
	}
	for part := range strings.SplitSeq(list, ",") {
		low, high, ranged := strings.Cut(part, "-")
		if !ranged {
			high = low
		}
		a, err1 := strconv.Atoi(low)
		b, err2 := strconv.Atoi(high)
		for r := a; err1 == nil && err2 == nil && r <= b; r++ {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// TestKilledLauncher kills the launcher, which has no last word.
func TestKilledLauncher(t *testing.T) {
	long(t)
	s := newSite(t)
	r := s.start(on(2, tiny("a", "--steps", "1000000"))...)
	s.awaitStep(r, "a", 2)
	family := r.children()
	shared := sharedFiles(t, r.ranks())
	r.signal(syscall.SIGKILL)
	gone(t, family)
	s.checkShared(shared)
	r.wait()
}

// children are the processes that the launcher has started.
func (r *running) children() []int {
	r.s.t.Helper()
	parent := strconv.Itoa(r.cmd.Process.Pid)
	entries, err := os.ReadDir("/proc")
	if err != nil {
		r.s.t.Fatal(err)
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if f := stat(pid); len(f) > 1 && f[1] == parent {
			pids = append(pids, pid)
		}
	}
	return pids
}

// ranks are the processes of the ranks, by rank.
func (r *running) ranks() []int {
	r.s.t.Helper()
	byRank := r.byRank()
	pids := make([]int, len(byRank))
	for rank, pid := range byRank {
		pids[rank] = pid
	}
	return pids
}

// byRank are the processes of the ranks of this launcher's node.
func (r *running) byRank() map[int]int {
	r.s.t.Helper()
	byRank := map[int]int{}
	for _, pid := range r.children() {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			r.s.t.Fatal(err)
		}
		for kv := range bytes.SplitSeq(environ, []byte{0}) {
			if value, ok := bytes.CutPrefix(kv, []byte("RANK=")); ok {
				rank, err := strconv.Atoi(string(value))
				if err != nil {
					r.s.t.Fatal(err)
				}
				byRank[rank] = pid
			}
		}
	}
	return byRank
}

// stat are the fields of /proc/PID/stat behind the name: state, parent, …; nil
// if there is no such process.
func stat(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}

// gone fails unless the processes end within atOnce.
func gone(t *testing.T, pids []int) {
	t.Helper()
	if len(pids) == 0 {
		t.Fatal("the launcher had no processes")
	}
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		var left []int
		for _, pid := range pids {
			// A zombie has ended; where process 1 does not reap, it stays.
			if f := stat(pid); f != nil && f[0] != "Z" && f[0] != "X" {
				left = append(left, pid)
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Since(begun) > atOnce {
			t.Fatalf("processes %v are left", left)
		}
	}
}

// kill kills a rank.
func (s *site) kill(pid int) {
	s.t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
}

// sharedFiles are the files that processes share as memory. There must be some,
// or the test looks in the wrong place.
func sharedFiles(t *testing.T, pids []int) []string {
	t.Helper()
	var files []string
	for _, pid := range pids {
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(maps)) {
			f := strings.Fields(line)
			if len(f) >= 6 && strings.HasSuffix(f[1], "s") {
				files = append(files, strings.Join(f[5:], " "))
			}
		}
	}
	if len(files) == 0 {
		t.Error("the ranks share no memory")
	}
	return files
}

// checkShared fails if memory that was shared has a name that is still there.
// What has none ("/memfd:… (deleted)") went with the processes.
func (s *site) checkShared(files []string) {
	s.t.Helper()
	for _, f := range files {
		if _, err := os.Stat(f); err == nil {
			s.t.Errorf("shared memory is left behind: %s", f)
		}
	}
}
