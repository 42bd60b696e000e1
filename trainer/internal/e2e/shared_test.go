package e2e

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
)

// Ranks that keep a part of the optimisers' state train as ranks do that keep all of
// it, to the bit, and leave the same checkpoints: of every method.
func TestShardOptimizer(t *testing.T) {
	long(t)
	for _, of := range newSite(t).setups() {
		t.Run(of.preset, func(t *testing.T) {
			s := newSite(t)
			s.sameRun(s.sharded(2, "all", of), s.sharded(2, "parts", of, "--shard-optimizer"))
		})
	}
	t.Run("bidvl-svhn", func(t *testing.T) {
		s := newSite(t)
		of := setup{"bidvl-svhn", []string{"--data", "synth:train=60", "--batch", "12", "--width", "4", "--latent", "4"}}
		for _, n := range []int{3, 4} {
			s.sameRun(s.sharded(n, fmt.Sprint("all", n), of), s.sharded(n, fmt.Sprint("parts", n), of, "--shard-optimizer"))
		}
	})
}

// Any number of ranks goes on where others stopped, whoever kept what; one rank says
// that it has nothing to share.
func TestShardedRunGoesOn(t *testing.T) {
	long(t)
	s := newSite(t)
	of := setup{"bidvl-svhn", []string{"--data", "synth:train=60", "--batch", "8", "--width", "4", "--latent", "4", "--deterministic"}}
	s.sharded(0, "one", of)
	s.sharded(2, "other", of, "--shard-optimizer", "--steps", "1")
	s.must(on(4, []string{"train", "--resume", "--out", "other", "--steps", "2"})...)
	s.must(on(2, []string{"train", "--resume", "--out", "other", "--steps", "3", "--shard-optimizer=false"})...)
	const want = "--shard-optimizer does nothing on one rank"
	if e := s.must("train", "--resume", "--out", "other", "--steps", "4", "--shard-optimizer"); !strings.Contains(e.stdout, want) {
		t.Errorf("one rank does not say %q: %v", want, e)
	}
	s.sameAll("one", "other", s.losses("one"), s.losses("other"))
}

// sharded runs four steps on n ranks, 0 for one alone, and returns out.
func (s *site) sharded(n int, out string, of setup, more ...string) string {
	s.t.Helper()
	args := append([]string{"train", "--preset", of.preset, "--steps", "4", "--samples", "0", "--out", out}, of.flags...)
	if n > 0 {
		args = append(args, "--threads", "1")
	}
	e := s.must(on(n, append(args, more...))...)
	if n > 0 && len(more) > 0 && !strings.Contains(e.stdout, fmt.Sprintf("--shard-optimizer: each of %d ranks keeps ", n)) {
		s.t.Errorf("%s: nobody says what is sharded: %v", out, e)
	}
	return out
}

// sameRun compares the losses of two runs and what they have learned. The norms of
// gradients, which ranks that keep parts sum in parts, may be rounded otherwise.
func (s *site) sameRun(a, b string) {
	s.t.Helper()
	x, y := s.losses(a), s.losses(b)
	for i := range x {
		for name, v := range x[i] {
			if i < len(y) && strings.HasPrefix(name, "grad") && math.Abs(y[i][name]-v) <= 1e-5*math.Abs(v) {
				y[i][name] = v
			}
		}
	}
	s.sameAll(a, b, x, y)
}

// sameAll compares losses of two runs, and what they have learned.
func (s *site) sameAll(a, b string, losses, others []map[string]float64) {
	s.t.Helper()
	if len(losses) != 4 || !reflect.DeepEqual(losses, others) {
		s.t.Errorf("the losses of %s are %v, those of %s %v", a, losses, b, others)
	}
	x, y := s.content(a+"/ckpt/step-00000004"), s.content(b+"/ckpt/step-00000004")
	delete(x, "state.json") // says on how many ranks
	delete(y, "state.json")
	if len(x) == 0 || !reflect.DeepEqual(x, y) {
		s.t.Errorf("the last checkpoints of %s and %s differ", a, b)
	}
}
