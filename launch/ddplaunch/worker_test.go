package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/launch/env"
	"ebtrain/launch/exitcode"
	"ebtrain/launch/rendezvous"
	"ebtrain/launch/supervise"
)

// roleVar makes the test binary act as ddplaunch or as a rank.
const roleVar = "DDPLAUNCH_TEST_ROLE"

// patience bounds every wait: more is a hang, on a machine of any load.
const patience = time.Minute

func TestMain(m *testing.M) {
	supervise.Guard()
	switch os.Getenv(roleVar) {
	case "launcher":
		if err := os.Setenv(roleVar, "rank"); err != nil {
			panic(err)
		}
		main()
	case "rank":
		os.Exit(rankMain(os.Args[1], os.Args[2:]))
	}
	// Under the race detector processes would linger for a second at their end.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// rankMain is the program that the tests launch.
func rankMain(mode string, args []string) int {
	w, err := env.Parse(os.Environ())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	g, err := rendezvous.Join(ctx, w)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	code, err := modes[mode](ctx, g, args)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}

var modes = map[string]func(context.Context, *rendezvous.Group, []string) (int, error){
	"wait":     waitMode,
	"deaf":     deafMode,
	"family":   familyMode,
	"daemon":   daemonMode,
	"gather":   gatherMode,
	"exit":     exitMode,
	"raise":    raiseMode,
	"restart":  restartMode,
	"disagree": disagreeMode,
	"leave":    leaveMode,
	"rejoin":   rejoinMode,
	"timeout":  timeoutMode,
	"stuck":    stuckMode,
	"eat":      eatMode,
	"again":    againMode,
	"elastic":  elasticMode,
	"crash":    crashMode,
}

// ready meets the other ranks and prints this rank's pid.
func ready(ctx context.Context, g *rendezvous.Group) error {
	g.Progress(41, "all-reduce", 8812, "generator/bucket 3")
	if err := g.Barrier(ctx, "ready"); err != nil {
		return err
	}
	fmt.Printf("ready %d\n", os.Getpid())
	return nil
}

func waitMode(ctx context.Context, g *rendezvous.Group, _ []string) (int, error) {
	if err := ready(ctx, g); err != nil {
		return 1, err
	}
	select {
	case <-g.Done():
		return 1, g.Err()
	case <-g.StopRequested():
		fmt.Println("stopping")
		return exitcode.Requeue, g.Close()
	case <-ctx.Done():
		return 9, ctx.Err()
	}
}

func deafMode(ctx context.Context, g *rendezvous.Group, _ []string) (int, error) {
	signal.Ignore(unix.SIGINT, unix.SIGTERM)
	if err := ready(ctx, g); err != nil {
		return 1, err
	}
	<-ctx.Done()
	return 9, ctx.Err()
}

func familyMode(ctx context.Context, g *rendezvous.Group, args []string) (int, error) {
	c := exec.Command("sleep", "60")
	if err := c.Start(); err != nil {
		return 1, err
	}
	fmt.Printf("child %d\n", c.Process.Pid)
	if len(args) > 0 {
		return 0, nil
	}
	return waitMode(ctx, g, nil)
}

// daemonMode has each rank start a process in a session of its own, which has started
// another, and one that is no rank's by its environment. The first epoch waits, until it is
// told to end or the file args[0] is there.
func daemonMode(ctx context.Context, g *rendezvous.Group, args []string) (int, error) {
	if g.Restart() > 0 {
		return 0, g.Close()
	}
	const script = `setsid sleep 60 & echo child $!; echo parent $$; setsid env -u EBTRAIN_GROUP sleep 60 & echo stranger $!; wait`
	c := exec.Command("setsid", "sh", "-c", script)
	c.Stdout = os.Stdout
	if err := c.Start(); err != nil {
		return 1, err
	}
	if len(args) == 0 {
		return waitMode(ctx, g, nil)
	}
	if err := ready(ctx, g); err != nil {
		return 1, err
	}
	for ctx.Err() == nil {
		if _, err := os.Stat(args[0]); err == nil {
			return 0, g.Close()
		}
		time.Sleep(5 * time.Millisecond)
	}
	return 9, ctx.Err()
}

func gatherMode(ctx context.Context, g *rendezvous.Group, args []string) (int, error) {
	for _, name := range []string{"first", "second"} {
		all, err := g.Exchange(ctx, name, fmt.Appendf(nil, "%s-of-%d", name, g.Rank()))
		if err != nil {
			return 1, err
		}
		fmt.Printf("%s: %s\n", name, slices.Collect(slices.Values(all)))
	}
	empty, err := g.Exchange(ctx, "empty", nil)
	if err != nil {
		return 1, err
	}
	size := 1000
	if len(args) > 0 {
		size = rendezvous.MaxBlob
	}
	big, err := g.Exchange(ctx, "big", make([]byte, size))
	if err != nil {
		return 1, err
	}
	hosts := g.Hosts()
	fmt.Printf("sizes %d %d %d, hosts %d, one host %v, local %d of %d\n", len(empty), len(empty[0]), len(big[g.Size()-1]), len(hosts), hosts[0] == hosts[len(hosts)-1], g.LocalRank(), g.LocalSize())
	fmt.Printf("job %s key %x (%d)\n", g.Job(), sha256.Sum256(g.Key()), len(g.Key()))
	return 0, g.Close()
}

func exitMode(ctx context.Context, g *rendezvous.Group, args []string) (int, error) {
	if err := ready(ctx, g); err != nil {
		return 1, err
	}
	if args[0] == strconv.Itoa(g.Rank()) {
		return strconv.Atoi(args[1])
	}
	if len(args) > 2 {
		return 0, nil
	}
	<-g.Done()
	return 1, g.Err()
}

func raiseMode(ctx context.Context, g *rendezvous.Group, args []string) (int, error) {
	if err := ready(ctx, g); err != nil {
		return 1, err
	}
	code := 1
	if g.Rank() == 1 {
		g.Abort(errors.New(args[0]))
		g.Abort(errors.New("a second cause must not win"))
		code = 7
	}
	<-g.Done()
	if !errors.Is(g.Err(), rendezvous.ErrAborted) {
		return 8, fmt.Errorf("not an abort: %w", g.Err())
	}
	return code, g.Err()
}

func restartMode(ctx context.Context, g *rendezvous.Group, args []string) (int, error) {
	if err := ready(ctx, g); err != nil {
		return 1, err
	}
	if last, _ := strconv.Atoi(args[0]); g.Restart() >= last {
		fmt.Printf("done in epoch %d, job %s\n", g.Restart(), g.Job())
		return 0, g.Close()
	}
	if g.Rank() == 1 {
		return 1, unix.Kill(os.Getpid(), unix.SIGKILL)
	}
	<-g.Done()
	return 1, g.Err()
}

func disagreeMode(ctx context.Context, g *rendezvous.Group, _ []string) (int, error) {
	_, err := g.Exchange(ctx, []string{"addresses", "hash"}[g.Rank()%2], nil)
	<-g.Done()
	if err == nil {
		return 8, errors.New("the exchange went through")
	}
	return 1, g.Err()
}

func leaveMode(ctx context.Context, g *rendezvous.Group, _ []string) (int, error) {
	if g.Rank() == 1 {
		return 0, g.Close()
	}
	return 1, g.Barrier(ctx, "all")
}

func rejoinMode(ctx context.Context, g *rendezvous.Group, _ []string) (int, error) {
	c := exec.Command("/proc/self/exe", "wait")
	out, err := c.CombinedOutput()
	fmt.Printf("child said %s (%v)\n", strings.TrimSpace(string(out)), err)
	return 0, g.Close()
}

func timeoutMode(ctx context.Context, g *rendezvous.Group, _ []string) (int, error) {
	if g.Rank() == 0 {
		ctx, cancel := context.WithTimeoutCause(ctx, 100*time.Millisecond, errors.New("rank 1 did not come"))
		defer cancel()
		_, err := g.Exchange(ctx, "late", nil)
		if err == nil {
			return 8, errors.New("the exchange went through")
		}
	}
	<-g.Done()
	return 1, g.Err()
}

// job is a running launcher.
type job struct {
	t    *testing.T
	cmd  *exec.Cmd
	out  *os.File
	done chan struct{} // closed when the launcher has ended with err
	err  error
}

// start runs ddplaunch with args; the word RANKS stands for this binary.
func start(t *testing.T, environ []string, args ...string) *job {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for i := range args {
		if args[i] == "RANKS" {
			args[i] = self
		}
	}
	out, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(append(env.Without(os.Environ()), roleVar+"=launcher"), environ...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	j := &job{t: t, cmd: cmd, out: out, done: make(chan struct{})}
	go func() { j.err = cmd.Wait(); close(j.done) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has mostly ended long ago
		<-j.done
	})
	return j
}

// output is what the launcher has written so far.
func (j *job) output() string {
	b, err := os.ReadFile(j.out.Name())
	if err != nil {
		j.t.Fatal(err)
	}
	return string(b)
}

// end waits for the launcher and returns its exit code and output.
func (j *job) end() (int, string) {
	j.t.Helper()
	select {
	case <-j.done:
		var exit *exec.ExitError
		if j.err != nil && !errors.As(j.err, &exit) {
			j.t.Fatal(j.err)
		}
		return j.cmd.ProcessState.ExitCode(), j.output()
	case <-time.After(patience):
		_ = j.cmd.Process.Kill()
		j.t.Fatalf("the launcher did not end; it wrote\n%s", j.output())
		return 0, ""
	}
}

// numbers waits until n ranks have written a line "[r] word NUMBER" and returns
// their last numbers.
func (j *job) numbers(word string, n int) map[int]int {
	j.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		found := map[int]int{}
		for line := range strings.Lines(j.output()) {
			var r, number int
			if k, _ := fmt.Sscanf(line, "[%d] "+word+" %d", &r, &number); k == 2 {
				found[r] = number
			}
		}
		if len(found) >= n {
			return found
		}
	}
	j.t.Fatalf("%d lines with %q did not come; the launcher wrote\n%s", n, word, j.output())
	return nil
}

// awaits waits until the launcher has written a text.
func (j *job) awaits(text string) {
	j.t.Helper()
	for deadline := time.Now().Add(patience); !strings.Contains(j.output(), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			j.t.Fatalf("%q did not come; the launcher wrote\n%s", text, j.output())
		}
	}
}

// awaitProgram waits until a process, which somebody has started, is the program of that name.
func awaitProgram(t *testing.T, pid int, name string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if string(comm) == name+"\n" {
			return
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("process %d is %q and not %s: %v", pid, comm, name, err)
		}
	}
}

// gone waits until the processes are no more, not even zombies.
func gone(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		deadline := time.Now().Add(patience)
		for unix.Kill(pid, 0) == nil {
			if time.Now().After(deadline) {
				stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
				t.Fatalf("process %d is still there: %s %v", pid, stat, err)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

func run1(t *testing.T, args ...string) (int, string) {
	t.Helper()
	return start(t, nil, args...).end()
}

// want fails unless the output has all of the texts.
func want(t *testing.T, out string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("want %q in\n%s", text, out)
		}
	}
}

// each fails unless every one of the ranks has written a line that begins with
// text. Whether equal lines were folded does not matter: that depends on how
// far apart they came.
func each(t *testing.T, out string, ranks []int, text string) {
	t.Helper()
	for _, r := range ranks {
		if !slices.ContainsFunc(strings.Split(out, "\n"), func(line string) bool {
			prefix, rest, ok := strings.Cut(line, "] ")
			return ok && writtenBy(strings.TrimPrefix(prefix, "["), r) && strings.HasPrefix(rest, text)
		}) {
			t.Errorf("want %q of rank %d in\n%s", text, r, out)
		}
	}
}

// writtenBy reports whether a prefix like 0,2-3 includes rank r.
func writtenBy(prefix string, r int) bool {
	for part := range strings.SplitSeq(prefix, ",") {
		low, high, ok := strings.Cut(part, "-")
		if !ok {
			high = low
		}
		a, err1 := strconv.Atoi(low)
		b, err2 := strconv.Atoi(high)
		if err1 == nil && err2 == nil && a <= r && r <= b {
			return true
		}
	}
	return false
}
