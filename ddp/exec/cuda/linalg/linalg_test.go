package linalg_test

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"ebtrain/collective/cuda"
	"ebtrain/ddp/exec/cuda/linalg"
	"ebtrain/ddp/exec/cuda/linalg/linalgtest"
	"ebtrain/ddp/graph"
)

var f64 = linalg.Types{Dst: graph.F64, A: graph.F64, B: graph.F64}

// TestConvAsProduct: where a convolution is a product, it has the same elements, in
// the same order.
func TestConvAsProduct(t *testing.T) {
	seen := map[linalg.ConvOp]int{}
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		p := linalgtest.Conv(rnd, linalg.ConvOp(1+seed%3), f64)
		q, swap, ok := p.Product()
		if !ok {
			continue
		}
		seen[p.Op]++
		_, na, nb := p.Lens()
		a, b := linalgtest.Numbers(rnd, na, graph.F64), linalgtest.Numbers(rnd, nb, graph.F64)
		if err := q.Check(); err != nil {
			t.Fatalf("%v is no product: %v", p, err)
		}
		if nd, _, _ := p.Lens(); nd != int64(q.Batch*q.M*q.N) || p.Flops() != q.Flops() {
			t.Fatalf("%v as %v: another result or other work", p, q)
		}
		x, y := a, b
		if swap {
			x, y = b, a
		}
		z, err := linalgtest.Reference(q, x, y)
		if err != nil {
			t.Fatal(err)
		}
		if err := linalgtest.Check(p, a, b, z); err != nil {
			t.Fatalf("as %v: %v", q, err)
		}
	}
	for op := linalg.Forward; op <= linalg.GradW; op++ {
		if seen[op] < 20 {
			t.Errorf("only %d of %v were products", seen[op], op)
		}
	}
}

// TestConvAsColumns: where a convolution is a product of columns, it has the same elements.
func TestConvAsColumns(t *testing.T) {
	f32 := linalg.Types{Dst: graph.F32, A: graph.F32, B: graph.F32}
	seen := map[string]int{}
	for seed := range uint64(1200) {
		rnd := rand.New(rand.NewPCG(seed, 8))
		p := linalgtest.Conv(rnd, linalg.ConvOp(1+seed%3), f32)
		q, ok := p.Columns(f32)
		if !ok {
			continue
		}
		seen[p.Op.String()]++
		if p.O < p.C {
			seen[p.Op.String()+" few outputs"]++
		}
		if err := q.Check(); err != nil || q.K%8 != 0 && q.N%8 != 0 && q.M%8 != 0 {
			t.Fatalf("%v is no product %v: %v", p, q.Product, err)
		}
		_, na, nb := p.Lens()
		a, b := linalgtest.Numbers(rnd, na, graph.F32), linalgtest.Numbers(rnd, nb, graph.F32)
		x, y := a, b
		if q.A != nil {
			x = linalgtest.Columns(*q.A, x)
		}
		if q.B != nil {
			y = linalgtest.Columns(*q.B, y)
		}
		if q.Swap {
			x, y = y, x
		}
		if _, nx, ny := q.Lens(); nx != int64(len(x)) || ny != int64(len(y)) {
			t.Fatalf("%v as %v: operands of %d and %d elements", p, q.Product, len(x), len(y))
		}
		z, err := linalgtest.Reference(q.Product, x, y)
		if err != nil {
			t.Fatal(err)
		}
		if q.Dst != nil {
			if _, n := q.Dst.Lens(); n != int64(len(z)) {
				t.Fatalf("%v: %d elements of %v", p, len(z), *q.Dst)
			}
			z = linalgtest.Columns(*q.Dst, z)
		}
		if nd, _, _ := p.Lens(); nd != int64(len(z)) {
			t.Fatalf("%v as %v: %d elements, want %d", p, q.Product, len(z), nd)
		}
		if err := linalgtest.Check(p, a, b, z); err != nil {
			t.Fatalf("as %v: %v", q.Product, err)
		}
	}
	for op := linalg.Forward; op <= linalg.GradW; op++ {
		if n, few := seen[op.String()], seen[op.String()+" few outputs"]; n < 100 || few < 15 {
			t.Errorf("only %d of %v were products of columns, %d with few outputs", n, op, few)
		}
	}
}

// TestNoColumns: what is no product of columns, and of what types the others are.
func TestNoColumns(t *testing.T) {
	base := linalg.Conv{Op: linalg.Forward, Conv: graph.NewConv(3, 1, 1), N: 2, C: 3, H: 4, W: 4, O: 16, OH: 4, OW: 4,
		T: linalg.Types{Dst: graph.BF16, A: graph.BF16, B: graph.F32, Math: linalg.BF16}}
	narrow, wide := base.T, linalg.Types{Dst: graph.F32, A: graph.F32, B: graph.F32}
	narrow.B = graph.BF16
	q, ok := base.Columns(narrow)
	if !ok || q.T != narrow || q.B == nil || q.B.From != graph.F32 || q.B.To != graph.BF16 {
		t.Errorf("%v in %v: %v, %v", base, narrow, q, ok)
	}
	if q, ok := base.Columns(wide); !ok || q.T != wide {
		t.Errorf("%v in %v: %v, %v", base, wide, q, ok)
	}
	if _, ok := base.Columns(base.T); ok {
		t.Error("operands of two types are a product")
	}
	if _, ok := base.Columns(f64); ok {
		t.Error("of float64 there are no columns")
	}
	for name, change := range map[string]func(p *linalg.Conv){
		"many channels": func(p *linalg.Conv) { p.C, p.O = 9, 9 },
		"large kernel":  func(p *linalg.Conv) { p.Conv, p.C = graph.NewConv(7, 1, 3), 6 },
		"groups":        func(p *linalg.Conv) { p.C, p.Groups = 4, 4 },
		"a pixel":       func(p *linalg.Conv) { p.Conv = graph.NewConv(1, 1, 0) },
		"few outputs":   func(p *linalg.Conv) { p.Conv, p.C, p.O, p.OH, p.OW = graph.NewConv(3, 2, 1), 16, 3, 2, 2 },
	} {
		p := base
		change(&p)
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		if _, ok := p.Columns(narrow); ok {
			t.Errorf("%s: %v is a product of columns", name, p)
		}
	}
}

// TestNoProduct: what looks like a product but is none.
func TestNoProduct(t *testing.T) {
	base := linalg.Conv{Op: linalg.Forward, Conv: graph.NewConv(4, 1, 0), N: 2, C: 6, H: 4, W: 4, O: 4, OH: 1, OW: 1, T: f64}
	if _, _, ok := base.Product(); !ok {
		t.Fatalf("%v is a product", base)
	}
	one := linalg.Conv{Op: linalg.Forward, Conv: graph.NewConv(1, 1, 0), N: 2, C: 6, H: 5, W: 4, O: 4, OH: 5, OW: 4, T: f64}
	if _, _, ok := one.Product(); !ok {
		t.Fatalf("%v is a product", one)
	}
	for name, change := range map[string]func(p *linalg.Conv){
		"groups":     func(p *linalg.Conv) { p.Groups = 2 },
		"above":      func(p *linalg.Conv) { p.PadT = 1 },
		"below":      func(p *linalg.Conv) { p.PadB = 1 },
		"left":       func(p *linalg.Conv) { p.PadL = 1 },
		"right":      func(p *linalg.Conv) { p.PadR = 1 },
		"two places": func(p *linalg.Conv) { p.W, p.OW = 5, 2 },
		"two rows":   func(p *linalg.Conv) { p.H, p.OH = 5, 2 },
		"dilation":   func(p *linalg.Conv) { p.KW, p.DilW = 2, 3 },
		"a crop":     func(p *linalg.Conv) { p.H, p.PadB = 5, -1 },
	} {
		p := base
		change(&p)
		if _, _, ok := p.Product(); ok {
			t.Errorf("%s: %v is no product", name, p)
		}
	}
	down, across := one, one
	down.StrideH, down.OH = 2, 3
	across.StrideW, across.OW = 2, 2
	for _, p := range []linalg.Conv{down, across} {
		if _, _, ok := p.Product(); ok {
			t.Errorf("%v is no product", p)
		}
	}
}

// TestNames: problems that differ in any field have different names, since choices are
// kept by name.
func TestNames(t *testing.T) {
	types := linalg.Types{Dst: graph.F32, A: graph.BF16, B: graph.F64, Math: linalg.TF32}
	conv := linalg.Conv{
		Op: linalg.GradX, N: 2, C: 3, H: 4, W: 5, O: 6, OH: 7, OW: 8, T: types,
		Conv: graph.Conv{Groups: 9, Window: graph.Window{KH: 10, KW: 11, StrideH: 12, StrideW: 13, PadT: 14, PadB: 15, PadL: 16, PadR: 17, DilH: 18, DilW: 19}},
	}
	names := map[string]string{conv.String(): "conv"}
	product := linalg.Product{Batch: 2, M: 3, N: 4, K: 5, T: types}
	names[product.String()] = "product"
	for _, p := range []any{&conv, &product} {
		each(reflect.ValueOf(p).Elem(), func(path string) {
			s := reflect.ValueOf(p).Elem().Interface().(linalg.Problem).String()
			if other, ok := names[s]; ok {
				t.Errorf("%s does not show in %q, which is that of %s", path, s, other)
			}
			names[s] = path
		})
	}
	if len(names) < 30 {
		t.Errorf("only %d fields were changed", len(names))
	}
}

// each changes one number after the other, calls f, and changes it back.
func each(v reflect.Value, f func(path string)) {
	for i := range v.NumField() {
		field, path := v.Field(i), v.Type().Field(i).Name
		switch field.Kind() {
		case reflect.Struct:
			each(field, func(p string) { f(path + "." + p) })
		case reflect.Bool:
			field.SetBool(!field.Bool())
			f(path)
			field.SetBool(!field.Bool())
		case reflect.Int:
			field.SetInt(field.Int() + 100)
			f(path)
			field.SetInt(field.Int() - 100)
		default:
			old := field.Uint()
			field.SetUint((old + 1) % 3)
			f(path)
			field.SetUint(old)
		}
	}
}

func TestCheck(t *testing.T) {
	good := linalg.Conv{Op: linalg.Forward, Conv: graph.NewConv(3, 1, 1), N: 2, C: 6, H: 4, W: 4, O: 4, OH: 4, OW: 4, T: f64}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(p *linalg.Conv){
		"want Forward":     func(p *linalg.Conv) { p.Op = 0 },
		"at least 1":       func(p *linalg.Conv) { p.N = 0 },
		"do not divide":    func(p *linalg.Conv) { p.Groups = 4 },
		"the output is":    func(p *linalg.Conv) { p.OW = 5 },
		"does not fit":     func(p *linalg.Conv) { p.KH = 9 },
		"all of float64":   func(p *linalg.Conv) { p.T.A = graph.F32 },
		"want floats":      func(p *linalg.Conv) { p.T.A = graph.I32 },
		"there is no Math": func(p *linalg.Conv) { p.T.Math = 3 },
	} {
		p := good
		change(&p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", p, err, want)
		}
	}
	if err := (linalg.Product{Batch: 1, M: 1, N: 1, T: f64}).Check(); err == nil {
		t.Error("a product over nothing was accepted")
	}
}

// TestRoom: a workspace of Room bytes at any multiple of Align holds what is wanted
// from Start on.
func TestRoom(t *testing.T) {
	for at := cuda.Ptr(0); at < 1024; at += linalg.Align {
		for _, n := range []int64{1, 100, 4096} {
			if s := linalg.Start(at); s%256 != 0 || s < at || s+cuda.Ptr(n) > at+cuda.Ptr(linalg.Room(n)) {
				t.Errorf("%d bytes at %d: begin at %d, of %d", n, at, s, linalg.Room(n))
			}
		}
	}
	if linalg.Room(0) != 0 {
		t.Error("nothing needs room")
	}
}
