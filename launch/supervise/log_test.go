package supervise

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// logTo is a log in a folder of its own, which prepare may change, and what was said of it.
func logTo(t *testing.T, until time.Duration, prepare func(path string)) (l *logFile, path string, said func() string) {
	t.Helper()
	dir := t.TempDir()
	path = filepath.Join(dir, "rank-3.out")
	prepare(path)
	var mu sync.Mutex
	var all []string
	l, err := openLog(dir, 3, time.Now().Add(until), func(text string) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, text)
	})
	if err != nil {
		t.Fatal(err)
	}
	return l, path, func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(all, "\n")
	}
}

// What is written to a log is in it, behind what was.
func TestLog(t *testing.T) {
	l, path, said := logTo(t, time.Minute, func(path string) {
		if err := os.WriteFile(path, []byte("before\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	want := "before\n"
	for i := range 1000 {
		l.line(fmt.Sprint("line ", i))
		want += fmt.Sprintln("line", i)
	}
	l.flush()
	if err := l.close(); err != nil || said() != "" {
		t.Errorf("%v, said %q", err, said())
	}
	if got, err := os.ReadFile(path); string(got) != want {
		t.Errorf("%d of %d bytes, %v", len(got), len(want), err)
	}
	if _, err := openLog(path+"/none", 3, time.Now().Add(time.Minute), nil); err == nil || !strings.HasPrefix(err.Error(), "log of rank 3: open ") {
		t.Errorf("where there is no folder: %v", err)
	}
}

// Both streams of a rank come whole to its log, however long their lines are.
func TestLongLinesInLog(t *testing.T) {
	l, path, said := logTo(t, time.Minute, func(string) {})
	const lines, length = 20, 700_000
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			for range lines {
				l.line(strings.Repeat("x", length))
			}
		})
	}
	both.Wait()
	l.flush()
	if err := l.close(); err != nil || said() != "" {
		t.Errorf("%v, said %q", err, said())
	}
	got, err := os.ReadFile(path)
	if n := strings.Count(string(got), strings.Repeat("x", length)+"\n"); n != 2*lines || len(got) != n*(length+1) || err != nil {
		t.Errorf("%d of %d lines, %d bytes, %v", n, 2*lines, len(got), err)
	}
}

// A disk that does not answer keeps nobody, which a pipe shows that nobody reads: it cannot
// be opened, or takes no more. One that answers late has lost nothing.
func TestStalledLog(t *testing.T) {
	for name, opened := range map[string]bool{"open": false, "write": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var reader *os.File
			read := func(path string) {
				var err error
				if reader, err = os.OpenFile(path, os.O_RDWR, 0); err != nil {
					t.Fatal(err)
				}
			}
			l, path, said := logTo(t, 10*time.Millisecond, func(path string) {
				if err := unix.Mkfifo(path, 0o600); err != nil {
					t.Fatal(err)
				}
				if opened {
					read(path)
				}
			})
			for i := range 100_000 { // more than is kept
				l.line(fmt.Sprintf("line %d of some length", i))
			}
			l.flush()
			if err := l.close(); err != nil {
				t.Error(err)
			}
			if said() != "the disk does not answer: its last lines may be lost" {
				t.Errorf("said %q", said())
			}
			if !opened {
				read(path)
			}
			first := make([]byte, len("line 0 "))
			if _, err := reader.Read(first); err != nil || string(first) != "line 0 " {
				t.Errorf("at last %q came, %v", first, err)
			}
			_ = reader.Close()
		})
	}
}

// A disk that is full is told of once, with the reason.
func TestFullLog(t *testing.T) {
	l, _, said := logTo(t, time.Minute, func(path string) {
		if err := os.Symlink("/dev/full", path); err != nil {
			t.Fatal(err)
		}
	})
	for range 3 {
		l.line("a line")
		l.flush()
	}
	if err := l.close(); err != nil {
		t.Error(err)
	}
	if !strings.HasSuffix(said(), "no space left on device: its last lines are lost") || strings.Contains(said(), "\n") {
		t.Errorf("said %q", said())
	}
}

// The loop does not wait for who reads what ranks of the last epoch have written.
func TestReleaseSoon(t *testing.T) {
	slow := &process{}
	slow.drained.Add(1)
	over := make(chan struct{})
	go func() {
		(&agent{procs: []*process{nil, slow}}).releaseSoon()
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(time.Minute):
		t.Error("it waits")
	}
}
