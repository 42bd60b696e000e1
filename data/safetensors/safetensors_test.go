package safetensors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func Example() {
	var b bytes.Buffer
	err := Write(&b, []Tensor{
		Float32s("weight", []int64{2, 2}, []float32{1, 2, 3, 4}),
		{Name: "step", DType: I64, Data: []byte{7, 0, 0, 0, 0, 0, 0, 0}},
	}, map[string]string{"made_by": "example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := Parse(b.Bytes())
	if err != nil {
		fmt.Println(err)
		return
	}
	w := make([]float32, 4)
	err = f.Float32("weight", w)
	fmt.Println(f.Infos()[0].Name, w, f.Metadata()["made_by"], err)
	// Output: step [1 2 3 4] example <nil>
}

func TestRoundTripAllTypes(t *testing.T) {
	var tensors []Tensor
	for i, d := range []DType{F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8, Bool} {
		data := bytes.Repeat([]byte{byte(i + 1)}, 6*d.Size())
		tensors = append(tensors, Tensor{Name: "t." + string(d), DType: d, Shape: []int64{2, 3}, Data: data})
	}
	tensors = append(tensors, Tensor{Name: "empty", DType: F32, Shape: []int64{0, 4}}, Tensor{Name: "scalar \"é<", DType: U8, Data: []byte{9}})
	meta := map[string]string{"b": "2", "a": "<1>"}
	var one, two bytes.Buffer
	if err := Write(&one, tensors, meta); err != nil {
		t.Fatal(err)
	}
	for i, j := 0, len(tensors)-1; i < j; i, j = i+1, j-1 {
		tensors[i], tensors[j] = tensors[j], tensors[i]
	}
	if err := Write(&two, tensors, meta); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Error("bytes depend on the order of the tensors given")
	}
	f, err := Parse(one.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if f.DataStart()%8 != 0 {
		t.Errorf("data starts at %d, want a multiple of 8", f.DataStart())
	}
	if !reflect.DeepEqual(f.Metadata(), meta) {
		t.Errorf("metadata %v, want %v", f.Metadata(), meta)
	}
	for _, w := range tensors {
		i, ok := f.Info(w.Name)
		got, err := f.Bytes(w.Name)
		if !ok || err != nil || i.DType != w.DType || !bytes.Equal(got, w.Data) || i.Begin%int64(w.DType.Size()) != 0 {
			t.Errorf("%s: %+v %v, %v", w.Name, i, got, err)
		}
	}
}

// The bytes of a file written by the format's own description, by hand.
func TestGoldenBytes(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, []Tensor{Float32s("a", []int64{1}, []float32{1})}, nil); err != nil {
		t.Fatal(err)
	}
	header := `{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  `
	want := append(file(header, 0), 0, 0, 0x80, 0x3f)
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("got %q\nwant %q", b.Bytes(), want)
	}
}

func TestBadFiles(t *testing.T) {
	const a = `"dtype":"U8","shape":[2],"data_offsets":[0,2]`
	tests := []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "0 bytes"},
		{"huge header", binary.LittleEndian.AppendUint64(nil, 1<<40), "over the limit"},
		{"header past the end", file(`{}`, 0)[:9], "does not fit"},
		{"not an object", file(`[]`, 0), "does not begin with '{'"},
		{"leading space", file(` {}`, 0), "does not begin with '{'"},
		{"not UTF-8", file("{\"\xff\":{}}", 0), "UTF-8"},
		{"cut JSON", file(`{"a":`, 0), "ends too soon"},
		{"text after", file(`{}x`, 0), "bytes after"},
		{"duplicate tensor", file(`{"a":{`+a+`},"a":{`+a+`}}`, 2), `duplicate name "a"`},
		{"duplicate field", file(`{"a":{"dtype":"U8",`+a+`}}`, 2), `duplicate field "dtype"`},
		{"unknown field", file(`{"a":{"x":1}}`, 0), `unknown field "x"`},
		{"missing field", file(`{"a":{"dtype":"U8"}}`, 0), "needs dtype, shape"},
		{"null field", file(`{"a":{"dtype":null,"shape":[],"data_offsets":[0,1]}}`, 1), "needs dtype, shape"},
		{"unknown dtype", file(`{"a":{"dtype":"X9","shape":[],"data_offsets":[0,1]}}`, 1), `tensor "a": unknown dtype "X9"`},
		{"negative shape", file(`{"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}}`, 1), "negative"},
		{"overflowing shape", file(`{"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, 0), "2^63"},
		{"size mismatch", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, 4), "span 4 bytes"},
		{"three offsets", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}}`, 1), "data_offsets"},
		{"overlap", file(`{"a":{`+a+`},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 3), `tensor "b" begins at data offset 1`},
		{"gap", file(`{"a":{`+a+`},"b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}}`, 5), "gap"},
		{"truncated data", file(`{"a":{`+a+`}}`, 1), "truncated"},
		{"left-over data", file(`{"a":{`+a+`}}`, 3), "1 bytes follow"},
		{"metadata not strings", file(`{"__metadata__":{"a":1}}`, 0), `metadata "a" is not a string`},
		{"duplicate metadata", file(`{"__metadata__":{"a":"1","a":"2"}}`, 0), "duplicate metadata"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse(tt.file)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestBadWrites(t *testing.T) {
	tests := []struct {
		name    string
		tensors []Tensor
		want    string
	}{
		{"short data", []Tensor{{"a", F32, []int64{2}, make([]byte, 4)}}, "4 bytes of data"},
		{"two alike", []Tensor{{"a", U8, nil, []byte{1}}, {"a", U8, nil, []byte{1}}}, "two tensors"},
		{"reserved name", []Tensor{{"__metadata__", U8, nil, []byte{1}}}, "cannot be"},
		{"unknown type", []Tensor{{"a", "Q", nil, nil}}, "unknown dtype"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := Write(&bytes.Buffer{}, tt.tensors, nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
	s, err := NewWriter(&bytes.Buffer{}, []Info{{Name: "a", DType: U8, Shape: []int64{2}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("close of a short stream: %v", err)
	}
	if _, err := s.Write(make([]byte, 3)); err == nil {
		t.Error("writing past the promised end gives no error")
	}
}

func TestTypedReads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.safetensors")
	var b bytes.Buffer
	if err := Write(&b, []Tensor{Float64s("d", []int64{2}, []float64{1, -2}), {Name: "i", DType: I64, Shape: []int64{1}, Data: binary.LittleEndian.AppendUint64(nil, ^uint64(4))}}, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	err := ReadFile(path, func(f *File) error {
		d, i := make([]float64, 2), make([]int64, 1)
		if err := f.Float64("d", d); err != nil || d[1] != -2 {
			t.Errorf("d = %v, %v", d, err)
		}
		if err := f.Int64("i", i); err != nil || i[0] != -5 {
			t.Errorf("i = %v, %v", i, err)
		}
		return f.Float32("d", make([]float32, 2))
	})
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "F64[2]") {
		t.Errorf("reading F64 as F32: %v, want an error naming the file and the type", err)
	}
	if err := ReadFile(path, func(f *File) error { _, err := f.Bytes("x"); return err }); err == nil {
		t.Error("reading a missing tensor gives no error")
	}
}

// A pipe is no file: nobody waits for who is to write into it.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.safetensors")
	if err := syscall.Mkfifo(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := ReadFile(path, func(*File) error { return nil }); err == nil || err.Error() != path+" is a pipe, where a file is expected" {
		t.Errorf("error %v", err)
	}
}

// Whatever parses can be written again, and then reads the same.
func FuzzParse(f *testing.F) {
	f.Add(file(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, 2))
	f.Add(file(`{"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"b":{"dtype":"I64","shape":[0],"data_offsets":[4,4]}}`, 4))
	f.Add(file(`{}`, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Parse(b)
		if err != nil {
			return
		}
		var tensors []Tensor
		for _, i := range s.Infos() {
			data, err := s.Bytes(i.Name)
			if err != nil {
				t.Fatal(err)
			}
			tensors = append(tensors, Tensor{i.Name, i.DType, i.Shape, data})
		}
		var out bytes.Buffer
		if err := Write(&out, tensors, s.Metadata()); err != nil {
			t.Fatal(err)
		}
		again, err := Parse(out.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range tensors {
			if got, err := again.Bytes(w.Name); err != nil || !bytes.Equal(got, w.Data) {
				t.Fatalf("%q: %v, %v, want %v", w.Name, got, err, w.Data)
			}
		}
	})
}
