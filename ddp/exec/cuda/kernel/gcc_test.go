package kernel

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"ebtrain/ddp/exec/exectest"
)

// shim is the dialect for gcc, and shimRuns what runs the threads of what it compiles.
const (
	shim     = "../../../../collective/cuda/cudatest/double/shim.h"
	shimRuns = "../../../../collective/cuda/cudatest/double/cuda_shim.c"
)

// gcc compiles kernels for the CPU and keeps them for the time of the tests.
type gcc struct {
	dir   string
	one   sync.Mutex
	mu    sync.Mutex
	so    map[string]string // by entry
	files int
}

var compiler gcc

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "kernels")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }() // what is left lies in the folder for such
		compiler = gcc{dir: dir, so: map[string]string{}}
		return m.Run()
	}())
}

// needGCC skips a test where there is no gcc.
func needGCC(t testing.TB) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("gcc is not installed: kernels cannot be run on the CPU")
	}
}

// oneGoroutine skips a test under the race detector: one goroutine writes kernels and runs them
// in another process, as in TestConformance, which it does see.
func oneGoroutine(t testing.TB) {
	if exectest.Race {
		t.Skip("needs a run without the race detector, under which it takes ten times as long; with it TestConformance writes and runs kernels in the same way")
	}
}

// object is the path of the shared object of a kernel, compiled at the first call.
func (g *gcc) object(l *Launch) (string, error) {
	g.one.Lock() // who comes second waits for the compiler too
	defer g.one.Unlock()
	if err := g.compile([]Launch{*l}); err != nil {
		return "", err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.so[l.Entry], nil
}

// compile compiles those kernels that are not yet: those that are watched as one file, and
// the others as one.
func (g *gcc) compile(launches []Launch) error {
	for _, watch := range []bool{false, true} {
		if err := g.compileFile(launches, watch); err != nil {
			return err
		}
	}
	return nil
}

func (g *gcc) compileFile(launches []Launch, watch bool) error {
	var text strings.Builder
	var entries []string
	g.mu.Lock()
	g.files++
	base := filepath.Join(g.dir, fmt.Sprint(g.files))
	text.WriteString(dialect)
	for i := range launches {
		l := &launches[i]
		if _, ok := g.so[l.Entry]; ok || watched(l) != watch {
			continue
		}
		g.so[l.Entry] = base + ".so"
		entries = append(entries, l.Entry)
		text.WriteString(apart(l.Entry, l.Source[len(dialect):], len(entries)))
	}
	g.mu.Unlock()
	if len(entries) == 0 {
		return nil
	}
	file, err := filepath.Abs(shim)
	if err != nil {
		return err
	}
	if err := os.WriteFile(base+".c", []byte(text.String()), 0o600); err != nil {
		return err
	}
	args := []string{"-x", "c", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-Wno-unused-variable", "-Wno-unused-parameter",
		"-Wno-unused-but-set-variable", "-Wno-maybe-uninitialized", "-Wno-parentheses", "-fPIC", "-shared", "-nostdlib", "-ffp-contract=off", "-fno-strict-aliasing",
		"-include", file, base + ".c", "-o", base + ".so", "-lm"}
	if watch {
		args = append(args, watchFlags...)
	}
	out, err := exec.Command("gcc", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("gcc: %w\n%s\n%s", err, out, text.String())
	}
	return nil
}

// names are those that the texts of different kernels may give to different things.
var names = regexp.MustCompile(`(?m)^(?:(?:DEVICE|FUNCTION) [\w ]+? \*?(\w+)\(|typedef \w+ (\w+);|struct (\w+) \{)`)

// apart is a kernel's text with names of its own, so that several can be in one file.
func apart(entry, text string, number int) string {
	var b, after strings.Builder
	known := map[string]bool{}
	for _, m := range names.FindAllStringSubmatch(text, -1) {
		name := m[1] + m[2] + m[3]
		if known[name] || name == entry+"_args" {
			continue
		}
		known[name] = true
		fmt.Fprintf(&b, "#define %s %[1]s_%d\n", name, number)
		fmt.Fprintf(&after, "#undef %s\n", name)
	}
	return b.String() + text + after.String()
}

// prepare compiles many kernels, so many a file, on two processors.
func (g *gcc) prepare(t testing.TB, launches []Launch) {
	needGCC(t)
	slices.SortFunc(launches, func(a, b Launch) int { return strings.Compare(a.Entry, b.Entry) })
	launches = slices.CompactFunc(launches, func(a, b Launch) bool { return a.Entry == b.Entry })
	parts := slices.Collect(slices.Chunk(launches, 40))
	var all sync.WaitGroup
	next := make(chan []Launch, len(parts))
	for _, p := range parts {
		next <- p
	}
	close(next)
	for range 2 {
		all.Go(func() {
			for p := range next {
				if err := g.compile(p); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d kernels", len(launches))
}

// device is the memory of a process that runs kernels, which this process sees too.
type device struct {
	t      testing.TB
	memory []byte
	used   int
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr bytes.Buffer
	order  int // of blocks and threads: 0 forwards, 1 backwards
	block  int // threads in a block
	within []piece
}

const (
	deviceBase = 0x200000000000
	deviceSize = 256 << 20
)

func newDevice(t testing.TB) *device {
	t.Helper()
	needGCC(t)
	dir := t.TempDir()
	runner := filepath.Join(compiler.dir, "runner")
	if _, err := os.Stat(runner); err != nil {
		if out, err := exec.Command("gcc", "-O1", "-Wall", "-rdynamic", "testdata/runner.c", shimRuns, "-o", runner, "-ldl", "-lm").CombinedOutput(); err != nil {
			t.Fatalf("gcc: %v\n%s", err, out)
		}
	}
	f, err := os.Create(filepath.Join(dir, "memory"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // it is mapped, or the test has failed
	if err := f.Truncate(deviceSize); err != nil {
		t.Fatal(err)
	}
	d := &device{t: t, block: Block}
	if d.memory, err = syscall.Mmap(int(f.Fd()), 0, deviceSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED); err != nil {
		t.Fatal(err)
	}
	d.cmd = exec.Command(runner, f.Name(), fmt.Sprint(deviceSize), fmt.Sprint(deviceBase))
	d.cmd.Stderr = &d.stderr
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	d.out = bufio.NewReader(out)
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	return d
}

func (d *device) close() {
	if d.cmd != nil {
		_ = d.in.Close()
		_ = d.cmd.Wait() // a process that has ended was seen before
		d.cmd = nil
		_ = syscall.Munmap(d.memory) // nothing is left to do about it
	}
}

// alloc is so many bytes at a multiple of 256, between guards and full of NaN.
func (d *device) alloc(n int) (at int) {
	const guard = 256
	at = (d.used+255)/256*256 + guard
	d.used = at + n + guard
	if d.used > deviceSize {
		d.t.Fatalf("%d bytes do not fit into the memory of the device", n)
	}
	spoil(d.memory[at-guard : d.used])
	return at
}

// spoil fills memory with NaN of all types.
func spoil(mem []byte) {
	for i := range mem {
		mem[i] = 0xff
	}
}

// intact says whether the guards around memory at … at+n are.
func (d *device) intact(at, n int) bool {
	for _, g := range [][]byte{d.memory[at-256 : at], d.memory[at+n : at+n+256]} {
		for _, b := range g {
			if b != 0xff {
				return false
			}
		}
	}
	return true
}

// run runs a kernel.
func (d *device) run(l *Launch, m Memory) error { return d.runArgs(l, l.Args(m)) }

func (d *device) runArgs(l *Launch, args []byte) error {
	object, err := compiler.object(l)
	if err != nil {
		return err
	}
	command := fmt.Appendf(nil, "run %s %s %d %d %d %d %d\n", object, l.Entry, l.Grid, d.block, d.order, len(args), len(d.within))
	command = append(command, args...)
	for _, p := range d.within {
		command = p.append(command)
	}
	if _, err := d.in.Write(command); err != nil {
		return d.dead(l, err)
	}
	answer, err := d.out.ReadString('\n')
	if err != nil {
		return d.dead(l, err)
	}
	if answer = strings.TrimSpace(answer); answer != "ok" {
		return fmt.Errorf("%s", answer)
	}
	return nil
}

// dead says why the process that runs kernels is no more.
func (d *device) dead(l *Launch, err error) error {
	ended := d.cmd.Wait()
	return fmt.Errorf("%w: %w: %s\n%s", err, ended, d.stderr.String(), l.Source[len(dialect):])
}
