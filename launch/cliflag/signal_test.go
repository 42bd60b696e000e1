package cliflag

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patientVar has the test binary be a program that waits for a signal, in the way it says.
const patientVar = "CLIFLAG_TEST_PATIENT"

func TestMain(m *testing.M) {
	how := os.Getenv(patientVar)
	if how == "" {
		os.Exit(m.Run())
	}
	if how == "at once" {
		EndAtSignal("prog", "nothing was drawn", os.Stderr)
		fmt.Println("ready")
		select {}
	}
	ctx, end := UntilSignal(context.Background(), "nothing was measured")
	fmt.Println("ready")
	<-ctx.Done()
	switch how {
	case "deaf":
		fmt.Println("asked")
		select {}
	case "tidy":
		time.Sleep(OneRequest / 2)
	case "done":
		os.Exit(Exit("prog", end(nil), os.Stderr))
	case "goes on":
		fmt.Println("ended", end(nil))
		select {}
	}
	os.Exit(Exit("prog", end(fmt.Errorf("step 18: program %q: %w", "step", context.Cause(ctx))), os.Stderr))
}

// TestSignal: a program that a signal stops says so in a sentence, and its code is that of
// a death by the signal.
func TestSignal(t *testing.T) {
	heard := make(chan os.Signal, 1) // what is ignored here, as SIGHUP under nohup, is by a child; what is heard is not
	signal.Notify(heard, syscall.SIGHUP)
	defer signal.Stop(heard)
	for _, how := range []string{"in order", "at once"} {
		for sig, name := range map[syscall.Signal]string{syscall.SIGINT: "SIGINT", syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "SIGHUP"} {
			cmd, out, said := patient(t, how)
			read(t, out, "ready")
			signalTo(t, cmd, sig)
			want := "prog: stopped by " + name + ": nothing was measured\n"
			if how == "at once" {
				want = "prog: stopped by " + name + ": nothing was drawn\n"
			}
			if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 128+int(sig) || said.String() != want {
				t.Errorf("%s: %v, %q, want code %d and %q", how, cmd.ProcessState, said, 128+int(sig), want)
			}
		}
	}
}

// TestSecondSignal: a program that does not end when it is asked to dies of a later one. Where
// it stands still, one that comes long after the first is still the same request to it.
func TestSecondSignal(t *testing.T) {
	cmd, out, _ := patient(t, "deaf")
	read(t, out, "ready")
	signalTo(t, cmd, syscall.SIGTERM)
	read(t, out, "asked")
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	for again := 0; ; again++ {
		select {
		case <-ended:
		case <-time.After(2 * OneRequest):
			if again == 100 {
				t.Fatal("it lives")
			}
			_ = cmd.Process.Signal(syscall.SIGTERM) // it may just have ended
			continue
		}
		break
	}
	if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !s.Signaled() || s.Signal() != syscall.SIGTERM {
		t.Errorf("ended with %v, want its death by the second SIGTERM", cmd.ProcessState)
	}
}

// TestOneRequest: what timeout(1) sends, the same signal twice, is one request, and leaves
// the time to put things in order. Where the second was late it says nothing.
func TestOneRequest(t *testing.T) {
	for good := 0; good < 5; {
		cmd, out, said := patient(t, "tidy")
		read(t, out, "ready")
		begun := time.Now()
		signalTo(t, cmd, syscall.SIGTERM)
		time.Sleep(time.Millisecond)
		signalTo(t, cmd, syscall.SIGTERM)
		inTime := time.Since(begun) < OneRequest/4
		if _ = cmd.Wait(); !inTime {
			continue
		}
		good++
		if cmd.ProcessState.ExitCode() != 128+int(syscall.SIGTERM) || said.String() != "prog: stopped by SIGTERM: nothing was measured\n" {
			t.Errorf("%v, %q, want a sentence and code 143", cmd.ProcessState, said)
		}
	}
}

// A program that a signal finds at its end has done its work.
func TestSignalAtTheEnd(t *testing.T) {
	cmd, out, said := patient(t, "done")
	read(t, out, "ready")
	signalTo(t, cmd, syscall.SIGTERM)
	if err := cmd.Wait(); err != nil || said.String() != "" {
		t.Errorf("%v, %q, want code 0 and no word", err, said)
	}
}

// Behind the end a signal has its default effect again.
func TestSignalBehindTheEnd(t *testing.T) {
	cmd, out, _ := patient(t, "goes on")
	read(t, out, "ready")
	signalTo(t, cmd, syscall.SIGTERM)
	read(t, out, "ended <nil>")
	signalTo(t, cmd, syscall.SIGTERM)
	kill := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	_ = cmd.Wait()
	if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGTERM {
		t.Errorf("ended with %v, want its death by the second SIGTERM", cmd.ProcessState)
	}
}

// Without a signal errors stay as they are, and nothing of it goes on behind the end.
func TestUntilSignal(t *testing.T) {
	failure := errors.New("no luck")
	for _, err := range []error{nil, failure} {
		ctx, end := UntilSignal(t.Context(), "")
		if ctx.Err() != nil {
			t.Error("ended without a signal")
		}
		if got := end(err); !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
		if ctx.Err() == nil {
			t.Error("the context goes on")
		}
	}
}

func patient(t *testing.T, how string) (*exec.Cmd, io.Reader, *strings.Builder) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	said := &strings.Builder{}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env, cmd.Stderr = append(os.Environ(), patientVar+"="+how), said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out, said
}

func read(t *testing.T, from io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want)+1)
	if _, err := io.ReadFull(from, got); err != nil || string(got) != want+"\n" {
		t.Fatalf("it printed %q (%v), want %q", got, err, want)
	}
}

func signalTo(t *testing.T, cmd *exec.Cmd, sig syscall.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}
