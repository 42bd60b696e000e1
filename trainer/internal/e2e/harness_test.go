package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ebtrain/trainer/run/rundir"
)

// patience bounds every program: more is a hang, on a machine of any load.
const patience = 3 * time.Minute

var programs = []string{"launch/ddplaunch", "launch/chaos", "launch/onhosts", "trainer/train", "trainer/sample", "trainer/evaluate", "trainer/experiment", "trainer/curves", "trainer/stepbench", "trainer/bench", "data/mkshards", "collective/collbench"}

var bin string // folder of the programs, made by build

func TestMain(m *testing.M) {
	code := m.Run()
	if bin != "" {
		if err := os.RemoveAll(bin); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// build builds the programs, once, as this test was built.
var build = sync.OnceValue(func() error {
	var err error
	if bin, err = os.MkdirTemp("", "ebtrain-e2e-"); err != nil {
		return err
	}
	args := append(buildFlags(), "-o", bin+"/")
	for _, p := range programs {
		args = append(args, "ebtrain/"+p)
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
})

// buildFlags are the beginning of a command of go that builds programs with the tags that
// this test was built with, and with the race detector if it has it.
func buildFlags() []string {
	args := []string{"build"}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-tags" || s.Key == "-race" {
				args = append(args, s.Key+"="+s.Value)
			}
		}
	}
	return args
}

// site is an empty folder to run programs in.
type site struct {
	t   *testing.T
	dir string
	bin string   // folder of the programs
	env []string // KEY=value, added to a clean environment
}

func newSite(t *testing.T) *site {
	t.Helper()
	if err := build(); err != nil {
		t.Fatal(err)
	}
	return &site{t: t, dir: t.TempDir(), bin: bin}
}

// long skips a test under -short.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs real jobs; left out under -short")
	}
}

// path is the path of a file of the site.
func (s *site) path(elem ...string) string {
	return filepath.Join(append([]string{s.dir}, elem...)...)
}

// ended is a program that has ended.
type ended struct {
	code           int
	stdout, stderr string
	took           time.Duration
}

func (e ended) String() string {
	return fmt.Sprintf("exit %d\nstdout: %s\nstderr: %s", e.code, e.stdout, e.stderr)
}

// running is a program that runs.
type running struct {
	s           *site
	args        []string
	cmd         *exec.Cmd
	out, err    output
	begun       time.Time
	stop        context.CancelFunc
	waitOnce    sync.Once
	result      ended
	interrupted error
}

// start starts one of our programs in the site. It is killed when the test ends.
func (s *site) start(args ...string) *running {
	s.t.Helper()
	return s.startCommand(append([]string{filepath.Join(s.bin, args[0])}, args[1:]...))
}

// startCommand starts any program in the site. It is killed when the test ends.
func (s *site) startCommand(args []string) *running {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	r := &running{s: s, args: args, begun: time.Now(), stop: cancel}
	r.cmd = exec.CommandContext(ctx, args[0], args[1:]...)
	r.cmd.Dir, r.cmd.Stdout, r.cmd.Stderr = s.dir, &r.out, &r.err
	r.cmd.WaitDelay = 5 * time.Second // a process left behind holds the pipes
	r.cmd.Env = append(clean(os.Environ()), s.env...)
	if err := r.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { cancel(); r.wait() })
	return r
}

// output is what a program has written. It may be read while the program runs.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// launchers' variables would make every program a rank of another job.
var launchers = regexp.MustCompile(`^(.*RANK|.*WORLD_SIZE|MASTER_.*|EBTRAIN_.*|TORCHELASTIC_.*|SLURM_.*|PMI.*|OMPI_.*|MPI_.*|OMP_NUM_THREADS)=`)

// clean is environ without what a launcher sets.
func clean(environ []string) []string {
	return slices.DeleteFunc(environ, launchers.MatchString)
}

// wait waits for the end.
func (r *running) wait() ended {
	r.waitOnce.Do(func() {
		err := r.cmd.Wait()
		r.stop()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			r.interrupted = err
		}
		st := r.cmd.ProcessState
		r.result = ended{code: st.ExitCode(), stdout: r.out.String(), stderr: r.err.String(), took: time.Since(r.begun)}
		if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			r.result.code = 128 + int(ws.Signal())
		}
	})
	if r.interrupted != nil {
		r.s.t.Errorf("%q: %v", r.args, r.interrupted)
	}
	return r.result
}

// signal signals the program itself.
func (r *running) signal(sig syscall.Signal) {
	r.s.t.Helper()
	if err := r.cmd.Process.Signal(sig); err != nil {
		r.s.t.Fatalf("%q: %v", r.args, err)
	}
}

// run runs a program to its end.
func (s *site) run(args ...string) ended {
	s.t.Helper()
	e := s.start(args...).wait()
	if e.took >= patience {
		s.t.Fatalf("%q did not end within %v\n%v", args, patience, e)
	}
	return e
}

// must runs a program that must end well.
func (s *site) must(args ...string) ended {
	s.t.Helper()
	e := s.run(args...)
	if e.code != 0 {
		s.t.Fatalf("%q: %v", args, e)
	}
	return e
}

// tiny are settings of the smallest run, of one thread for each rank.
func tiny(out string, more ...string) []string {
	return append([]string{"train", "--width", "4", "--latent", "4", "--batch", "8", "--samples", "4", "--threads", "1", "--check-every", "5", "--out", out}, more...)
}

// on puts args under ddplaunch with n ranks; n of 0 leaves them alone.
func on(n int, args []string) []string {
	if n == 0 {
		return args
	}
	return append([]string{"ddplaunch", "-nproc", fmt.Sprint(n)}, args...)
}

// metrics are the lines of a run's metrics. A run that goes on from a checkpoint cuts
// what is behind it, perhaps between two reads of the file: then it is read again.
func (s *site) metrics(run string) (records []rundir.Record, err error) {
	for range 5 {
		records, err = rundir.ReadMetrics(s.path(run, "metrics.jsonl"))
		if err == nil || errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	return records, err
}

// losses are the lines of a run's metrics, which must be those of the steps 0,
// 1, 2, … to the last.
func (s *site) losses(run string) []map[string]float64 {
	s.t.Helper()
	records, err := s.metrics(run)
	if err != nil {
		s.t.Fatal(err)
	}
	var all []map[string]float64
	for i, r := range records {
		if r.Step != int64(i) {
			s.t.Fatalf("%s: line %d of metrics.jsonl is of step %d", run, i, r.Step)
		}
		all = append(all, r.Losses)
	}
	return all
}

// awaitStep waits until the metrics of a run have the line of a step.
func (s *site) awaitStep(r *running, run string, step int64) {
	s.t.Helper()
	if !s.comesTo(run, step) {
		r.stop()
		s.t.Fatalf("%s did not come to step %d: %v", run, step, r.wait())
	}
}

// comesTo waits until the metrics of a run have the line of a step; false if
// they have it not in time.
func (s *site) comesTo(run string, step int64) bool {
	s.t.Helper()
	for begun := time.Now(); time.Since(begun) < patience/2; {
		looked := time.Now()
		records, err := s.metrics(run)
		time.Sleep(5*time.Millisecond + 4*time.Since(looked)) // a long file takes the run's time
		if err == nil && len(records) > 0 && records[len(records)-1].Step >= step {
			return true
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			s.t.Fatal(err)
		}
	}
	return false
}

// await waits until something is so.
func (s *site) await(what string, so func() bool) {
	s.t.Helper()
	for begun := time.Now(); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Since(begun) > patience {
			s.t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// content is every file below a folder, by its name in it.
func (s *site) content(folder string) map[string][]byte {
	s.t.Helper()
	files := map[string][]byte{}
	root := s.path(folder)
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, root+"/")] = b
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return files
}

// sameFiles compares two folders byte for byte.
func (s *site) sameFiles(a, b string) {
	s.t.Helper()
	x, y := s.content(a), s.content(b)
	if len(x) == 0 {
		s.t.Errorf("%s is empty", a)
	}
	for name := range x {
		if _, ok := y[name]; !ok {
			s.t.Errorf("%s has %s, %s has not", a, name, b)
		} else if !bytes.Equal(x[name], y[name]) {
			s.t.Errorf("%s differs between %s and %s", name, a, b)
		}
	}
	for name := range y {
		if _, ok := x[name]; !ok {
			s.t.Errorf("%s has %s, %s has not", b, name, a)
		}
	}
}
