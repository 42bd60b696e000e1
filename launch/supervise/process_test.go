package supervise

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What a rank has written before its end is carried, also where whoever reads the console
// was so slow that the time for it has passed; and who holds the pipe is not waited for.
func TestLastOutputIsCarried(t *testing.T) {
	var want []string
	for i := range 1000 {
		want = append(want, fmt.Sprint("line ", i))
	}
	for _, text := range []string{strings.Join(want, "\n"), ""} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.WriteString(text); err != nil {
			t.Fatal(err)
		}
		p := &process{pipes: [2]*os.File{r}}
		if err := r.SetReadDeadline(time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		var got []string
		if err := p.carry(stdout, &lines{line: func(s string) { got = append(got, s) }}); err != nil {
			t.Error(err)
		}
		if s := strings.Join(got, "\n"); s != text {
			t.Errorf("carried %d of %d bytes", len(s), len(text))
		}
		_, _ = w.Close(), r.Close()
	}
}

// How much memory a rank had is told in bytes.
func TestPeak(t *testing.T) {
	cmd := exec.Command("sh", "-c", ":")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if got := (&process{cmd: cmd}).peak(); got < 100<<10 || got > 1<<30 {
		t.Errorf("a shell had %d bytes", got)
	}
}

// What keeps a process from being started for want of a limit of the system's is said with what to do.
func TestAdvised(t *testing.T) {
	for err, want := range map[error]string{
		unix.EAGAIN: "start the guard: resource temporarily unavailable: allow this user, or its container, more processes (ulimit -u)",
		unix.EMFILE: "start the guard: too many open files: allow ddplaunch more of them (ulimit -n)",
		unix.ENOENT: "start the guard: no such file or directory",
	} {
		if got := advised(fmt.Errorf("start the guard: %w", err)); got.Error() != want || !errors.Is(got, err) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A script that is there and does not start is not said to be missing.
func TestScriptDoesNotStart(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"exit 0":                   "/script: exec format error: want a program of this kind of machine, or a script that begins with #! and its interpreter",
		"#!/no/such/shell\nexit 0": "/script: no such file or directory: it is there, and what is to run it is not: the interpreter behind #! in its first line, or the loader that it was linked for",
	} {
		path := dir + "/script"
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := advised(exec.Command(path).Run()); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if err := advised(exec.Command(dir + "/none").Run()); err == nil || !strings.HasSuffix(err.Error(), "/none: no such file or directory") {
		t.Errorf("none: %v", err)
	}
}
