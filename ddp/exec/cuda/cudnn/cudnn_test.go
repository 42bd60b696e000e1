//go:build cgo

package cudnn_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ebtrain/collective/cuda"
	"ebtrain/collective/cuda/cudatest"
	"ebtrain/ddp/exec/cuda/cudnn"
	"ebtrain/ddp/exec/cuda/linalg"
	"ebtrain/ddp/exec/cuda/linalg/linalgtest"
	"ebtrain/ddp/graph"
)

const workspace = 1 << 20

var _ linalg.Library = (*cudnn.Library)(nil)

// open is cuDNN on the machine of doubles, closed when the test ends, with nothing
// left.
func open(t *testing.T) (*cudatest.Machine, *cudnn.Library, *cuda.Stream) {
	t.Helper()
	m := cudatest.Use(t)
	dev, s := linalgtest.Device(t, m.Clean)
	l, err := cudnn.New(dev, workspace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return m, l, s
}

func types(dst, ab graph.DType, m linalg.Math) linalg.Types {
	return linalg.Types{Dst: dst, A: ab, B: ab, Math: m}
}

var allTypes = []linalg.Types{
	types(graph.F32, graph.F32, linalg.Full),
	types(graph.F32, graph.F32, linalg.TF32),
	types(graph.BF16, graph.BF16, linalg.BF16),
	types(graph.F32, graph.BF16, linalg.Full),
	types(graph.F64, graph.F64, linalg.Full),
}

// TestConvolutions: every candidate for random geometries computes what the reference
// does, restored from its text, too. There is one for each: the double's engine 3 does all,
// and a geometry that is told wrongly is refused, which would only leave engines out.
func TestConvolutions(t *testing.T) {
	_, l, s := open(t)
	done := map[linalg.Types]int{}
	for seed := range uint64(90) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		p := linalgtest.Conv(rnd, linalg.ConvOp(1+seed%3), allTypes[seed/3%uint64(len(allTypes))])
		list, err := l.Prepare(p, 8)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 0 {
			t.Errorf("there is none for %v", p)
		}
		_, na, nb := p.Lens()
		a, b := linalgtest.Numbers(rnd, na, p.T.A), linalgtest.Numbers(rnd, nb, p.T.B)
		for _, k := range list {
			got := linalgtest.Compute(t, s, k, p, a, b)
			if err := linalgtest.Check(p, a, b, got); err != nil {
				t.Fatalf("%v: %v", k, err)
			}
			again, err := l.Restore(p, k.Saved())
			if err != nil {
				t.Fatal(err)
			}
			if again.String() != k.String() || again.Workspace() != k.Workspace() {
				t.Errorf("%v of %d bytes became %v of %d", k, k.Workspace(), again, again.Workspace())
			}
			if same := linalgtest.Compute(t, s, again, p, a, b); !slices.Equal(same, got) {
				t.Errorf("%v: %v has other bits when it is restored", p, k)
			}
			closeAll(t, k, again)
		}
		done[p.T] += len(list)
	}
	for _, ty := range allTypes {
		if done[ty] < 10 {
			t.Errorf("only %d candidates in %v", done[ty], ty)
		}
	}
}

func closeAll(t *testing.T, list ...linalg.Candidate) {
	t.Helper()
	for _, k := range list {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
}

// plain is a problem that all engines of the double do.
func plain(t linalg.Types) linalg.Conv {
	return linalg.Conv{Op: linalg.Forward, Conv: graph.NewConv(3, 1, 1), N: 2, C: 3, H: 5, W: 4, O: 4, OH: 5, OW: 4, T: t}
}

// TestEngines: which of the double's engines (see cudnn_engines.c) are offered, in which
// order. 0 is nondeterministic, 1 has tensor cores, 3 is compiled at run time, 4
// converts its inputs down.
func TestEngines(t *testing.T) {
	_, l, _ := open(t)
	uneven := plain(types(graph.F32, graph.F32, linalg.Full))
	uneven.PadT, uneven.H = 0, 6
	for name, c := range map[string]struct {
		p    linalg.Conv
		most int
		want []string
	}{
		"float32":                          {plain(types(graph.F32, graph.F32, linalg.Full)), 8, []string{"engine 2, knobs 2=1"}},
		"TF32":                             {plain(types(graph.F32, graph.F32, linalg.TF32)), 8, []string{"engine 1", "engine 2, knobs 2=1"}},
		"bfloat16":                         {plain(types(graph.BF16, graph.BF16, linalg.Full)), 8, []string{"engine 1", "engine 2, knobs 2=1"}},
		"bfloat16, at most one":            {plain(types(graph.BF16, graph.BF16, linalg.BF16)), 1, []string{"engine 1"}},
		"float64, which has one late":      {plain(types(graph.F64, graph.F64, linalg.Full)), 8, []string{"engine 3"}},
		"paddings that one late does":      {uneven, 8, []string{"engine 3"}},
		"mixed operands, which none takes": {plain(linalg.Types{Dst: graph.F32, A: graph.BF16, B: graph.F32}), 8, nil},
		"a narrow result of wide operands": {plain(types(graph.BF16, graph.F32, linalg.BF16)), 8, nil},
		"none":                             {plain(types(graph.F32, graph.F32, linalg.Full)), 0, nil},
	} {
		list, err := l.Prepare(c.p, c.most)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got []string
		for _, k := range list {
			got = append(got, k.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
		closeAll(t, list...)
	}
}

// TestNoEngine: where cuDNN has no engine there is no candidate, and no error.
func TestNoEngine(t *testing.T) {
	_, l, _ := open(t)
	t.Setenv("EBDOUBLE_CUDNN_LACKS", "all")
	if list, err := l.Prepare(plain(types(graph.F32, graph.F32, linalg.Full)), 8); err != nil || len(list) > 0 {
		t.Errorf("got %v, %v", list, err)
	}
	if list, err := l.Prepare(linalg.Product{Batch: 1, M: 1, N: 1, K: 1, T: types(graph.F32, graph.F32, linalg.Full)}, 8); err != nil || len(list) > 0 {
		t.Errorf("of a product: %v, %v", list, err)
	}
}

// TestWorkspaceLimit: engines that want more are left out.
func TestWorkspaceLimit(t *testing.T) {
	m := cudatest.Use(t)
	dev, _ := linalgtest.Device(t, m.Clean)
	l, err := cudnn.New(dev, 2000)
	if err != nil {
		t.Fatal(err)
	}
	list, err := l.Prepare(plain(types(graph.F32, graph.F32, linalg.TF32)), 8)
	if err != nil || len(list) != 1 || list[0].String() != "engine 2, knobs 2=1" {
		t.Errorf("got %v, %v, want engine 2, of 1000 bytes", list, err)
	}
	closeAll(t, list...)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestCapture: a captured run is done by every launch of the graph, on all streams that a
// run came before on. No handle is made meanwhile.
func TestCapture(t *testing.T) {
	m, l, s := open(t)
	side, err := s.Device().NewStream("side", 0)
	if err != nil {
		t.Fatal(err)
	}
	fork, err := s.Device().NewEvent(false)
	if err != nil {
		t.Fatal(err)
	}
	p := plain(types(graph.F32, graph.F32, linalg.Full))
	list, err := l.Prepare(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	k, rnd := list[0], rand.New(rand.NewPCG(1, 1))
	_, na, nb := p.Lens()
	a, b := linalgtest.Numbers(rnd, na, p.T.A), linalgtest.Numbers(rnd, nb, p.T.B)
	want := linalgtest.Compute(t, s, k, p, a, b)
	x, y := linalgtest.NewArrays(t, s, k, p, a, b), linalgtest.NewArrays(t, s, k, p, a, b)
	if err := errors.Join(k.Enqueue(side, y.Places, y.Work), side.Sync(t.Context())); err != nil {
		t.Fatal(err)
	}
	handles := m.Calls("cudnnCreate")
	var exec *cuda.Exec
	err = s.Device().Do(func() error {
		if err := s.BeginCapture(); err != nil {
			return err
		}
		bad := errors.Join(s.Record(fork), side.WaitEvent(fork), k.Enqueue(side, y.Places, y.Work), k.Enqueue(s, x.Places, x.Work),
			side.Record(fork), s.WaitEvent(fork))
		g, err := s.EndCapture()
		if err = errors.Join(bad, err); err != nil {
			return err
		}
		if exec, err = g.Instantiate(); err != nil {
			return err
		}
		return g.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := m.Calls("cudnnCreate"); n != handles {
		t.Errorf("%d handles were made in the capture", n-handles)
	}
	for range 2 {
		if err := errors.Join(s.Memset(x.Places.Dst, 0xff, int64(4*len(want))), s.Memset(y.Places.Dst, 0xff, int64(4*len(want))), exec.Launch(s)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(x.Result(), want) || !slices.Equal(y.Result(), want) {
			t.Errorf("a replay computes %v and %v, want %v", x.Result(), y.Result(), want)
		}
	}
	x.Free()
	y.Free()
	if err := errors.Join(exec.Close(), fork.Close(), side.Close()); err != nil {
		t.Error(err)
	}
	closeAll(t, k)
}

// TestCaptureFirst: a capture of a stream before any run on it is refused, although there
// were runs on another.
func TestCaptureFirst(t *testing.T) {
	_, l, other := open(t)
	s, err := other.Device().NewStream("new", 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	p := plain(types(graph.F32, graph.F32, linalg.Full))
	list, err := l.Prepare(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, list...)
	_, na, nb := p.Lens()
	x := linalgtest.NewArrays(t, s, list[0], p, make([]float64, na), make([]float64, nb))
	defer x.Free()
	if err := errors.Join(list[0].Enqueue(other, x.Places, x.Work), other.Sync(t.Context())); err != nil {
		t.Fatal(err)
	}
	err = s.Device().Do(func() error {
		if err := s.BeginCapture(); err != nil {
			return err
		}
		bad := list[0].Enqueue(s, x.Places, x.Work)
		g, err := s.EndCapture()
		return errors.Join(err, g.Close(), bad)
	})
	if err == nil || !strings.Contains(err.Error(), "stream new is captured before any run on it") {
		t.Errorf("got %v", err)
	}
}

// TestEachCallFails: each call of cuDNN that a preparation, a run and a closing make
// fails once. It is one sentence that names the call, and nothing is left.
func TestEachCallFails(t *testing.T) {
	p := plain(types(graph.F32, graph.F32, linalg.TF32))
	for _, f := range []string{
		"cudnnCreate", "cudnnSetStream", "cudnnBackendCreateDescriptor", "cudnnBackendSetAttribute", "cudnnBackendGetAttribute",
		"cudnnBackendFinalize", "cudnnBackendExecute",
	} {
		t.Run(f, func(t *testing.T) {
			n := 1
			for ; n < 3000; n++ {
				m := cudatest.Use(t) // no fault is left
				m.Fail(f, n, 1001)
				err := live(t, p)
				if err == nil {
					break
				}
				m.Clean()
				var e *cudnn.Error
				if !errors.As(err, &e) || e.Call != f || e.Status != 1001 || strings.Contains(err.Error(), "\n") {
					t.Fatalf("call %d: got %q", n, err)
				}
			}
			if n == 1 {
				t.Error("no call was made to fail")
			}
		})
	}
}

// TestFailingEngine: an engine whose plan cannot be built is left out, and said, and so is
// what cuDNN cannot be asked for; nothing of it is left. It fails by itself, as it runs,
// or for what the machine lacks, which ends all where cuDNN cannot be asked.
func TestFailingEngine(t *testing.T) {
	for name, c := range map[string]struct {
		ty   linalg.Types
		left []int // how many candidates there may be, if one call fails
	}{
		"of two": {types(graph.F32, graph.F32, linalg.TF32), []int{0, 1, 2}}, "the only one": {types(graph.F64, graph.F64, linalg.Full), []int{0, 1}},
	} {
		for status, what := range map[int]string{2000: "BAD_PARAM", 4000: "INTERNAL_ERROR", 5000: "EXECUTION_FAILED", 3008: "NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING"} {
			t.Run(fmt.Sprintf("%s, %d", name, status), func(t *testing.T) { failingEngine(t, c.ty, c.left, status, "CUDNN_STATUS_"+what) })
		}
	}
}

func failingEngine(t *testing.T, ty linalg.Types, want []int, status int, what string) {
	_, l, _ := open(t)
	said := 0
	l.Listen(func(s string) {
		said++
		if !strings.Contains(s, "is left out") || !strings.Contains(s, what) {
			t.Errorf("said %q", s)
		}
	})
	out := 0
	var left []int
	for n := 1; n < 3000; n++ {
		m := cudatest.Use(t) // no fault is left
		m.Fail("cudnnBackendFinalize", n, status)
		said = 0
		list, err := l.Prepare(plain(ty), 8)
		closeAll(t, list...)
		if alive := m.Live("cuDNN descriptor"); alive != 0 {
			t.Fatalf("call %d: %d descriptors are left", n, alive)
		}
		switch {
		case said == 0 && err == nil && m.Calls("cudnnBackendFinalize") < n:
			n = 3000 // nothing failed
		case said != 1 && err == nil, err != nil && (status != 3008 || said != 0):
			t.Errorf("call %d: %v, %v, said %d times", n, list, err, said)
		case said == 1:
			out++
			left = append(left, len(list))
		}
	}
	if slices.Sort(left); !slices.Equal(slices.Compact(left), want) && status != 3008 || out < 5 {
		t.Errorf("something was left out %d times, %v candidates remained, want %v", out, slices.Compact(left), want)
	}
}

// live is the life of a library, up to its first error; what was made is closed.
func live(t *testing.T, p linalg.Conv) (err error) {
	t.Helper()
	dev, err := cuda.OpenDevice(0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := dev.NewStream("test", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if e := errors.Join(s.Close(), dev.Close()); e != nil {
			t.Error(e)
		}
	}()
	l, err := cudnn.New(dev, workspace)
	if err != nil {
		return err
	}
	defer func() {
		if e := l.Close(); e != nil {
			t.Error(e)
		}
	}()
	list, err := l.Prepare(p, 8)
	if err != nil {
		return err
	}
	defer closeAll(t, list...)
	again, err := l.Restore(p, list[0].Saved())
	if err != nil {
		return err
	}
	defer closeAll(t, again)
	_, na, nb := p.Lens()
	x := linalgtest.NewArrays(t, s, again, p, make([]float64, na), make([]float64, nb))
	defer x.Free()
	if err := again.Enqueue(s, x.Places, x.Work); err != nil {
		return err
	}
	x.Result()
	return nil
}

// TestBadInstallations have their sentences.
func TestBadInstallations(t *testing.T) {
	for code, want := range map[int][]string{
		1002: {"different versions", cudatest.Folder(t), "libcudnn_*.so.9"},
		1008: {"a part of cuDNN is missing", cudatest.Folder(t)},
		4000: {"cudnnCreate failed", "CUDNN_STATUS_INTERNAL_ERROR"},
	} {
		err := badNew(t, func(m *cudatest.Machine) { m.Fail("cudnnCreate", 1, code) })
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("status %d: got %v, want %q", code, err, w)
			}
		}
	}
	t.Setenv("EBDOUBLE_CUDNN_VERSION", "8907")
	var v *cudnn.VersionError
	if err := badNew(t, func(*cudatest.Machine) {}); !errors.As(err, &v) || !strings.Contains(err.Error(), "cuDNN 8.9.7") {
		t.Errorf("cuDNN 8: got %v", err)
	}
}

// badNew is what New says on a machine that something is wrong with.
func badNew(t *testing.T, wrong func(*cudatest.Machine)) (err error) {
	t.Run("new", func(t *testing.T) {
		m := cudatest.Use(t)
		dev, _ := linalgtest.Device(t, m.Clean)
		wrong(m)
		_, err = cudnn.New(dev, workspace)
	})
	return err
}

// TestRestoreRefuses: what is no choice, and an engine that cannot do the problem.
func TestRestoreRefuses(t *testing.T) {
	_, l, _ := open(t)
	p := plain(types(graph.F32, graph.F32, linalg.Full))
	for saved, want := range map[string]string{
		`{`:                            "the choice of an engine",
		`{"engine":99}`:                "engine",
		`{"engine":2,"knobs":[[2,9]]}`: "engine configuration",
	} {
		if k, err := l.Restore(p, json.RawMessage(saved)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v, want an error about %q", saved, k, err, want)
		}
	}
}

// TestSurvey counts what is offered and why it is left out, and has a plan compiled if it is
// told to.
func TestSurvey(t *testing.T) {
	_, l, _ := open(t)
	for ty, want := range map[linalg.Types]string{
		types(graph.F32, graph.F32, linalg.Full): "7 offered, 1 compiled and 1 to be compiled serve, 1 of 1 built; left out: 1 convert their inputs down, 2 on tensor cores",
		types(graph.F32, graph.F32, linalg.TF32): "7 offered, 2 compiled and 1 to be compiled serve, 2 of 2 built; left out: 1 convert their inputs down, 1 nondeterministic",
	} {
		s, err := l.Survey(plain(ty), false)
		if got := s.String(); err != nil || got != want {
			t.Errorf("%v: got %q, %v, want %q", ty, got, err, want)
		}
		if s, err = l.Survey(plain(ty), true); err != nil || s.LatePlans != 1 || !strings.Contains(s.String(), "1 to be compiled (1 of 1 built in ") {
			t.Errorf("%v: got %v, %v, want a plan compiled", ty, s, err)
		}
	}
}

// TestName has the version, by which choices are kept.
func TestName(t *testing.T) {
	_, l, _ := open(t)
	if l.Name() != "cuDNN 9.19.0" {
		t.Errorf("got %q", l.Name())
	}
}
