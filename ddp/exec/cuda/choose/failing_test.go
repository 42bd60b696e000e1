//go:build cgo

package choose_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ebtrain/collective/cuda"
	"ebtrain/collective/cuda/cudatest"
	"ebtrain/ddp/exec/cuda/choose"
	"ebtrain/ddp/exec/cuda/cudnn"
	"ebtrain/ddp/exec/cuda/linalg"
	"ebtrain/ddp/graph"
)

// TestCompare: what all ranks say where some have another GPU or other libraries.
func TestCompare(t *testing.T) {
	d := open(t)
	for name, c := range map[string]struct {
		old, new string // of what rank 2 has
		want     string
	}{
		"alike":           {"", "", ""},
		"another cuDNN":   {"cuDNN 9.19.0", "cuDNN 9.20.0", "rank 0 has cuDNN 9.19.0 and rank 2 has cuDNN 9.20.0: install the same"},
		"a cuBLASLt":      {"cuBLASLt ", "cuBLASLt 7", "rank 0 has cuBLASLt "},
		"another GPU":     {"4 multi", "5 multi", "rank 0 has Double H100 (compute capability 9.0, 4 multiprocessors) and rank 2 has Double H100 (compute capability 9.0, 5 multi"},
		"without a cuDNN": {"cuDNN 9.19.0", "", "rank 0 has cuDNN 9.19.0 and rank 2 has no cuDNN: install the same cuDNN and cuBLASLt on all hosts"},
		"noise":           {"{", "", "what rank 2 computes with"},
	} {
		err := choose.Compare(d.o, func(mine []byte) ([][]byte, error) {
			return [][]byte{mine, mine, []byte(strings.Replace(string(mine), c.old, c.new, 1))}, nil
		})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	bare := choose.Options{Device: d.o.Device}
	if err := choose.Compare(bare, func(mine []byte) ([][]byte, error) {
		return [][]byte{mine, []byte(strings.Replace(string(mine), "4 multi", "5 multi", 1))}, nil
	}); err != nil {
		t.Errorf("without libraries: %v", err)
	}
	lost := errors.New("the line is cut")
	if err := choose.Compare(d.o, func([]byte) ([][]byte, error) { return nil, lost }); !errors.Is(err, lost) {
		t.Errorf("a broken line: got %v", err)
	}
}

// TestRanksDiffer: what the other ranks say when rank 0 fails, or has another program.
func TestRanksDiffer(t *testing.T) {
	d := open(t)
	ps := []linalg.Problem{conv(f32)}
	var wire []byte
	send := func(o *choose.Options) { o.Share = func(b []byte) ([]byte, error) { wire = b; return b, nil } }
	receive := func(o *choose.Options) { o.Rank, o.Share = 1, func([]byte) ([]byte, error) { return wire, nil } }
	want := func(name, text string) {
		t.Helper()
		if _, err := d.chooser(t, receive).Choose(ps); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: got %v, want %q", name, err, text)
		}
	}
	if _, err := d.chooser(t, send).Choose(ps); err != nil {
		t.Fatal(err)
	}
	all := wire
	wire = []byte(strings.ReplaceAll(string(all), "conv2d", "conv3d"))
	want("another program", "its program is another")
	wire = []byte("{")
	want("noise", "rank 0's choices")
	lost := errors.New("the line is cut")
	broken := d.chooser(t, func(o *choose.Options) { o.Rank, o.Share = 1, func([]byte) ([]byte, error) { return nil, lost } })
	if _, err := broken.Choose(ps); !errors.Is(err, lost) {
		t.Errorf("a broken line: got %v", err)
	}
	d.m.Fail("cuMemAlloc_v2", 1, 2)
	if _, err := d.chooser(t, send).Choose(ps); err == nil {
		t.Fatal("rank 0 chose without memory")
	}
	want("rank 0 fails", "rank 0 has no kernels: timing kernels for conv2d")
}

// TestAskedAgain: where rank 0 fails at the second problem, no rank has a kernel for the first,
// and all have the same when they are asked for both again.
func TestAskedAgain(t *testing.T) {
	d := open(t)
	second := conv(f32)
	second.N = 3
	ps := []linalg.Problem{conv(f32), second}
	var wire []byte
	broken := errors.New("broken")
	zero := d.chooser(t, func(o *choose.Options) {
		o.Share = func(b []byte) ([]byte, error) { wire = b; return b, nil }
		o.Few = func(p linalg.Problem) (linalg.Candidate, error) {
			if p == ps[1] {
				return nil, broken
			}
			return nil, nil
		}
	})
	one := d.chooser(t, func(o *choose.Options) { o.Rank, o.Share = 1, func([]byte) ([]byte, error) { return wire, nil } })
	if _, err := zero.Choose(ps); !errors.Is(err, broken) {
		t.Fatalf("rank 0: got %v", err)
	}
	if _, err := one.Choose(ps); err == nil || !strings.Contains(err.Error(), "rank 0 has no kernels") {
		t.Fatalf("rank 1: got %v", err)
	}
	broken = nil
	list, err := zero.Choose(ps)
	if err != nil {
		t.Fatal(err)
	}
	if same, err := one.Choose(ps); err != nil || !slices.Equal(names(same), names(list)) {
		t.Errorf("asked again: rank 1 has %v, %v, and rank 0 %v", same, err, list)
	}
}

// TestBadProblem is refused before anything is done.
func TestBadProblem(t *testing.T) {
	d := open(t)
	bad := conv(f32)
	bad.OW = 9
	if _, err := d.chooser(t, nil).Choose([]linalg.Problem{bad}); err == nil || !strings.Contains(err.Error(), "the output is") {
		t.Errorf("got %v", err)
	}
}

// TestFailingKernel: a candidate that cannot be put onto the stream is left out, and
// said; the others remain. What is chosen then is for this run alone, not for the user's others.
func TestFailingKernel(t *testing.T) {
	d := open(t)
	file, cache, keep := kept(t)
	ps := []linalg.Problem{conv(ty(graph.F32, graph.F32, graph.F32, linalg.TF32))}
	d.m.Fail("cudnnBackendExecute", 1, 5000)
	list, err := d.chooser(t, keep).Choose(ps)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.said) != 1 || !strings.Contains(d.said[0], "cudnn engine 1 is left out") || list[0].String() == "cudnn engine 1" {
		t.Errorf("said %q, chose %v", d.said, list)
	}
	if !written(file) || written(cache) {
		t.Errorf("the run's file is written: %v, the cache: %v", written(file), written(cache))
	}
	// The run goes on, with a problem more, which is all that the cache gets.
	other := linalg.Product{Batch: 1, M: 2, N: 3, K: 4, T: f32}
	if _, err := d.chooser(t, keep).Choose(append(ps, other)); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(cache); err != nil || !strings.Contains(string(text), other.String()) || strings.Contains(string(text), ps[0].String()) {
		t.Errorf("the cache has %s, %v", text, err)
	}
}

// TestFullWhileTimed: where the device is full as a candidate runs, that says nothing of the
// candidate. It is an error, and nothing is kept.
func TestFullWhileTimed(t *testing.T) {
	tf32 := ty(graph.F32, graph.F32, graph.F32, linalg.TF32)
	for _, c := range []struct {
		call string
		code int
		p    linalg.Problem
	}{
		{"cudnnBackendExecute", 4004, conv(tf32)},
		{"cublasLtMatmul", 3, linalg.Product{Batch: 1, M: 2, N: 3, K: 4, T: tf32}},
		{"cuLaunchHostFunc", 2, conv(ty(graph.F32, graph.BF16, graph.F32, linalg.TF32))}, // of casts
	} {
		for _, untimed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, untimed %v", c.call, untimed), func(t *testing.T) {
				d := open(t)
				file, cache, keep := kept(t)
				d.o.Untimed, d.o.Move = untimed, nil
				d.m.Fail(c.call, 1, c.code)
				_, err := d.chooser(t, keep).Choose([]linalg.Problem{c.p})
				if err == nil || strings.Contains(err.Error(), "none works") || len(d.said) > 0 || written(file) || written(cache) {
					t.Errorf("got %v, said %q; the run's file is written: %v, the cache: %v", err, d.said, written(file), written(cache))
				}
			})
		}
	}
}

// kept are a run's file and a user's cache, and how a chooser keeps them.
func kept(t *testing.T) (file, cache string, keep func(*choose.Options)) {
	dir := t.TempDir()
	file, cache = filepath.Join(dir, "file.json"), filepath.Join(dir, "cache.json")
	return file, cache, func(o *choose.Options) { o.File, o.Cache = file, cache }
}

func written(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// TestFailingList: where all that a library offers cannot be put onto the stream, what there
// is besides is taken, timed or not; without that it is one sentence.
func TestFailingList(t *testing.T) {
	tf32, wide := ty(graph.F32, graph.F32, graph.F32, linalg.TF32), ty(graph.F32, graph.BF16, graph.BF16, linalg.Full)
	for name, c := range map[string]struct {
		untimed     bool
		which, said int
		t           linalg.Types
		want        string
	}{
		"the first, untimed":   {true, 1, 1, tf32, "cudnn engine 2, knobs 2=1"},
		"all, untimed":         {true, 0, 2, tf32, "plain reference"},
		"all":                  {false, 0, 2, tf32, "plain reference"},
		"all of each way, too": {true, 0, 4, wide, "plain reference"},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			d.o.Move = nil // products of columns would be taken
			d.m.Fail("cudnnBackendExecute", c.which, 5000)
			list, err := d.chooser(t, func(o *choose.Options) { o.Untimed = c.untimed }).Choose([]linalg.Problem{conv(c.t)})
			if err != nil || list[0].String() != c.want || len(d.said) != c.said {
				t.Errorf("got %v, %v, said %q, want %s", list, err, d.said, c.want)
			}
		})
	}
	d := open(t)
	d.o.Move = nil
	d.m.Fail("cudnnBackendExecute", 0, 5000)
	_, err := d.chooser(t, func(o *choose.Options) { o.Plain = nil }).Choose([]linalg.Problem{conv(tf32)})
	if err == nil || !strings.Contains(err.Error(), "there is no kernel for conv2d") || !strings.Contains(err.Error(), "EXECUTION_FAILED") || strings.Contains(err.Error(), "\n") {
		t.Errorf("without another: got %v", err)
	}
}

// TestEachCallFails: each call of all libraries that a choice makes fails once. It is
// one sentence, or another kernel is taken and it is said; nothing is left.
func TestEachCallFails(t *testing.T) {
	for _, c := range []struct {
		f    string
		code int
	}{
		{"cuMemAlloc_v2", 2}, {"cuMemHostAlloc", 2}, {"cuEventCreate", 2}, {"cuEventRecordWithFlags", 1}, {"cuEventElapsedTime", 1},
		{"cuMemcpyHtoDAsync_v2", 1}, {"cuStreamSynchronize", 719}, {"cudnnBackendExecute", 5000}, {"cublasLtMatmul", 13},
		{"cudnnBackendCreateDescriptor", 4003}, {"cublasLtMatmulAlgoGetHeuristic", 14},
	} {
		t.Run(c.f, func(t *testing.T) {
			failed := 0
			for n := 1; n < 1000; n++ {
				said, err := once(t, c.f, n, c.code)
				if err == nil && said == 0 {
					break
				}
				failed++
				if err != nil && strings.Contains(err.Error(), "\n") {
					t.Fatalf("call %d: got %q", n, err)
				}
			}
			if failed == 0 {
				t.Error("no call was made to fail")
			}
		})
	}
}

// once makes a choice in which one call fails.
func once(t *testing.T, f string, n, code int) (said int, err error) {
	t.Run(fmt.Sprint(n), func(t *testing.T) {
		d := open(t)
		c := d.chooser(t, nil)
		d.m.Fail(f, n, code)
		_, err = c.Choose([]linalg.Problem{conv(ty(graph.F32, graph.BF16, graph.F32, linalg.TF32)), linalg.Product{Batch: 1, M: 2, N: 3, K: 4, T: f32}})
		said = len(d.said)
	})
	return said, err
}

// TestLostDevice: a kernel that breaks the device while it is timed is one sentence,
// not the many that follow from it.
func TestLostDevice(t *testing.T) {
	cudatest.Use(t)
	out := exec.Command(os.Args[0], "-test.run=^TestLostChild$", "-test.v")
	out.Env = append(os.Environ(), "CHOOSE_LOST=1", cudatest.Prefix+"FAULT=run:cuDNN convolution=2=700")
	text, err := out.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	said := regexp.MustCompile(`(?s)LOST<(.*)>`).FindSubmatch(text)
	if said == nil || !strings.Contains(string(said[1]), "the GPU's context is lost") || strings.Contains(string(said[1]), "\n") {
		t.Errorf("got %s", text)
	}
}

// TestLostChild is a process of TestLostDevice's: its device is of no use after.
func TestLostChild(t *testing.T) {
	if os.Getenv("CHOOSE_LOST") == "" {
		return
	}
	cudatest.Use(t)
	dev, err := cuda.OpenDevice(0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := dev.NewStream("test", 0)
	if err != nil {
		t.Fatal(err)
	}
	conv2d, err := cudnn.New(dev, workspace)
	if err != nil {
		t.Fatal(err)
	}
	_, err = choose.New(choose.Options{Device: dev, Stream: s, Convolutions: conv2d}).Choose([]linalg.Problem{conv(ty(graph.F32, graph.F32, graph.F32, linalg.TF32))})
	fmt.Printf("LOST<%v>\n", err)
}
