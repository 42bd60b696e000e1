package collective

import (
	"errors"
	"strings"
	"testing"
	"unsafe"
)

// TestCheck: what is malformed is refused by a sentence that says what was expected, and the
// last that is well formed is not.
func TestCheck(t *testing.T) {
	const ranks = 3
	words := make([]int64, 12)
	at := func(d DType, n int) Vec { return Vec{Type: d, Len: n, Ptr: unsafe.Pointer(&words[0])} }
	crooked := at(F32, 6)
	crooked.Ptr = unsafe.Add(crooked.Ptr, 2)
	for _, test := range []struct {
		req  Request
		want string // "" is well formed
	}{
		{Request{Kind: Barrier, Op: 99, Root: -5}, ""},
		{Request{Kind: 0, Vec: at(F32, 6)}, "kind is Kind(0)"},
		{Request{Kind: Broadcast + 1, Vec: at(F32, 6)}, "kind is Kind(6)"},
		{Request{Kind: Allocation, Vec: at(F32, 6)}, "kind is alloc"},
		{Request{Kind: AllReduce, Op: Min, Vec: at(U8, 7)}, ""},
		{Request{Kind: AllReduce, Op: 0, Vec: at(U8, 7)}, "op is Op(0)"},
		{Request{Kind: ReduceScatter, Op: Min + 1, Vec: at(U8, 6)}, "op is Op(5)"},
		{Request{Kind: AllReduce, Op: Mean, Vec: at(BF16, 7)}, ""},
		{Request{Kind: AllReduce, Op: Mean, Vec: at(I64, 7)}, "mean of i64"},
		{Request{Kind: ReduceScatter, Op: Mean, Vec: at(U8, 6)}, "mean of u8"},
		{Request{Kind: AllGather, Vec: at(F64, 6)}, ""},
		{Request{Kind: AllGather, Vec: at(F64, 7)}, "all-gather of 7 elements on 3 ranks"},
		{Request{Kind: ReduceScatter, Op: Sum, Vec: at(F64, 8)}, "reduce-scatter of 8 elements on 3 ranks"},
		{Request{Kind: Broadcast, Root: ranks - 1, Vec: at(I32, 7)}, ""},
		{Request{Kind: Broadcast, Root: ranks, Vec: at(I32, 7)}, "root is 3, expected 0 to 2"},
		{Request{Kind: Broadcast, Root: -1, Vec: at(I32, 7)}, "root is -1"},
		{Request{Kind: Broadcast, Vec: at(0, 7)}, "element type is DType(0)"},
		{Request{Kind: Broadcast, Vec: at(U8+1, 7)}, "element type is DType(7)"},
		{Request{Kind: Broadcast, Vec: Vec{Type: F32}}, ""},
		{Request{Kind: Broadcast, Vec: Vec{Type: F32, Len: 1}}, "vector of 1 elements with a nil pointer"},
		{Request{Kind: Broadcast, Vec: crooked}, "expected an address that is a multiple of 4"},
		{Request{Kind: Broadcast, Vec: at(F32, -1)}, "vector of -1 elements"},
		{Request{Kind: Broadcast, Vec: at(F64, 1<<44)}, ""},
		{Request{Kind: Broadcast, Vec: at(F64, 1<<44+1)}, "expected 0 to 2^47 bytes"},
		{Request{Kind: Broadcast, Vec: at(F64, 1<<61+1)}, "expected 0 to 2^47 bytes"}, // 8 bytes, modulo 2^64
	} {
		err := test.req.Check(ranks)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%+v: got %v", test.req, err)
		case test.want != "" && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%+v: got %v, want ErrInvalid and %q", test.req, err, test.want)
		}
	}
}

// TestSlice: parts of a vector begin where the elements before them end, and none is outside.
func TestSlice(t *testing.T) {
	words := make([]int64, 4)
	v := VecOf(words)
	for i := range 5 {
		for j := range 5 {
			func() {
				defer func() {
					if refused := recover() != nil; refused != (j < i) {
						t.Errorf("[%d:%d] of 4 elements is refused: %v", i, j, refused)
					}
				}()
				got := v.Slice(i, j)
				if got.Type != I64 || got.Len != j-i || got.Len > 0 && got.Ptr != unsafe.Pointer(&words[i]) {
					t.Errorf("[%d:%d] is %v[%d] at %p, want from %p on", i, j, got.Type, got.Len, got.Ptr, &words[i%4])
				}
			}()
		}
	}
	for _, out := range [][2]int{{-1, 2}, {0, 5}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v of 4 elements is not refused", out)
				}
			}()
			v.Slice(out[0], out[1])
		}()
	}
}
