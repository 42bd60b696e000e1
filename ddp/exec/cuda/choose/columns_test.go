//go:build cgo

package choose_test

import (
	"path/filepath"
	"strings"
	"testing"

	"ebtrain/ddp/exec/cuda/choose"
	"ebtrain/ddp/exec/cuda/linalg"
	"ebtrain/ddp/graph"
)

// fewChannels are convolutions between images of few channels and of others, all ops, of
// float32 and bfloat16.
func fewChannels() (list []linalg.Problem) {
	geometries := []linalg.Conv{
		{Conv: graph.NewConv(3, 1, 1), N: 2, C: 3, H: 6, W: 5, O: 16},
		{Conv: graph.NewConv(3, 1, 1), N: 1, C: 16, H: 5, W: 7, O: 3},
		{Conv: graph.NewConv(3, 2, 1), N: 2, C: 3, H: 7, W: 8, O: 10},
		{Conv: graph.NewConv(4, 2, 1), N: 1, C: 8, H: 8, W: 6, O: 9},
		{Conv: graph.NewConv(5, 1, 2), N: 1, C: 1, H: 9, W: 4, O: 4},
		{Conv: graph.NewConv(2, 1, 0), N: 3, C: 9, H: 5, W: 5, O: 8},
		{Conv: graph.NewConv(1, 2, 0), N: 2, C: 8, H: 5, W: 4, O: 16},
		{Conv: graph.Conv{Groups: 1, Window: graph.Window{KH: 3, KW: 2, StrideH: 2, StrideW: 1, PadT: 2, PadB: 1, PadR: 3, DilH: 1, DilW: 2}}, N: 2, C: 3, H: 5, W: 6, O: 5},
		{Conv: graph.Conv{Groups: 1, Window: graph.Window{KH: 2, KW: 3, StrideH: 1, StrideW: 1, PadB: 2, PadL: 3, DilH: 2, DilW: 1}}, N: 2, C: 11, H: 5, W: 6, O: 1},
	}
	bf16, mixed := ty(graph.BF16, graph.BF16, graph.BF16, linalg.BF16), map[linalg.ConvOp]linalg.Types{
		linalg.Forward: ty(graph.BF16, graph.BF16, graph.F32, linalg.BF16),
		linalg.GradX:   ty(graph.BF16, graph.F32, graph.BF16, linalg.BF16),
		linalg.GradW:   ty(graph.F32, graph.BF16, graph.BF16, linalg.BF16),
	}
	for _, p := range geometries {
		p.OH, p.OW = p.Out(p.H, p.W)
		for op := linalg.Forward; op <= linalg.GradW; op++ {
			p.Op = op
			for _, t := range []linalg.Types{f32, bf16, mixed[op], ty(graph.BF16, graph.BF16, graph.F32, linalg.Full), ty(graph.BF16, graph.F32, graph.F32, linalg.BF16)} {
				list = append(list, p.With(t))
			}
		}
	}
	return list
}

// TestColumns: where there is nothing else, convolutions of few channels are products of
// columns, right, and the same again on other ranks and in a resumed run.
func TestColumns(t *testing.T) {
	d := open(t)
	d.o.Convolutions, d.o.Plain = nil, nil
	ps := fewChannels()
	file := d.again(t, ps, "columns algorithm")
	d.o.Move = nil
	if list, err := d.chooser(t, func(o *choose.Options) { o.File = file }).Choose(ps[:1]); err == nil || len(d.said) != 1 {
		t.Errorf("without what makes columns: %v, %v, said %q", list, err, d.said)
	}
}

// again chooses kernels for problems, all of which are to be named so, and holds another
// rank and a resumed run to them. It is the file that a run keeps.
func (d *device) again(t *testing.T, ps []linalg.Problem, by string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "kernels.json")
	var wire []byte
	first, err := d.chooser(t, func(o *choose.Options) {
		o.File = file
		o.Share = func(b []byte) ([]byte, error) { wire = b; return b, nil }
	}).Choose(ps)
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range names(first) {
		if !strings.HasPrefix(n, by) {
			t.Errorf("%v is done by %s", ps[i], n)
		}
	}
	want := d.bits(t, ps, first)
	for name, change := range map[string]func(*choose.Options){
		"another rank": func(o *choose.Options) { o.Rank, o.Share = 1, func([]byte) ([]byte, error) { return wire, nil } },
		"a resume":     func(o *choose.Options) { o.File = file },
	} {
		d.keeps(t, name, change, ps, first, want)
	}
	return file
}

// TestColumnsBeside: products of columns are timed beside all that cuDNN has, and not asked
// for where nothing is timed, or columns take too much memory.
func TestColumnsBeside(t *testing.T) {
	d := open(t)
	d.o.Plain = nil
	p := []linalg.Problem{conv(ty(graph.F32, graph.F32, graph.F32, linalg.TF32))}
	convs, prods := d.m.Calls("cudnnBackendExecute"), d.m.Calls("cublasLtMatmul")
	if _, err := d.chooser(t, nil).Choose(p); err != nil {
		t.Fatal(err)
	}
	convs, prods = d.m.Calls("cudnnBackendExecute")-convs, d.m.Calls("cublasLtMatmul")-prods
	before := d.m.Calls("cudnnBackendExecute")
	if _, err := d.chooser(t, func(o *choose.Options) { o.Move = nil }).Choose(p); err != nil {
		t.Fatal(err)
	}
	if alone := d.m.Calls("cudnnBackendExecute") - before; convs != alone || prods < 6 {
		t.Errorf("%d runs of cuDNN, %d without columns; %d of cublasLt", convs, alone, prods)
	}
	before = d.m.Calls("cublasLtMatmul")
	if _, err := d.chooser(t, func(o *choose.Options) { o.Untimed = true }).Choose(p); err != nil || d.m.Calls("cublasLtMatmul") != before {
		t.Errorf("untimed: %d runs of cublasLt, %v", d.m.Calls("cublasLtMatmul")-before, err)
	}
	large := conv(f32)
	large.N, large.H, large.W, large.OH, large.OW = 1<<10, 64, 64, 64, 64
	if _, err := d.chooser(t, func(o *choose.Options) { o.Convolutions = nil }).Choose([]linalg.Problem{large}); err == nil || !strings.Contains(err.Error(), "no library has one") {
		t.Errorf("of large images: %v", err)
	}
}
