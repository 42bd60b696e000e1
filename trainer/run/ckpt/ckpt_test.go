package ckpt

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ebtrain/data/safetensors"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

var update = flag.Bool("update", false, "write the golden checkpoint anew")

// filled is a tensor whose element i is first + i.
func filled(d graph.DType, first float64, dims ...int) *exec.Tensor {
	t := exec.NewTensor(graph.T(d, dims...))
	for i := range t.Type.Shape.Len() {
		t.SetAt(i, first+float64(i))
	}
	return t
}

// sample is a state and groups that use every type and corner of the format.
func sample(step int64) (State, map[string][]Named) {
	s := State{
		Step: step, Epoch: 2, Samples: 64 * step, Seed: math.MaxUint64, World: 2,
		ConfigDigest: "sha256:0123", Loader: json.RawMessage(`{"epoch":2,"shard":"a<b>","next":[1,2]}`),
	}
	nan := filled(graph.F32, float64(step), 2, 3)
	nan.F32()[5] = math.Float32frombits(0x7fc12345)
	return s, map[string][]Named{
		Weights:   {{"generator.0.weight", nan}, {"a", filled(graph.F64, -1, 3)}, {"bias", filled(graph.BF16, 0, 5)}},
		Optimizer: {{"step", filled(graph.I64, float64(step))}, {"count", filled(graph.I32, 7, 1, 2)}},
		Buffers:   {{"mask", filled(graph.U8, 0, 3)}, {"empty", filled(graph.F32, 0, 0, 4)}},
		"ema-1":   {},
	}
}

// same reports how two checkpoints differ, bit by bit.
func same(t *testing.T, s, wantS State, groups, want map[string][]Named) {
	t.Helper()
	if !reflect.DeepEqual(s, wantS) {
		t.Errorf("state %+v, want %+v", s, wantS)
	}
	if len(groups) != len(want) {
		t.Fatalf("%d groups, want %d", len(groups), len(want))
	}
	for g, tensors := range want {
		byName := map[string]*exec.Tensor{}
		for _, n := range groups[g] {
			byName[n.Name] = n.Tensor
		}
		if len(byName) != len(tensors) {
			t.Errorf("%s: %d tensors, want %d", g, len(byName), len(tensors))
		}
		for _, n := range tensors {
			if got := byName[n.Name]; got == nil || got.Type != n.Tensor.Type || !bytes.Equal(got.Bytes(), n.Tensor.Bytes()) {
				t.Errorf("%s: %s differs", g, n.Name)
			}
		}
	}
}

func mustWrite(t *testing.T, dir string, step int64) string {
	t.Helper()
	s, groups := sample(step)
	path, err := Write(dir, s, groups)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var s []string
	for _, e := range entries {
		s = append(s, e.Name())
	}
	return strings.Join(s, " ")
}

func TestRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run", "ckpt")
	path := mustWrite(t, dir, 25)
	if want := filepath.Join(dir, "step-00000025"); path != want {
		t.Errorf("path %s, want %s", path, want)
	}
	s, groups, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	wantS, want := sample(25)
	same(t, s, wantS, groups, want)
	for g, tensors := range groups { // files have them by the size of their elements
		if !slices.IsSortedFunc(tensors, func(a, b Named) int { return strings.Compare(a.Name, b.Name) }) {
			t.Errorf("%s is not sorted by name: %v", g, tensors)
		}
	}
	if got, want := names(t, path), "buffers.safetensors ema-1.safetensors optimizer.safetensors state.json weights.safetensors"; got != want {
		t.Errorf("files %s, want %s", got, want)
	}
	if err := os.Rename(path, filepath.Join(dir, "best")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Read(filepath.Join(dir, "best")); err != nil {
		t.Errorf("a checkpoint under another name: %v", err)
	}
}

// A group's file may be whole and hold what no variable is: the tensor is named.
func TestTensorsThatAreNoVariables(t *testing.T) {
	for _, tt := range []struct {
		tensor safetensors.Tensor
		want   string
	}{
		{safetensors.Tensor{Name: "deep", DType: safetensors.U8, Shape: slices.Repeat([]int64{1}, graph.MaxRank+1), Data: []byte{0}}, `tensor "deep": 7 axes, at most 6`},
		{safetensors.Tensor{Name: "half", DType: safetensors.F16, Shape: []int64{1}, Data: []byte{0, 0}}, `tensor "half": element type F16`},
	} {
		var file bytes.Buffer
		if err := safetensors.Write(&file, []safetensors.Tensor{tt.tensor}, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := decodeGroup(file.Bytes()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want one with %q", err, tt.want)
		}
	}
}

func TestNoLoaderState(t *testing.T) {
	dir := t.TempDir()
	path, err := Write(dir, State{World: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s, groups, err := Read(path); err != nil || s.Loader != nil || len(groups) != 0 {
		t.Errorf("%+v, %v, %v; want no loader state and no groups", s, groups, err)
	}
}

// The golden checkpoint of each version is kept for ever and stays readable.
func TestGolden(t *testing.T) {
	if *update {
		if err := os.RemoveAll("testdata/v1"); err != nil {
			t.Fatal(err)
		}
		mustWrite(t, "testdata/v1", 25)
	}
	const golden = "testdata/v1/step-00000025"
	s, groups, err := Read(golden)
	if err != nil {
		t.Fatal(err)
	}
	wantS, want := sample(25)
	same(t, s, wantS, groups, want)

	path := mustWrite(t, t.TempDir(), 25)
	for _, name := range strings.Fields(names(t, golden)) {
		got, err1 := os.ReadFile(filepath.Join(path, name))
		want, err2 := os.ReadFile(filepath.Join(golden, name))
		if err1 != nil || err2 != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: bytes differ from the golden file (%v, %v)", name, err1, err2)
		}
	}
}

func TestReplaceAndSweep(t *testing.T) {
	dir := t.TempDir()
	path := mustWrite(t, dir, 25)
	if err := os.Truncate(filepath.Join(path, "weights.safetensors"), 10); err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{".tmp-step-00000050", ".old-step-00000020"} {
		if err := os.MkdirAll(filepath.Join(dir, left, "x"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mustWrite(t, dir, 25)
	if _, _, err := Read(path); err != nil {
		t.Errorf("after replacing a damaged checkpoint: %v", err)
	}
	if got := names(t, dir); got != "step-00000025" {
		t.Errorf("left in the folder: %s", got)
	}
}

func TestWriteErrors(t *testing.T) {
	ok := filled(graph.F32, 0, 1)
	tests := []struct {
		name   string
		state  State
		groups map[string][]Named
		want   string
	}{
		{"negative step", State{Step: -1, World: 1}, nil, "negative"},
		{"negative epoch", State{Epoch: -1, World: 1}, nil, "negative"},
		{"negative samples", State{Samples: -1, World: 1}, nil, "negative"},
		{"no world", State{}, nil, "world of 0"},
		{"loader not JSON", State{World: 1, Loader: json.RawMessage("{")}, nil, "not JSON"},
		{"bad group", State{World: 1}, map[string][]Named{"../x": nil}, `group "../x"`},
		{"two alike", State{World: 1}, map[string][]Named{"a": {{"w", ok}, {"w", ok}}}, `"w"`},
		{"no tensor", State{World: 1}, map[string][]Named{"a": {{"w", nil}}}, `"w"`},
		{"no name", State{World: 1}, map[string][]Named{"a": {{"", ok}}}, "needs a name"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := Write(dir, tt.state, tt.groups); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			if got := names(t, dir); got != "" {
				t.Errorf("left behind: %s", got)
			}
		})
	}
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(file, State{World: 1}, nil); err == nil {
		t.Error("a file served as the folder of checkpoints")
	}
}

// A run writes thousands of checkpoints: none leaves a file open.
func TestNothingStaysOpen(t *testing.T) {
	dir := t.TempDir()
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which closes what nobody has
	open := func() int {
		t.Helper()
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	mustWrite(t, dir, 0)
	before := open()
	for step := range int64(3) {
		mustWrite(t, dir, step)
	}
	if after := open(); after > before {
		t.Errorf("%d files are open, %d before", after, before)
	}
}

// A disk, or a quota, that is full is told what to do about; another failure is told as it is.
func TestAdvice(t *testing.T) {
	for _, code := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		full := fmt.Errorf("weights.safetensors: %w", &os.PathError{Op: "write", Path: "w", Err: code})
		if got := advice(errors.Join(full, nil)); !strings.Contains(got, "make room and resume") {
			t.Errorf("of %v: %q", code, got)
		}
	}
	if got := advice(os.ErrPermission); got != "" {
		t.Errorf("of a permission: %q", got)
	}
}

// A state.json whose checksum is right may not name files outside its folder, or groups
// that none can be called, nor promise what no file can keep.
func TestStateOfOtherFiles(t *testing.T) {
	sum := strings.Repeat("0", 64)
	for _, tt := range []struct {
		file string
		entry
		ok bool
	}{
		{"weights.safetensors", entry{8, sum}, true},
		{"../weights.safetensors", entry{8, sum}, false},
		{"/weights.safetensors", entry{8, sum}, false},
		{"Weights.safetensors", entry{8, sum}, false},
		{"weights", entry{8, sum}, false},
		{"weights.safetensors", entry{-1, sum}, false},
		{"weights.safetensors", entry{8, sum[1:]}, false},
	} {
		m := manifest{Format: Format, State: State{World: 1}, Files: map[string]entry{tt.file: tt.entry}}
		text, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseManifest(text); (err == nil) != tt.ok || err != nil && !strings.Contains(err.Error(), "bad name, size or SHA-256") {
			t.Errorf("%s, %+v: %v", tt.file, tt.entry, err)
		}
	}
}

// What parses is written back with equal meaning; nothing makes it panic.
func FuzzState(f *testing.F) {
	s, _ := sample(25)
	m := manifest{Format: Format, State: s, Files: map[string]entry{"weights.safetensors": {8, strings.Repeat("0", 64)}}}
	b, err := m.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(bytes.Replace(b, []byte("25"), []byte("26"), 1))
	f.Add([]byte(`{"format":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, text := range [][]byte{b, reseal(b)} {
			m, err := parseManifest(text)
			if err != nil {
				continue
			}
			again, err := m.encode()
			if err != nil {
				t.Fatal(err)
			}
			m2, err := parseManifest(again)
			if err != nil || !reflect.DeepEqual(m, m2) {
				t.Fatalf("%+v became %+v, %v", m, m2, err)
			}
		}
	})
}

// reseal is b with the checksum that fits, so that fuzzing gets behind it.
func reseal(b []byte) []byte {
	var m manifest
	if json.Unmarshal(b, &m) != nil {
		return nil
	}
	out, err := m.encode()
	if err != nil {
		return nil
	}
	return out
}

func Example() {
	dir, err := os.MkdirTemp("", "ckpt")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }() // an example has nowhere to say it
	w := exec.NewTensor(graph.T(graph.F32, 2))
	copy(w.F32(), []float32{1, 2})
	s := State{Step: 25, Samples: 1600, Seed: 1, World: 2, ConfigDigest: "sha256:…"}
	if _, err := Write(dir, s, map[string][]Named{Weights: {{"w", w}}}); err != nil {
		fmt.Println(err)
		return
	}
	path, state, groups, err := ReadLatest(dir, slog.Default())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(filepath.Base(path), state.Step, groups[Weights][0].Name, groups[Weights][0].Tensor.F32(), err)
	// Output: step-00000025 25 w [1 2] <nil>
}
