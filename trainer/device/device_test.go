package device

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	driver "ebtrain/collective/cuda"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/launch/memory"
)

// TestMain takes the GPUs out of the machine that it runs on, but for processes of TestOnGPUs.
func TestMain(m *testing.M) {
	if text := os.Getenv(onGPUs); text != "" {
		tell(text)
		return
	}
	if err := os.Setenv(driver.LibsVariable, "-"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

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
	// The runtime starts with the processors that there are, or those that a container's
	// quota is worth.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(7))
	for ranks, want := range map[int]int{0: 7, 1: 7, 2: 3, 1000: 1} {
		if n, err := defaultThreads("", ranks); n != want || err != nil {
			t.Errorf("%d ranks on 7 processors: %d threads, %v, want %d", ranks, n, err, want)
		}
	}
}

// Threads is what the user said, or else what the environment says.
func TestThreads(t *testing.T) {
	t.Setenv("OMP_NUM_THREADS", "3")
	for threads, want := range map[int]int{0: 3, 2: 2} {
		if n, err := Threads(Config{Device: "cuda", Threads: threads}); n != want || err != nil {
			t.Errorf("--threads %d: got %d, %v, want %d", threads, n, err, want)
		}
	}
	t.Setenv("OMP_NUM_THREADS", "many")
	if n, err := Threads(Config{}); err == nil {
		t.Errorf("got %d of no number", n)
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
		{"cpu", "f16", 1, `unknown --precision "f16": want one of f32, tf32, bf16`}, {"ref", BF16, 1, "--device ref computes in float32 only"},
		{"auto", TF32, 1, "--precision tf32: only NVIDIA GPUs multiply in TF32, and --device auto computes on the CPU here (this machine has no NVIDIA driver): use --precision f32"}, {"ref", TF32, 1, "--precision tf32"},
		{"cuda", F32, 1, "--device cuda: this machine has no NVIDIA driver"}, {"cuda", TF32, 1, "--device cuda: "},
	} {
		b, err := Open(Config{Device: c.device, Precision: c.precision, Threads: c.threads, LocalRanks: 1})
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

// A graph of steps is for GPUs.
func TestNoGraphOnProcessors(t *testing.T) {
	for device, want := range map[string]string{
		"cpu": "--device cpu computes on the CPU: leave it out", "ref": "--device ref computes on the CPU: leave it out",
		"auto": "--device auto computes on the CPU here (this machine has no NVIDIA driver): leave it out",
	} {
		_, err := Open(Config{Device: device, Precision: F32, Threads: 1, LocalRanks: 1, Graph: On})
		if err == nil || err.Error() != "--cuda-graph on: only NVIDIA GPUs capture steps, and "+want {
			t.Errorf("%s: %v", device, err)
		}
	}
	if err := CheckGraph("cpu", Off); err != nil {
		t.Error(err)
	}
}

// TestNotice says which device auto has taken, and why it is no GPU.
func TestNotice(t *testing.T) {
	b, err := Open(Config{Device: "auto", Precision: F32, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	if s := exec.Describe(b); !strings.HasPrefix(s, "cpu (") || !strings.Contains(s, "this machine has no NVIDIA driver") {
		t.Errorf("auto is %q, want the CPU and why", s)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	i := instead{noticed{b, "one thread"}, driver.ErrNoDriver}
	if want := "one thread; " + driver.ErrNoDriver.Error(); i.Notice() != want {
		t.Errorf("got %q, want what the CPU has to say, too: %q", i.Notice(), want)
	}
}

// noticed is a backend that has something to say.
type noticed struct {
	exec.Backend
	notice string
}

func (n noticed) Notice() string { return n.notice }

// TestOpenBF16 wants a backend in bfloat16, or the reason and the way out.
func TestOpenBF16(t *testing.T) {
	b, err := Open(Config{Device: "auto", Precision: BF16, Threads: 1})
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
	if err := CheckMemory(sized{store: Store{Bytes: 2 << 30}}, g, "--n"); err != nil {
		t.Error(err)
	}
	err = CheckMemory(sized{store: Store{Bytes: 2<<30 - 1, Of: "GPU 1"}}, g, "--n")
	if want := "one value of the program, f32[268435456], takes 1.0 GiB, and GPU 1 has 2.0 GiB of memory: choose a smaller --n"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
	broken := errors.New("no answer")
	if err := CheckMemory(sized{err: broken}, g, "--n"); !errors.Is(err, broken) {
		t.Errorf("got %v, want what the device said", err)
	}
}

// sized is a backend with a memory of its own.
type sized struct {
	exec.Backend
	store Store
	err   error
}

func (s sized) Memory() (Store, error) { return s.store, s.err }

func TestMemory(t *testing.T) {
	here, err := Memory(nil)
	if err != nil || here.Bytes < 1<<20 || here.Share(2) != here.Bytes/2 {
		t.Errorf("this machine has %+v, %v", here, err)
	}
	if plain, err := Memory(ref.New()); err != nil || plain != here {
		t.Errorf("a backend in host memory has %+v, %v, want %+v", plain, err, here)
	}
	for limit, want := range map[int64]Store{
		1 << 30:          {Bytes: 1 << 30, Of: "the control group of this process"},
		5 << 30:          {Bytes: 4 << 30, Of: "this machine"},
		memory.Unlimited: {Bytes: 4 << 30, Of: "this machine"},
	} {
		if got := ofHost(4<<30, limit); got != want {
			t.Errorf("limit %d: %+v, want %+v", limit, got, want)
		}
	}
	gpu := Store{Bytes: 8 << 30, Of: "GPU 0", Own: true}
	if got, err := Memory(sized{store: gpu}); err != nil || got != gpu || got.Share(4) != gpu.Bytes {
		t.Errorf("got %+v, %v, share %d; want %+v, all of it", got, err, got.Share(4), gpu)
	}
}

// TestGPUs: where --device auto computes on the CPU there are none.
func TestGPUs(t *testing.T) {
	if names := GPUs(); len(names) > 0 {
		t.Errorf("got %q", names)
	}
}
