package cuda

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	driver "ebtrain/collective/cuda"
	"ebtrain/collective/cuda/cudatest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// TestOutOfMemory names who has the memory: what this rank knows of, and how much the rest
// is.
func TestOutOfMemory(t *testing.T) {
	m := cudatest.Use(t)
	m.Set("MEMORY", fmt.Sprint(64<<20))
	b := open(t, Config{Plain: true, Smaller: "take less"})
	others, err := b.dev.Alloc(1 << 20) // which the backend does not know
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.dev.Free(others); err != nil {
			t.Error(err)
		}
	}()
	v := b.NewVars()
	err = v.Set("huge", exec.NewTensor(graph.T(graph.U8, 70<<20)))
	if want := "; this rank holds nothing yet; other processes (nvidia-smi lists them), the driver, libraries and captured runs hold 1.000 MiB: take less"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %q at its end", err, want)
	}
	if err := v.Set("large", exec.NewTensor(graph.T(graph.U8, 40<<20))); err != nil {
		t.Fatal(err)
	}
	err = v.Set("larger", exec.NewTensor(graph.T(graph.U8, 50<<20)))
	want := `GPU 0 (Double H100) is out of memory: 50.00 MiB were asked for variable "larger", and 23.00 MiB of 64.00 MiB are free; this rank holds most for variable "large" (40.00 MiB); other processes (nvidia-smi lists them), the driver, libraries and captured runs hold 1.000 MiB: take less`
	if full, ok := errors.AsType[*exec.FullError](err); !ok || full.Asked != 50<<20 || len(full.Largest) != 1 || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestFullInCalls: every call of the driver's and of a library's that finds no memory is told
// like one that asked for some, but for memory of the host.
func TestFullInCalls(t *testing.T) {
	g := scene()
	for _, c := range []struct {
		call    string
		n, code int
		plain   bool
	}{
		{"cuModuleLoadData", 1, 2, true}, {"cuStreamCreateWithPriority", 1, 2, true}, {"cuLaunchKernel", 1, 2, true}, {"cuEventCreate", 1, 2, true},
		{"cuGraphInstantiateWithFlags", 1, 2, true}, {"cuGraphLaunch", 1, 2, true},
		{"cudnnCreate", 1, 4004, false}, {"cudnnCreate", 2, 4004, false}, {"cublasLtCreate", 1, 3, false},
	} {
		m := cudatest.Use(t)
		m.Fail(c.call, c.n, c.code)
		_, err := play(g, Config{Plain: c.plain, Graphs: GraphsOn, Smaller: "take less"}, 4)
		full, ok := errors.AsType[*exec.FullError](err)
		if !ok || full.Total == 0 || !strings.HasSuffix(err.Error(), ": take less") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v", c.call, err)
		} else if _, ok := errors.AsType[*driver.OutOfMemory](err); !ok {
			t.Errorf("%s: %v hides what the driver said", c.call, err)
		}
		m.Clean()
	}
	m := cudatest.Use(t)
	m.Fail("cuMemHostAlloc", 1, 2)
	_, err := play(g, Config{Plain: true}, 1)
	if _, full := errors.AsType[*exec.FullError](err); full || err == nil {
		t.Errorf("memory of the host is told as the device's: %v", err)
	}
}

// TestLargeVariable: a variable larger than the pinned memory that variables pass through comes
// and goes whole, in its order.
func TestLargeVariable(t *testing.T) {
	cudatest.Use(t)
	b, err := New(Config{Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	v := b.NewVars()
	x := exec.NewTensor(graph.T(graph.F32, 2*bounceBytes/4+77))
	for i := range x.F32() {
		x.F32()[i] = float32(i)
	}
	if err := v.Set("x", x); err != nil {
		t.Fatal(err)
	}
	got, err := v.Get("x")
	if err != nil || !slices.Equal(got.F32(), x.F32()) {
		t.Errorf("it has other numbers, %v", err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// TestOtherVars: variables in another backend's memory are refused.
func TestOtherVars(t *testing.T) {
	cudatest.Use(t)
	var of graph.Builder
	typ := graph.T(graph.F32, 4)
	of.Output("y", of.Tanh(of.Var("x", typ)))
	g, err := of.Build()
	if err != nil {
		t.Fatal(err)
	}
	one, other := open(t, Config{Plain: true}), open(t, Config{Plain: true})
	v := other.NewVars()
	if err := v.Set("x", exec.NewTensor(typ)); err != nil {
		t.Fatal(err)
	}
	if _, err := one.Compile(g, exec.Options{Name: "y", Vars: v}); err == nil || !strings.Contains(err.Error(), "belong to another backend") {
		t.Errorf("got %v", err)
	}
}

// TestDeterministicChoices: what must not depend on times has its kernels chosen without a clock.
func TestDeterministicChoices(t *testing.T) {
	cudatest.Use(t)
	for _, deterministic := range []bool{false, true} {
		b := open(t, Config{})
		v := b.NewVars()
		if err := v.Set("w", exec.NewTensor(graph.T(graph.F32, 4, 3, 3, 3))); err != nil {
			t.Fatal(err)
		}
		p, err := b.Compile(scene(), exec.Options{Name: "scene", Vars: v, Deterministic: deterministic})
		if err != nil {
			t.Fatal(err)
		}
		if len(b.libs.choosers) != 1 || b.libs.choosers[choosing{untimed: deterministic}] == nil {
			t.Errorf("deterministic %v: chosen as in %v", deterministic, b.libs.choosers)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
