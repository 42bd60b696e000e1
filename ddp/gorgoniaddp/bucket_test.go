package gorgoniaddp

import (
	"fmt"
	"testing"

	"ebtrain/collective"
)

func TestPlan(t *testing.T) {
	mems := func(specs ...any) []collective.Vec { // type, length, type, length ...
		var v []collective.Vec
		for i := 0; i < len(specs); i += 2 {
			v = append(v, collective.Vec{Type: specs[i].(collective.DType), Len: specs[i+1].(int)})
		}
		return v
	}
	const f32, f64 = collective.F32, collective.F64
	for _, tc := range []struct {
		name  string
		mems  []collective.Vec
		limit int
		want  string // type, length, members of each bucket
	}{
		{"all in one", mems(f32, 2, f32, 3), 100, "f32 5 [0 1];"},
		{"exactly full", mems(f32, 2, f32, 3, f32, 1), 20, "f32 5 [0 1];f32 1 [2];"},
		{"one byte short", mems(f32, 2, f32, 3), 19, "f32 2 [0];f32 3 [1];"},
		{"larger than a bucket", mems(f64, 1, f64, 9, f64, 1), 16, "f64 1 [0];f64 9 [1];f64 1 [2];"},
		{"smallest buckets", mems(f32, 1, f32, 1), 1, "f32 1 [0];f32 1 [1];"},
		{"two types", mems(f32, 1, f64, 1, f32, 1, f64, 1), 16, "f32 2 [0 2];f64 2 [1 3];"},
		{"nothing", nil, 16, ""},
	} {
		got := ""
		for _, b := range plan(tc.mems, tc.limit) {
			got += fmt.Sprintf("%v %d %v;", b.vec.Type, b.vec.Len, b.members)
		}
		if got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestPackUnpack(t *testing.T) {
	a, b, c := []float32{1, 2}, []float64{9}, []float32{3}
	mems := []collective.Vec{collective.VecOf(a), collective.VecOf(b), collective.VecOf(c)}
	k := plan(mems, 100)[0]
	flat := make([]float32, k.vec.Len)
	k.vec = collective.VecOf(flat)
	k.pack(mems)
	if got := fmt.Sprint(flat); got != "[1 2 3]" {
		t.Errorf("packed %s, want [1 2 3]", got)
	}
	for i := range flat {
		flat[i] *= 10
	}
	k.unpack(mems)
	if got := fmt.Sprint(a, b, c); got != "[10 20] [9] [30]" {
		t.Errorf("unpacked %s, want [10 20] [9] [30]", got)
	}
}
