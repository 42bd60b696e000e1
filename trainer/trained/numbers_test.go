package trained

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/data/importer"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/settings"
)

// Points are written as their table had them, and what reads tables reads them.
func TestWriteNumbers(t *testing.T) {
	in := algo.Inputs{Shape: graph.D(1, 1, 2)}
	columns := []data.Column{{Name: "height, m", Mean: 100, SD: 2}, {Name: "1", SD: 1}} // its number, beside a name
	points := []float32{0, 0.1, -1.5, float32(math.Inf(1))}
	for file, want := range map[string]string{"a.csv": "\"height, m\",1\n100,0.1\n97,+Inf\n", "a.tsv": "height, m\t1\n100\t0.1\n97\t+Inf\n"} {
		path := filepath.Join(t.TempDir(), file)
		if err := WriteNumbers(path, points, ColumnsOf(in, columns)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", file, got, err, want)
		}
	}
	for _, file := range []string{"a.csv", "a.npy"} { // without names no header, which nobody could tell from numbers
		path := filepath.Join(t.TempDir(), file)
		if err := WriteNumbers(path, []float32{1, 2, 3, 4.5}, ColumnsOf(in, nil)); err != nil {
			t.Fatal(err)
		}
		s, err := importer.Table(t.Context(), importer.TableOptions{Files: []string{path}, Header: importer.HeaderAuto})
		if err != nil || s.Splits[0].Count != 2 || s.Schema.W != 2 || s.Schema.Columns[1].Name != "1" {
			t.Errorf("%s: %+v, %v", file, s, err)
		}
		if text, err := os.ReadFile(path); err != nil || file == "a.csv" && string(text) != "1,2\n3,4.5\n" {
			t.Errorf("%s: %q, %v, want the numbers as they are", file, text, err)
		}
	}
	path := filepath.Join(t.TempDir(), "a.npy")
	if err := WriteNumbers(path, points, columns); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil || len(b) != 128+32 || !strings.Contains(string(b[:128]), "'descr': '<f8', 'fortran_order': False, 'shape': (2, 2)") || b[127] != '\n' || math.Float64frombits(binary.LittleEndian.Uint64(b[144:])) != 97 {
		t.Errorf("%q, %v", b, err)
	}
}

// Rows of another table, or on another scale, are not what a model was trained on.
func TestScaledAlike(t *testing.T) {
	r := &Run{Path: "runs/a", Settings: settings.Settings{Columns: []data.Column{{Name: "a", Mean: 1, SD: 2}}}}
	for want, columns := range map[string][]data.Column{
		"":     {{Name: "a", Mean: 1, SD: 2}},
		"none": nil,
		`shards/b holds rows of a table whose column 0 is "b", and the model of runs/a was trained on one whose is "a": make them with mkshards table --like`: {{Name: "b", Mean: 1, SD: 2}},
		"shards/b holds rows of a table that are scaled otherwise than those that the model of runs/a was trained on: make them with mkshards table --like":   {{Name: "a", Mean: 0, SD: 2}},
	} {
		err := r.scaledAlike("shards/b", columns)
		if (err == nil) != (len(want) < 5) || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: error %v, want %q", columns, err, want)
		}
	}
}
