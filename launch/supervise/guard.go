package supervise

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// guardName is argv[0] of the guard process.
const guardName = "ddplaunch-guard"

// Guard must be the first call of a main (or TestMain) that uses Run. It does
// nothing, except in the process that Run starts as the guard: there it waits
// until the launcher ends, kills the process groups that are left and what ranks
// have left outside them, and exits.
//
// The guard matters when the launcher is killed by SIGKILL: PDEATHSIG then
// ends the ranks, but not the processes that the ranks have started.
func Guard() {
	if os.Args[0] != guardName {
		return
	}
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE)
	launcher := os.Getppid()
	groups, jobs, over := guarded(os.Stdin)
	for pid := range groups {
		signalGroup(pid, unix.SIGKILL)
	}
	if !over {
		// Its pipe is closed before its children go to another.
		for deadline := time.Now().Add(leftWait); os.Getppid() == launcher && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		endLeft(os.Getppid, jobs, nil, quietLooks)
	}
	os.Exit(0)
}

// guarded reads "+pid", "-pid" and "=job" lines to the end, and returns the groups
// that were added and not removed, the jobs, and whether the last line was ".": the
// launcher ends by itself.
func guarded(r io.Reader) (groups map[int]bool, jobs map[string]bool, over bool) {
	groups, jobs = map[int]bool{}, map[string]bool{}
	for lines := bufio.NewScanner(r); lines.Scan(); {
		text := lines.Text()
		if job, ok := strings.CutPrefix(text, "="); ok {
			jobs[job] = true
			continue
		}
		pid, err := strconv.Atoi(text[min(1, len(text)):])
		switch over = text == "."; {
		case err != nil || pid <= 1: // -1 would mean every process
		case text[0] == '+':
			groups[pid] = true
		case text[0] == '-':
			delete(groups, pid)
		}
	}
	return groups, jobs, over
}

// guard is the launcher's end of the guard process.
type guard struct {
	mu   sync.Mutex
	cmd  *exec.Cmd
	pipe *os.File
}

func startGuard(s *spawner) (*guard, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the guard: %w", err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{guardName}
	cmd.Env = []string{"GOMAXPROCS=1"}
	if options, ok := os.LookupEnv("GORACE"); ok { // of the race detector, which lingers for a second otherwise
		cmd.Env = append(cmd.Env, "GORACE="+options)
	}
	cmd.Stdin = r
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	err = s.start(cmd, nil)
	_ = r.Close()
	if err != nil {
		_ = w.Close()
		return nil, advised(fmt.Errorf("start the guard: %w", err))
	}
	return &guard{cmd: cmd, pipe: w}, nil
}

func (g *guard) add(pid int) error       { return g.say("+" + strconv.Itoa(pid)) }
func (g *guard) remove(pid int) error    { return g.say("-" + strconv.Itoa(pid)) }
func (g *guard) expect(job string) error { return g.say("=" + job) }

func (g *guard) say(line string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, err := fmt.Fprintln(g.pipe, line); err != nil {
		return fmt.Errorf("tell the guard: %w", err)
	}
	return nil
}

// guardWait is how long the guard may take to end, which has nothing to do any more.
const guardWait = 2 * time.Second

// Close lets the guard finish and waits for it, but not for one that somebody has stopped.
func (g *guard) Close() error {
	_ = g.say(".")     // one that has ended hears nothing
	_ = g.pipe.Close() // only ever written
	late := time.AfterFunc(guardWait, func() { _ = g.cmd.Process.Kill() })
	err := g.cmd.Wait()
	if inTime := late.Stop(); err != nil && inTime {
		return fmt.Errorf("guard: %w", err)
	}
	return nil
}
