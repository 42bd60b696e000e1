package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/cuda/cudatest"
	"ebtrain/ddp/exec"
)

// TestBody: replayed as the body of a node, on streams that are held up at random, a scene
// has the bits of one launched step by step; it is captured once for each slot.
func TestBody(t *testing.T) {
	g := scene()
	cudatest.Use(t)
	want, err := play(g, Config{Plain: true, Graphs: GraphsOff, Lanes: 1}, 7)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range 4 {
		m := heldUp(t, seed)
		got, err := play(g, Config{Plain: true, Graphs: GraphsOn, Body: true, Say: func(s string) { t.Errorf("said %q", s) }}, 7)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("seed %d: %v, want %v", seed, got[:5], want[:5])
		}
		if into, plain := m.Calls("cuStreamBeginCaptureToGraph"), m.Calls("cuStreamBeginCapture_v2"); into != depth || plain != 0 {
			t.Errorf("%d captures of bodies, %d of others", into, plain)
		}
		m.Clean()
	}
}

// TestBodyOfLibraries: convolutions of cuDNN on several streams are a body, too, which has
// one node more than their graph; a traced run is no body.
func TestBodyOfLibraries(t *testing.T) {
	m := cudatest.Use(t)
	var want []float32
	var nodes int
	for _, body := range []bool{false, true} {
		var trace func(exec.Event)
		p := branching(t, Config{Graphs: GraphsOn, Lanes: 4, Body: body}, &trace)
		for n := range 6 {
			trace = nil
			if n == 4 {
				trace = func(exec.Event) {}
			}
			if err := exec.Run(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			got := slices.Concat(p.Output("y0").F32(), p.Output("y1").F32(), p.Output("y2").F32(), p.Output("y3").F32())
			if want == nil {
				want = got
			}
			if !slices.Equal(got, want) {
				t.Errorf("body %v, run %d: other bits", body, n)
			}
		}
		if !body {
			nodes = p.GraphNodes()
		} else if p.GraphNodes() != nodes+1 || nodes == 0 {
			t.Errorf("%d nodes, and %d as a body", nodes, p.GraphNodes())
		}
		if !p.clockedReplays() {
			t.Error("the traced run was not replayed")
		}
		if err := errors.Join(p.Close(), p.b.Close()); err != nil {
			t.Fatal(err)
		}
		if n := m.Calls("cuStreamBeginCaptureToGraph"); n != map[bool]int{true: depth}[body] {
			t.Errorf("body %v: %d were captured", body, n)
		}
		m.Clean()
	}
}

// branching is the program of branches, with its inputs filled.
func branching(t *testing.T, c Config, trace *func(exec.Event)) *program {
	t.Helper()
	b, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	p, err := b.Compile(branches(), exec.Options{Name: "branches", Deterministic: true, Trace: func() func(exec.Event) { return *trace }})
	if err != nil {
		t.Fatal(err)
	}
	for k := range 4 {
		for i, w := 0, p.Input(fmt.Sprint("w", k)).F32(); i < len(w); i++ {
			w[i] = float32((i+k)%7)/7 - 0.4
		}
	}
	for i, x := 0, p.Input("x").F32(); i < len(x); i++ {
		x[i] = float32(i%11)/11 - 0.5
	}
	return p.(*program)
}

// TestNoBody: where a call that a body needs fails, or the driver is too old, one sentence
// says so, and the graph is replayed as it is.
func TestNoBody(t *testing.T) {
	g := scene()
	cudatest.Use(t)
	want, err := play(g, Config{Plain: true, Graphs: GraphsOn}, 4)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ knob, value, said string }{
		{"DRIVER", "12030", "conditional nodes of graphs need 12.4"},
		{"FAULT", "cuGraphCreate=1=801", "cuGraphCreate: operation not supported"},
		{"FAULT", "cuGraphConditionalHandleCreate=1=801", "cuGraphConditionalHandleCreate: operation not supported"},
		{"FAULT", "cuGraphAddNode_v2=1=801", "cuGraphAddNode_v2: operation not supported"},
		{"FAULT", "cuStreamBeginCaptureToGraph=1=801", "cuStreamBeginCaptureToGraph: operation not supported"},
		{"FAULT", "cuStreamEndCapture=1=901", "cuStreamEndCapture: operation failed"},
		{"FAULT", "cuGraphGetNodes=1=1", "cuGraphGetNodes: invalid argument"},
		{"FAULT", "cuGraphGetNodes=2=1", "cuGraphGetNodes: invalid argument"},
		{"FAULT", "cuGraphNodeGetType=3=1", "cuGraphNodeGetType: invalid argument"},
		{"FAULT", "cuGraphInstantiateWithParams=1=1", " × kernel, 2 × copy: cuda: cuGraphInstantiateWithParams: invalid argument"},
		{"FAULT", "cuGraphUpload=1=801", "cuGraphUpload: operation not supported"},
	} {
		t.Run(c.value, func(t *testing.T) {
			m := cudatest.Use(t)
			m.Set(c.knob, c.value)
			var said []string
			got, err := play(g, Config{Plain: true, Graphs: GraphsOn, Body: true, Say: func(s string) { said = append(said, s) }}, 4)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Error("other bits")
			}
			if len(said) != 1 || !strings.Contains(said[0], c.said) || !strings.Contains(said[0], "all its nodes are launched") || strings.Contains(said[0], "\n") {
				t.Errorf("said %q, want %q once", said, c.said)
			}
			if m.Calls("cuStreamBeginCapture_v2") != depth {
				t.Error("the graphs were not captured as they are")
			}
			m.Clean()
		})
	}
}

// TestBodyLost: a device that is lost while a body is made ready is an error, and not
// tried again.
func TestBodyLost(t *testing.T) {
	m := cudatest.Use(t)
	m.Fail("cuGraphInstantiateWithParams", 1, 700)
	_, err := play(scene(), Config{Plain: true, Body: true, Graphs: GraphsOn, Say: func(s string) { t.Errorf("said %q", s) }}, 4)
	if err == nil || !strings.Contains(err.Error(), `program "scene"`) || !strings.Contains(err.Error(), "context is lost") {
		t.Errorf("got %v", err)
	}
}

// TestNoBodyOfRanks: what NCCL captures is no body, which is no failure and not said.
func TestNoBodyOfRanks(t *testing.T) {
	onTwoGPUs(t, func(r int, below collective.Comm) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		say := func(s string) {
			if strings.Contains(s, "body") {
				t.Errorf("rank %d said %q", r, s)
			}
		}
		c := Config{Graphs: GraphsOn, Lanes: 3, Plain: true, Body: true, Ordinal: r, Say: say}
		return tracedRuns(ctx, t, c, below, 5, 4)
	})
}
