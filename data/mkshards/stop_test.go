package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/data"
	"ebtrain/data/atomicfile"
	"ebtrain/data/importer"
	"ebtrain/data/synth"
	"ebtrain/launch/cliflag"
)

// child is mkshards in a process of its own.
type child struct {
	*exec.Cmd
	stderr bytes.Buffer
}

// start starts mkshards, which writes a large data set at root/out, and waits
// until it writes.
func start(t *testing.T, root string) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	c := &child{Cmd: exec.CommandContext(ctx, exe, "synth", "--train", "10000000", "--out", filepath.Join(root, "out"))}
	c.Env = append(os.Environ(), "MKSHARDS_TEST_MAIN=1")
	c.Stderr = &c.stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for len(temporaries(t, root)) == 0 && ctx.Err() == nil {
		time.Sleep(5 * time.Millisecond)
	}
	return c
}

// temporaries are what is being written at root, or was.
func temporaries(t *testing.T, root string) (names []string) {
	t.Helper()
	files, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if atomicfile.IsTemporary(f.Name()) {
			names = append(names, f.Name())
		}
	}
	return names
}

// A signal in the middle leaves nothing and is in the exit code.
func TestSignalLeavesNothing(t *testing.T) {
	heard := make(chan os.Signal, 1) // what is ignored here, as SIGHUP under nohup, is by a child; what is heard is not
	signal.Notify(heard, syscall.SIGHUP)
	defer signal.Stop(heard)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		root := t.TempDir()
		c := start(t, root)
		if err := c.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		err := c.Wait()
		e, ok := errors.AsType[*exec.ExitError](err)
		if !ok || e.ExitCode() != 128+int(sig) || !strings.Contains(c.stderr.String(), fmt.Sprintf("mkshards: stopped by %s: nothing was written\n", unix.SignalName(sig))) {
			t.Errorf("%v: %v, %q", sig, err, c.stderr.String())
		}
		if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
			t.Errorf("%v: left behind: %v, %v", sig, left, err)
		}
	}
}

// What a killed process leaves is removed by the next import there, under
// whatever name; what a living one is writing is not.
func TestKilledLeavesNothingForLong(t *testing.T) {
	root := t.TempDir()
	c := start(t, root)
	if want := fmt.Sprintf(".out.tmp-%d-", c.Process.Pid); !strings.HasPrefix(temporaries(t, root)[0], want) {
		t.Errorf("%v, want %s…", temporaries(t, root), want)
	}
	other := func(name string) {
		t.Helper()
		if code, _, _, err := try(t, "synth", "--size", "8", "--train", "9", "--out", filepath.Join(root, name)); code != 0 {
			t.Fatal(err)
		}
	}
	other("during")
	if n := len(temporaries(t, root)); n != 1 {
		t.Errorf("%d temporaries while it writes, want 1", n)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // killed
	other("after")
	if names := temporaries(t, root); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
}

// stuck is a source that is never read: a server that is gone.
type stuck struct {
	data.Source
	reached chan struct{}
}

func (s stuck) ReadBlock(int, *data.Block) error {
	close(s.reached)
	select {}
}

// Ctrl-C ends an import that hangs in a read, and one that hangs while it
// opens; nothing is left.
func TestStopWhereNothingComesBack(t *testing.T) {
	pictures, err := synth.Open(synth.Config{Size: 8}, "train")
	if err != nil {
		t.Fatal(err)
	}
	for name, hang := range map[string]func(reached chan struct{}) (*importer.Set, error){
		"read": func(reached chan struct{}) (*importer.Set, error) {
			return importer.Copy([]importer.Named{{Split: "train", Source: stuck{pictures, reached}}}), nil
		},
		"open": func(reached chan struct{}) (*importer.Set, error) {
			close(reached)
			select {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			reached := make(chan struct{})
			c := command{name: "stuck", need: []string{"out"}, open: func(context.Context, *settings) (*importer.Set, error) { return hang(reached) }}
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				<-reached
				cancel(&cliflag.Stopped{Signal: syscall.SIGINT, Rest: "nothing was written"})
			}()
			begin := time.Now()
			err := c.run(ctx, []string{"--out", filepath.Join(root, "out")}, &bytes.Buffer{}, &bytes.Buffer{})
			if cliflag.Exit("mkshards", err, io.Discard) != 130 || err.Error() != "stopped by SIGINT: nothing was written" {
				t.Errorf("%v", err)
			}
			if took := time.Since(begin); took > 30*time.Second {
				t.Errorf("it took %v", took)
			}
			if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// A pipe that is called a picture is passed over.
func TestPipeAmongPictures(t *testing.T) {
	src := t.TempDir()
	put(t, filepath.Join(src, "b.png"), picture(t, 16))
	if err := syscall.Mkfifo(filepath.Join(src, "a.png"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr, err := try(t, "folder", "--src", src, "--size", "8", "--out", filepath.Join(t.TempDir(), "out"))
	if code != 0 || !strings.Contains(stdout, "1 sample ") || !strings.Contains(stderr, "a.png, a named pipe") {
		t.Errorf("code %d, %v, %q, %q", code, err, stdout, stderr)
	}
}
