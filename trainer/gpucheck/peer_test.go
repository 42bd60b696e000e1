package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPeer: a mode of the peer that fails is no failed check of ours, and says why.
func TestPeer(t *testing.T) {
	for _, c := range []struct {
		name, script, want string
		skipped            bool
	}{
		{"a mode fails", `echo '{"mode": "eager", "error": "CUDA out of memory"}'`, "CUDA out of memory", true},
		{"the program fails", "echo no such model >&2; exit 1", "no such model", true},
		{"it prints something else", "echo hello", `want a line of JSON with step_ms from --peer, got "hello\n"`, false},
	} {
		o := &options{peer: filepath.Join(t.TempDir(), "peer.sh")}
		if err := os.WriteFile(o.peer, []byte(c.script), 0o666); err != nil {
			t.Fatal(err)
		}
		text, _, err := peer(t.Context(), o, "sh", "conv32", 64, "eager")
		if err == nil || errors.Is(err, errSkipped) != c.skipped || !strings.Contains(text+err.Error(), c.want) {
			t.Errorf("%s: %q, %v; want %q in it, skipped %v", c.name, text, err, c.want, c.skipped)
		}
	}
}

// TestPeerSteps: what is timed is the line with step_ms, whatever is printed around it.
func TestPeerSteps(t *testing.T) {
	o := &options{peer: filepath.Join(t.TempDir(), "peer.sh")}
	if err := os.WriteFile(o.peer, []byte(`echo warming up; echo '{"step_ms": 2.5}'`), 0o666); err != nil {
		t.Fatal(err)
	}
	_, numbers, err := peer(t.Context(), o, "sh", "conv32", 64, "eager")
	if err != nil || numbers["step_ms"] != 2.5 {
		t.Errorf("%v, %v", numbers, err)
	}
}
