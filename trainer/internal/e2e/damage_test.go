package e2e

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDamageInTraining damages a block that is met after some twenty steps.
// Training stops with a checkpoint of the steps before it; with the block mended
// it goes on and gives the bytes of a run that met no damage; and without mending
// it goes on with other samples. Pools of two blocks are as many as a MiB holds.
func TestDamageInTraining(t *testing.T) {
	long(t)
	s := newSite(t)
	s.must("mkshards", "synth", "--size", "32", "--train", "500", "--val", "0", "--test", "0", "--out", "whole")
	if err := os.CopyFS(s.path("data"), os.DirFS(s.path("whole"))); err != nil {
		t.Fatal(err)
	}
	const shard = "data/train/shard-00000.safetensors.zst"
	s.change(shard, func(b []byte) []byte { b[len(b)*2/5] ^= 1; return b })
	args := func(data, out string, more ...string) []string {
		return on(2, tiny(out, append([]string{"--data", data, "--steps", "50", "--samples", "0", "--shuffle-memory", "1"}, more...)...))
	}
	e := s.run(args("data", "a")...)
	met := regexp.MustCompile(`step (\d+): .*` + regexp.QuoteMeta(shard) + `: frame \d+ at offset \d+ \(samples \d+ to \d+\): .*; a checkpoint of the (\d+) steps done is in place`).FindStringSubmatch(e.stderr)
	if e.code != 1 || met == nil || met[1] != met[2] || met[1] == "0" {
		t.Fatalf("want a stop at the damage, after a checkpoint: %v", e)
	}
	if err := os.CopyFS(s.path("b"), os.DirFS(s.path("a"))); err != nil {
		t.Fatal(err)
	}
	e = s.must("ddplaunch", "-nproc", "2", "train", "--resume", "--on-bad-data", "skip", "--out", "b")
	if len(s.losses("b")) != 50 || !strings.Contains(e.stderr, "damaged data are left out") || !strings.Contains(e.stderr, "has left out damaged data") || !strings.Contains(e.stderr, shard) {
		t.Errorf("%d steps past the damage: %v", len(s.losses("b")), e)
	}
	s.change(shard, func(b []byte) []byte { b[len(b)*2/5] ^= 1; return b })
	s.must("ddplaunch", "-nproc", "2", "train", "--resume", "--out", "a")
	s.must(args("whole", "c")...)
	s.sameFiles("a/ckpt/step-00000050", "c/ckpt/step-00000050")
}
