package rundir

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func record(step int64) Record {
	return Record{
		Step: step, Epoch: 1, Samples: 64 * (step + 1),
		Losses:      map[string]float64{"reconstruction": 0.1 * float64(step), "energy": -1e-7},
		SamplesPerS: 1234.5, StepMS: 10, DataMS: 0.5, CommMS: 1, MemBytes: 1 << 30, Time: 1795983947.962,
	}
}

func appendSteps(t *testing.T, m *Metrics, from, to int64) {
	t.Helper()
	for step := from; step < to; step++ {
		if err := m.Append(record(step)); err != nil {
			t.Fatal(err)
		}
	}
}

func open(t *testing.T, path string, step int64) *Metrics {
	t.Helper()
	m, err := OpenMetrics(path, step, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func closeMetrics(t *testing.T, m *Metrics) {
	t.Helper()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestMetricsText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	m := open(t, path, 0)
	r := record(3)
	r.Losses["nan"], r.Losses["up"], r.Losses["down"] = math.NaN(), math.Inf(1), math.Inf(-1)
	if err := m.Append(r); err != nil {
		t.Fatal(err)
	}
	closeMetrics(t, m)
	const want = `{"step":3,"epoch":1,"samples":256,"losses":{"down":"-Inf","energy":-1e-7,"nan":"NaN","reconstruction":0.30000000000000004,"up":"Inf"},` +
		`"samples_per_s":1234.5,"step_ms":10,"data_ms":0.5,"comm_ms":1,"mem_bytes":1073741824,"time":1795983947.962}` + "\n"
	if b, err := os.ReadFile(path); err != nil || string(b) != want {
		t.Errorf("got  %s, %v\nwant %s", b, err, want)
	}
	got, err := ReadMetrics(path)
	if err != nil || len(got) != 1 {
		t.Fatalf("%v, %v", got, err)
	}
	if !math.IsNaN(got[0].Losses["nan"]) {
		t.Errorf("NaN became %v", got[0].Losses["nan"])
	}
	delete(got[0].Losses, "nan") // NaN differs from itself
	delete(r.Losses, "nan")
	if !reflect.DeepEqual(got[0], r) {
		t.Errorf("got %+v, want %+v", got[0], r)
	}
}

// A run of 4 steps is cut at every byte and goes on from a step of which all
// lines before are still there. The file is always that of the run that was
// not interrupted.
func TestMetricsResume(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	m := open(t, path, 0)
	appendSteps(t, m, 0, 4)
	closeMetrics(t, m)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := 0; cut <= len(whole); cut++ {
		lines := int64(strings.Count(string(whole[:cut]), "\n"))
		for _, from := range []int64{lines, lines / 2} {
			if err := os.WriteFile(path, whole[:cut], 0o644); err != nil {
				t.Fatal(err)
			}
			m := open(t, path, from)
			appendSteps(t, m, from, 4)
			closeMetrics(t, m)
			if got, err := os.ReadFile(path); err != nil || string(got) != string(whole) {
				t.Fatalf("cut at %d, resumed at %d: %v\ngot:\n%s\nwant:\n%s", cut, from, err, got, whole)
			}
		}
	}
}

// TestMetricsShowsWhatStays: whoever goes on is shown the lines that stay, and no other.
func TestMetricsShowsWhatStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	m := open(t, path, 0)
	appendSteps(t, m, 0, 5)
	closeMetrics(t, m)
	var seen []Record
	m, err := OpenMetrics(path, 3, func(r Record) { seen = append(seen, r) })
	if err != nil {
		t.Fatal(err)
	}
	closeMetrics(t, m)
	if want := []Record{record(0), record(1), record(2)}; !reflect.DeepEqual(seen, want) {
		t.Errorf("got %+v, want %+v", seen, want)
	}
}

// A power cut may leave zeros in the place of any bytes that were not on the disk yet, with
// lines behind them: who goes on from before them makes those lines anew, and who goes on
// from behind them is told.
func TestMetricsHole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	m := open(t, path, 0)
	appendSteps(t, m, 0, 8)
	closeMetrics(t, m)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	first := len(bytes.Join(lines[:3], nil)) // byte of the fourth line
	for _, at := range []int{first, first + 10, first + len(lines[3]) - 1} {
		text := bytes.Clone(whole)
		clear(text[at : at+len(lines[3])+20])
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := OpenMetrics(path, 8, nil)
		wantError(t, err, path, "line 4: ", "mend the line or delete it")
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, text) {
			t.Fatalf("zeros from %d: the file was changed to %q, %v", at, got, err)
		}
		m := open(t, path, 3)
		appendSteps(t, m, 3, 8)
		closeMetrics(t, m)
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, whole) {
			t.Fatalf("zeros from %d, resumed at 3: %v\ngot:\n%s\nwant:\n%s", at, err, got, whole)
		}
	}
}

// A last line that lacks only its newline is complete and is kept.
func TestMetricsKeepsCompleteLastLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	m := open(t, path, 0)
	appendSteps(t, m, 0, 3)
	closeMetrics(t, m)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, whole[:len(whole)-1], 0o644); err != nil {
		t.Fatal(err)
	}
	closeMetrics(t, open(t, path, 3))
	if got, err := os.ReadFile(path); err != nil || string(got) != string(whole) {
		t.Errorf("got %q, %v; want %q", got, err, whole)
	}
}

func TestMetricsErrors(t *testing.T) {
	good := func(step int64) string {
		b, err := record(step).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		return string(b) + "\n"
	}
	tests := []struct{ name, text, want string }{
		{"garbage in the middle", good(0) + "x\n" + good(2), "line 2: no whole JSON at byte 1 (invalid character 'x' looking for beginning of value): mend the line or delete it"},
		{"empty line", good(0) + "\n" + good(2), "line 2"},
		{"no step", "{}\n", `line 1: "step"`},
		{"steps fall", good(5) + good(5), "line 2: step 5 after step 5"},
		{"null loss", `{"step":1,"losses":{"a":null}}` + "\n", "line 1"},
		{"word for a number", `{"step":1,"losses":{"a":"many"}}` + "\n", "line 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "metrics.jsonl")
			if err := os.WriteFile(path, []byte(tt.text), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := OpenMetrics(path, 1, nil)
			wantError(t, err, path, tt.want)
			_, err = ReadMetrics(path)
			wantError(t, err, path, tt.want)
			if b, err := os.ReadFile(path); err != nil || string(b) != tt.text {
				t.Errorf("the file was changed to %q, %v", b, err)
			}
		})
	}
}

func TestMetricsStepsRise(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	m := open(t, path, 0)
	appendSteps(t, m, 0, 5)
	wantError(t, m.Append(record(4)), "step 4 after step 4")
	closeMetrics(t, m)
	m = open(t, path, 3)
	wantError(t, m.Append(record(2)), "step 2 after step 2")
	appendSteps(t, m, 3, 4)
	closeMetrics(t, m)
	wantError(t, m.Append(record(9)), "closed")
}

// After a line that could not be written no other is, even where the disk has room again:
// it would be glued to what there is of the first.
func TestNothingFollowsHalfALine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	m := open(t, path, 0)
	whole := m.f
	var err error
	if m.f, err = os.Open(path); err != nil { // which takes no writes
		t.Fatal(err)
	}
	wantError(t, m.Append(record(0)), "bad file descriptor")
	if err := m.f.Close(); err != nil {
		t.Fatal(err)
	}
	m.f = whole
	wantError(t, m.Append(record(1)), "bad file descriptor")
	closeMetrics(t, m)
}

func FuzzMetrics(f *testing.F) {
	f.Add([]byte(`{"step":1,"losses":{"a":"NaN"}}`+"\n"), int64(2))
	f.Add([]byte(`{"step":1}`+"\n"+`{"step":`), int64(2))
	f.Fuzz(func(t *testing.T, b []byte, step int64) {
		path := filepath.Join(t.TempDir(), "metrics.jsonl")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		m, err := OpenMetrics(path, step, nil)
		if err != nil {
			return
		}
		closeMetrics(t, m)
		records, err := ReadMetrics(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			if r.Step >= step {
				t.Fatalf("step %d was kept, resuming at %d", r.Step, step)
			}
		}
	})
}

func Example() {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }() // an example has nowhere to say it
	d, err := Create(dir, Config{Program: "train", World: 1}, map[string]int{"batch": 64})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = d.Close() }()
	m, err := d.Metrics(0, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = m.Close() }()
	err = m.Append(Record{Step: 0, Samples: 64, Losses: map[string]float64{"energy": -0.25}})
	text, _ := os.ReadFile(d.MetricsFile())
	fmt.Printf("%s%v", text, err)
	// Output:
	// {"step":0,"epoch":0,"samples":64,"losses":{"energy":-0.25},"samples_per_s":0,"step_ms":0,"data_ms":0,"comm_ms":0,"mem_bytes":0,"time":0}
	// <nil>
}
