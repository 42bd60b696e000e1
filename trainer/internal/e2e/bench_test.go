package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"ebtrain/collective"
)

// TestBench measures two ranks under the launcher, and predicts from the report it
// leaves: twice the same.
func TestBench(t *testing.T) {
	long(t)
	s := newSite(t)
	tiny := []string{"bench", "--net", "conv32", "--width", "4", "--latent", "3", "--batch", "4", "--threads", "1", "--max-time", "100ms", "--fit-time", "5ms", "--predict", "16"}
	e := s.must(append([]string{"ddplaunch", "-nproc", "2"}, append(tiny, "--out", "scaling")...)...)
	for _, want := range []string{"strong: the same batch", "weak: the same batch for each rank", "who is slowest", "inside a host", "16 ranks lose most by", "what was not measured\n", "No network was measured: all ranks"} {
		if !strings.Contains(e.stdout, want) {
			t.Errorf("no %q in\n%s", want, e.stdout)
		}
	}
	if strings.Contains(e.stdout, "NaN") || strings.Contains(e.stdout, "Inf") {
		t.Errorf("numbers that are none:\n%s", e.stdout)
	}
	s.picture(filepath.Join("scaling", "bench.png"))
	text, err := os.ReadFile(s.path("scaling", "bench.json"))
	if err != nil {
		t.Fatal(err)
	}
	type report struct {
		Cases []struct {
			Ranks, Batch int
			Events       []any
			Turns        []float64 `json:"turns_us"`
		}
		Predictions json.RawMessage
	}
	var measured report
	if err := json.Unmarshal(text, &measured); err != nil {
		t.Fatal(err)
	}
	var cases string
	for _, c := range measured.Cases {
		cases += fmt.Sprintf("%d ranks %d, ", c.Ranks, c.Batch)
		if len(c.Turns) == 0 || (len(c.Events) > 0) != (c.Ranks > 1) {
			t.Errorf("%d ranks: %d turns, %d events", c.Ranks, len(c.Turns), len(c.Events))
		}
	}
	if want := "1 ranks 4, 1 ranks 2, 2 ranks 4, "; cases != want {
		t.Errorf("measured %s, want %s", cases, want)
	}
	file := filepath.Join("scaling", "bench.json")
	first := s.must("bench", "--from", file, "--predict", "16,100", "--json", "a.json")
	second := s.must("bench", "--from", file, "--predict", "16,100", "--json", "b.json")
	a, errA := os.ReadFile(s.path("a.json"))
	b, errB := os.ReadFile(s.path("b.json"))
	if errA != nil || errB != nil || first.stdout != second.stdout || string(a) != string(b) {
		t.Errorf("two predictions from one report differ (%v, %v):\n%s\n%s", errA, errB, first.stdout, second.stdout)
	}
	third := s.must("bench", "--from", file, "--predict", "16", "--json", "c.json")
	c, err := os.ReadFile(s.path("c.json"))
	if err != nil {
		t.Fatal(err)
	}
	var again report
	if err := json.Unmarshal(c, &again); err != nil || string(again.Predictions) != string(measured.Predictions) {
		t.Errorf("predicted from the file (%v):\n%s\nwhen it was measured:\n%s", err, third.stdout, measured.Predictions)
	}
	e = s.must(append([]string{"ddplaunch", "-nproc", "4"}, append(tiny, "--check", "--fit-up-to", "2", "--shard-optimizer", "--out", "parts")...)...)
	if !strings.Contains(e.stdout, "check: ms/step, predicted from up to 2 ranks, and measured") || strings.Contains(e.stdout, "NaN") {
		t.Errorf("no check of 4 ranks in\n%s", e.stdout)
	}
	if told := strings.Contains(e.stdout, "The first is what a rank had of them beyond computing and messages"); told != (runtime.NumCPU() < 4) {
		t.Errorf("4 ranks on %d processors, and processor time has told what a wait costs: %v, in\n%s", runtime.NumCPU(), told, e.stdout)
	}
	text, err = os.ReadFile(s.path("parts", "bench.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"shard_optimizer": true`, fmt.Sprintf(`"what": %d`, collective.ReduceScatter), fmt.Sprintf(`"what": %d`, collective.AllGather)} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the report of a sharded optimiser has no %s", want)
		}
	}
	for _, want := range []string{"(--shard-optimizer)", "How much less a rank of more ranks has to update was not measured: predictions"} {
		if !strings.Contains(e.stdout, want) {
			t.Errorf("no %q in\n%s", want, e.stdout)
		}
	}
	for _, bad := range []struct{ args, want string }{
		{"ddplaunch -nproc 2 bench --batch 1", "fewer samples than there are ranks"},
		{"bench -nproc 2 --batch 3", "cannot be shared equally by 2"},
		{"bench --from " + s.path("a.png"), "--from"},
	} {
		if e := s.run(strings.Fields(bad.args)...); e.code == 0 || !strings.Contains(e.stderr, bad.want) {
			t.Errorf("%s: want %q, got %v", bad.args, bad.want, e)
		}
	}
}

// TestBenchOfBoundRanks: ranks that a launcher binds to processors of their own share none.
func TestBenchOfBoundRanks(t *testing.T) {
	long(t)
	if runtime.NumCPU() < 2 {
		t.Skip("this machine has one processor: two ranks share it")
	}
	s := newSite(t)
	e := s.must("ddplaunch", "-nproc", "2", "--numa-binding", "exclusive", "bench", "--net", "conv32", "--width", "4", "--latent", "3", "--batch", "4",
		"--threads", "1", "--max-time", "100ms", "--fit-time", "0", "--out", "scaling")
	if strings.Contains(e.stdout, "no efficiency near 1") {
		t.Errorf("two ranks, each with a processor of its own, are said to share:\n%s", e.stdout)
	}
	text, err := os.ReadFile(s.path("scaling", "bench.json"))
	var report struct{ Cores int }
	if err = errors.Join(err, json.Unmarshal(text, &report)); err != nil || report.Cores < 2 {
		t.Errorf("%d processors, want those of both ranks (%v)", report.Cores, err)
	}
}

// TestThreadsOfRanks: without a launcher's OMP_NUM_THREADS, ranks that no one binds share the
// processors of their host.
func TestThreadsOfRanks(t *testing.T) {
	long(t)
	s := newSite(t)
	e := s.must("ddplaunch", "-nproc", "2", "sh", "-c", `unset OMP_NUM_THREADS; exec "$@"`, "sh", filepath.Join(s.bin, "bench"), "--net", "conv32", "--width", "4", "--latent", "3", "--batch", "4",
		"--max-time", "100ms", "--fit-time", "0")
	if want := fmt.Sprintf(", %d thread(s) a rank; %d processors", max(1, runtime.GOMAXPROCS(0)/2), runtime.NumCPU()); !strings.Contains(e.stdout, want) {
		t.Errorf("no %q in\n%s", want, e.stdout)
	}
}
