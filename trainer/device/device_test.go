package device

import (
	"strings"
	"testing"

	"ebtrain/ddp/graph"
)

func TestDefaultThreads(t *testing.T) {
	for _, c := range []struct {
		omp  string
		want int // 0 for an error
	}{{"3", 3}, {" 2 ", 2}, {"4,2", 4}, {"0", 0}, {"-1", 0}, {"many", 0}, {"99999", 0}, {",2", 0}} {
		n, err := defaultThreads(c.omp, 2)
		if n != c.want || (err == nil) != (c.want > 0) {
			t.Errorf("OMP_NUM_THREADS=%q: got %d, %v, want %d", c.omp, n, err, c.want)
		}
	}
	for _, ranks := range []int{0, 1, 1000} {
		if n, err := defaultThreads("", ranks); n < 1 || err != nil {
			t.Errorf("%d ranks: %d threads, %v", ranks, n, err)
		}
	}
}

func TestOpen(t *testing.T) {
	for _, c := range []struct {
		device, precision string
		threads           int
		want              string // "" for no error
	}{
		{"auto", F32, 1, ""}, {"cpu", F32, 1, ""}, {"ref", F32, 0, ""},
		{"gpu", F32, 1, `unknown --device "gpu"`}, {"cpu", F32, -1, "want --threads"}, {"ref", F32, 1 << 20, "want --threads"},
		{"cpu", "f16", 1, `unknown --precision "f16": want one of f32, bf16`}, {"ref", BF16, 1, "--device ref computes in float32 only"},
	} {
		b, err := Open(c.device, c.precision, c.threads, 1)
		if err == nil {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s in %s with %d threads: %v, want %q", c.device, c.precision, c.threads, err, c.want)
		}
	}
}

// TestOpenBF16 wants a backend in bfloat16, or the reason and the way out.
func TestOpenBF16(t *testing.T) {
	b, err := Open("auto", BF16, 1, 1)
	if err != nil {
		if s := err.Error(); !strings.HasPrefix(s, "--precision bf16: cpu: no bf16: ") || !strings.HasSuffix(s, ": use --precision f32") {
			t.Errorf("got %v", err)
		}
		return
	}
	if !strings.Contains(b.Name(), "bf16") {
		t.Errorf("the backend is %s", b.Name())
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func TestCheckMemory(t *testing.T) {
	var b graph.Builder
	x := b.Input("x", graph.T(graph.F32, 1<<28)) // 1 GiB
	b.Output("y", b.Sum(x))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if err := checkMemory(g, 2<<30, "--n"); err != nil {
		t.Error(err)
	}
	err = checkMemory(g, 2<<30-1, "--n")
	if want := "one value of the program, f32[268435456], takes 1.0 GiB, and this machine has 2.0 GiB of memory: choose a smaller --n"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}
