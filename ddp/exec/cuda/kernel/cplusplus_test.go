package kernel

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// TestCPlusPlus reads the kernels of the suite's cases, of random groups, and of launches
// of several steps as C++ without the shim, as NVRTC does, against declarations of what
// CUDA has built in, for the oldest GPUs and for newer ones.
func TestCPlusPlus(t *testing.T) {
	oneGoroutine(t)
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skip("g++ is not installed: kernels cannot be read as C++")
	}
	all := everyText(t)
	asCPlusPlus(t, "900", all)
	asCPlusPlus(t, "500", all[:100])
	t.Logf("%d kernels", len(all))
}

// asCPlusPlus reads kernels as for GPUs of a compute capability, × 100.
func asCPlusPlus(t *testing.T, capability string, list []Launch) {
	t.Helper()
	var text strings.Builder
	text.WriteString(dialect)
	for i, l := range list {
		text.WriteString(apart(l.Entry, l.Source[len(dialect):], i))
	}
	path := filepath.Join(t.TempDir(), "kernels.cc")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	header, err := filepath.Abs("testdata/cuda.h")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("g++", "-std=c++17", "-fsyntax-only", "-ffreestanding", "-fno-builtin", "-w", "-D__CUDA_ARCH__="+capability, "-include", header, path).CombinedOutput()
	if err != nil {
		t.Fatalf("g++, __CUDA_ARCH__ %s: %v\n%.4000s", capability, err, out)
	}
}

// everyText is the kernels of the suite's cases, of random groups, and of launches of
// several steps, each text once, in the order of their names.
func everyText(t *testing.T) []Launch {
	launches := suite(t, exectest.Options{DTypes: []graph.DType{graph.F32, graph.F64}, Graphs: 4}, plan.Options{WeightsLast: true})
	launches = append(launches, suite(t, exectest.Options{DTypes: []graph.DType{graph.F32}}, plan.Options{WeightsLast: true, BF16Images: true})...)
	for r := range uint64(30) {
		g := randomGroup(rand.New(rand.NewPCG(r, 3)))
		l, err := g.making(t, r%2 == 0).step()
		if err != nil {
			t.Fatal(err)
		}
		launches = append(launches, l...)
	}
	for _, l := range slices.Clone(launches[:100]) {
		name := "of_" + l.Entry // as all are in one file
		l.Source, l.Entry = strings.ReplaceAll(l.Source, l.Entry, name), name
		launches = append(launches, Launch{Entry: alikeEntry(l.Entry), Source: alikeText(&l)})
	}
	for r := range uint64(30) {
		g := randomGroup(rand.New(rand.NewPCG(r, 3)))
		if !Batches(g.p, 0) {
			continue
		}
		b, err := ForChains(g.p, [][]int{{0}})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range b.calls { // as all are in one file
			name := "in_" + b.Entry + c.l.Entry
			b.Source = strings.ReplaceAll(b.Source, c.l.Entry, name)
		}
		launches = append(launches, b.Launch)
	}
	for i, c := range someColumns() {
		l, err := c.making(t, i%2 == 1).step()
		if err != nil {
			t.Fatal(err)
		}
		launches = append(launches, l...)
	}
	for i, c := range someFew() {
		for _, op := range c.ops() {
			l, err := c.making(t, op, i%2 == 1).step()
			if err != nil {
				t.Fatal(err)
			}
			launches = append(launches, l...)
		}
	}
	slices.SortFunc(launches, func(a, b Launch) int { return strings.Compare(a.Entry, b.Entry) })
	return slices.CompactFunc(launches, func(a, b Launch) bool { return a.Entry == b.Entry })
}
