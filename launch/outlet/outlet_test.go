package outlet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// pipe is a pair of outlets on one pipe.
func pipe(t *testing.T) (*os.File, *Writer, *Writer) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(r.Close(), w.Close()) }) // a reader that stopped would hold its writer
	out, errs := Pair(w, w)
	return r, out, errs
}

// All arrives, in the order of both streams.
func TestOrder(t *testing.T) {
	r, out, errs := pipe(t)
	var want strings.Builder
	for i := range 1000 {
		line := fmt.Sprintf("line %d\n", i)
		want.WriteString(line)
		if _, err := []*Writer{out, errs}[i%2].Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]byte, want.Len())
	if _, err := io.ReadFull(r, got); err != nil || string(got) != want.String() {
		t.Errorf("%v: got\n%s", err, got)
	}
	if err := errors.Join(out.Flush(), errs.Flush()); err != nil {
		t.Error(err)
	}
}

// Another program that has the same open file may have it not wait: that is no error, and
// nothing is lost.
func TestNonblocking(t *testing.T) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	r, w := os.NewFile(uintptr(fds[0]), "r"), os.NewFile(uintptr(fds[1]), "w") // they wait, as a program's streams do
	t.Cleanup(func() { _ = errors.Join(r.Close(), w.Close()) })
	out, _ := Pair(w, w)
	if err := unix.SetNonblock(fds[1], true); err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte("0123456789abcde\n"), bound/2/16)
	if _, err := out.Write(want); err != nil {
		t.Fatal(err)
	}
	go func() {
		select {
		case <-out.Failed():
			_ = w.Close() // the reader waits no longer
		case <-t.Context().Done():
		}
	}()
	got := make([]byte, len(want))
	for at := 0; at < len(got); { // the writer is faster
		time.Sleep(time.Millisecond)
		n, err := r.Read(got[at:min(len(got), at+10_000)])
		if err != nil {
			t.Fatal(err)
		}
		at += n
	}
	if err := out.Flush(); err != nil || !bytes.Equal(got, want) {
		t.Errorf("what came differs: %v, %v", !bytes.Equal(got, want), err)
	}
}

// flood writes three times as much as fits, and returns how many lines, of 1000 bytes, that
// begin with their number.
func flood(t *testing.T, out *Writer) (lines int) {
	t.Helper()
	for range 3 * bound / 1000 {
		if _, err := fmt.Fprintf(out, "%-998dx\n", lines); err != nil {
			t.Fatal(err)
		}
		lines++
	}
	return lines
}

// Nobody reads: writing goes on, Flush gives up, and who reads later is told of
// the gap in its place.
func TestReaderStops(t *testing.T) {
	r, out, _ := pipe(t)
	lines := flood(t, out)
	out.Turn()()
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	done := make(chan string)
	go func() {
		var all strings.Builder
		b := make([]byte, 1<<16)
		for !strings.Contains(all.String(), "last\n") {
			n, err := r.Read(b)
			if err != nil {
				break
			}
			all.Write(b[:n])
		}
		done <- all.String()
	}()
	for out.Turn()(); ; out.Turn()() { // the reader goes on, so there soon is room
		out.mu.Lock()
		room := out.bytes < bound/2
		out.mu.Unlock()
		if room {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if _, err := out.Write([]byte("last\n")); err != nil {
		t.Fatal(err)
	}
	got := <-done
	next, gaps := 0, 0 // where they are depends on when the writer started
	for line := range strings.Lines(got) {
		var n int
		switch {
		case line == "last\n":
		case strings.HasPrefix(line, "["):
			if _, err := fmt.Sscanf(line, "[%d lines are left out here: the output was not taken]\n", &n); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			next, gaps = next+n, gaps+1
		default:
			if n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(line, "x\n"))); err != nil || n != next {
				t.Fatalf("%.20q comes as line %d: %v", line, next, err)
			}
			next++
		}
	}
	if gaps == 0 || next != lines || !strings.HasSuffix(got, "\nlast\n") {
		t.Errorf("%d lines came or were said to be left out, at %d places, of %d; then %q", next, gaps, lines, got[max(0, len(got)-100):])
	}
}

// Who stands still just before it waits, until its timer has run out, is woken all the same.
func TestWake(t *testing.T) {
	out := New(io.Discard)
	defer out.Close()
	out.mu.Lock()
	defer out.mu.Unlock()
	soon := time.AfterFunc(0, out.wake)
	defer soon.Stop()
	lost := false
	late := time.AfterFunc(10*time.Second, func() {
		out.mu.Lock()
		defer out.mu.Unlock()
		lost = true
		out.changed.Broadcast()
	})
	defer late.Stop()
	time.Sleep(20 * time.Millisecond)
	if out.changed.Wait(); lost {
		t.Error("the timer ran out before the wait, which has not heard of it")
	}
}

// What is dropped last is told of, too, though nothing is written after it.
func TestLastDropped(t *testing.T) {
	shut := &gate{open: make(chan struct{})}
	out := New(shut)
	lines := flood(t, out)
	close(shut.open)
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	got := shut.text.String()
	const kept = bound/1000 + 1
	want := fmt.Sprintf("x\n[%d lines are left out here: the output was not taken]\n", lines-kept)
	if n := strings.Count(got, "x\n"); n != kept || !strings.HasSuffix(got, want) {
		t.Errorf("%d lines came, want %d, and then %q, want %q", n, kept, got[strings.LastIndex(got, "x\n"):], want)
	}
}

// gate takes nothing until it is open.
type gate struct {
	open chan struct{}
	text bytes.Buffer
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.open
	return g.text.Write(p)
}

// A slow reader gets everything if who writes waits for room: one that takes nearly all the
// time that he has for a piece.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		out := New(w)
		line := append(bytes.Repeat([]byte{'x'}, 9999), '\n')
		const lines = 3 * bound / 10000
		go func() {
			for range lines {
				out.Turn()()
				if _, err := out.Write(line); err != nil {
					t.Error(err)
				}
			}
			out.Close()
		}()
		got := make([]byte, lines*len(line))
		for at := 0; at < len(got); {
			time.Sleep(patience - 2*turn)
			n, err := r.Read(got[at:])
			if err != nil {
				t.Fatal(err)
			}
			at += n
		}
		if want := bytes.Repeat(line, lines); !bytes.Equal(got, want) {
			t.Error("the text is not what was written")
		}
	})
}

// Whoever stands still finds that its reader has taken nothing: it has not waited for him.
func TestStandsStill(t *testing.T) {
	for range 5 { // the reader is in this process: where it gets no processor he is waited for
		left := standsStill(t)
		if left == 0 {
			return
		}
		t.Logf("its reader was given up, with %d bytes to read", left)
	}
	t.Error("its reader was given up each time")
}

// standsStill is how much of a text its reader had not taken when he was given up.
func standsStill(t *testing.T) int {
	t.Helper()
	r, out, _ := pipe(t)
	still := exec.Command("sh", "-c", `read -r _; kill -STOP $PPID; sleep "$0"; kill -CONT $PPID`, fmt.Sprint(2*patience.Seconds()))
	stop, err := still.StdinPipe()
	if err == nil {
		err = still.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	text := bytes.Repeat([]byte("a line\n"), bound/20)
	if _, err := out.Write(text); err != nil {
		t.Fatal(err)
	}
	left := make(chan int, 1)
	go func() {
		if err := out.Flush(); err != nil {
			t.Error(err)
		}
		out.mu.Lock()
		defer out.mu.Unlock()
		left <- out.bytes
	}()
	for full := false; !full; time.Sleep(time.Millisecond) { // the pipe, and Flush waits
		out.mu.Lock()
		full = out.bytes < len(text) && out.waited > 0
		out.mu.Unlock()
	}
	// It is there already: while it starts the reader would be waited for.
	if _, err := stop.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	if err := still.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, make([]byte, len(text))); err != nil {
		t.Error(err)
	}
	return <-left
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestError(t *testing.T) {
	out, _ := Pair(broken{}, broken{})
	if _, err := out.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	<-out.Failed()
	if _, err := out.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
	if err := out.Flush(); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
}

// What waits when an outlet is closed is written all the same, and then its goroutine ends.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which fails if a goroutine is left
		var out strings.Builder
		w := New(&slowly{&out})
		for range 3 {
			if _, err := w.Write([]byte("text ")); err != nil {
				t.Fatal(err)
			}
		}
		if !w.Waits() {
			t.Error("nothing waits")
		}
		w.Close()
		synctest.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		if w.Waits() || out.String() != "text text text " {
			t.Errorf("written is %q, more waits: %v", out.String(), w.Waits())
		}
	})
}

// slowly takes ten seconds for each write.
type slowly struct{ to io.Writer }

func (s *slowly) Write(p []byte) (int, error) {
	time.Sleep(10 * time.Second)
	return s.to.Write(p)
}
