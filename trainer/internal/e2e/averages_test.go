package e2e

import (
	"bytes"
	"encoding/json"
	"image"
	"os"
	"strings"
	"testing"
)

// TestAverages trains with moving averages of weights, and draws from them and measures them.
func TestAverages(t *testing.T) {
	long(t)
	s := newSite(t)
	train := func(n int, out string, more ...string) {
		s.must(on(n, tiny(out, append([]string{"--steps", "3", "--deterministic", "--ema", "0.5", "--ckpt-every", "1", "--ckpt-keep", "0"}, more...)...))...)
	}
	train(1, "one")
	train(2, "two", "--shard-optimizer")
	read := func(name string) []byte {
		b, err := os.ReadFile(s.path(name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	const last = "/ckpt/step-00000003/average.safetensors"
	if !bytes.Equal(read("one"+last), read("two"+last)) {
		t.Error("two ranks have other averages than one")
	}
	drawn := func(out string, more ...string) []byte {
		s.must(append([]string{"sample", "--run", "one", "--n", "4", "--out", out}, more...)...)
		return read(out)
	}
	if !bytes.Equal(drawn("a.png", "--step", "1", "--ema"), drawn("b.png", "--step", "1")) {
		t.Error("after one step, the averages are not the weights")
	}
	if bytes.Equal(drawn("c.png", "--ema"), drawn("d.png")) {
		t.Error("after three steps, the averages draw what the weights do")
	}
	if e := s.must("sample", "--run", "one", "--n", "4", "--out", "c.png", "--ema"); e.stdout != "4 samples of one after 3 steps, averages of weights: c.png\n" {
		t.Errorf("it said %q", e.stdout)
	}
	var r struct {
		EMA  bool
		RMSE float64
	}
	if err := json.Unmarshal([]byte(s.must("evaluate", "--run", "one", "--measures", "rmse", "--ema", "--json").stdout), &r); err != nil || !r.EMA || !(r.RMSE > 0) {
		t.Errorf("%v: %+v", err, r)
	}
	if s.picture("one/samples/recon-test-step-00000003-ema.png") == (image.Point{}) {
		t.Error("the picture is empty")
	}
	table := s.must("evaluate", "--run", "one", "--measures", "rmse", "--ema", "--picture", "none")
	if !strings.HasPrefix(table.stdout, "one after 3 steps, averages of weights, ") {
		t.Errorf("it said %q", table.stdout)
	}
	s.must("train", "--from", "one", "--steps", "1", "--out", "next") // has its --ema
	if len(read("next/ckpt/step-00000001/average.safetensors")) == 0 {
		t.Error("a run from another has none of its averages")
	}
}
