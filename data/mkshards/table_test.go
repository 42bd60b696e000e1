package main

import (
	"path/filepath"
	"strings"
	"testing"

	"ebtrain/data/shard"
)

// A table becomes points, and what it was taken for is said; further rows are made like it.
func TestTable(t *testing.T) {
	in := t.TempDir()
	a := put(t, filepath.Join(in, "a.csv"), []byte("x,y,kind\n1,2,b\n3,6,a\n"))
	b := put(t, filepath.Join(in, "b_test.csv"), []byte("x,y,kind\n2,?,a\n2,4,b\n"))
	dir := filepath.Join(in, "out")
	code, out, said, err := try(t, "table", "--src", a+","+b, "--label-column", "kind", "--on-bad", "skip", "--out", dir)
	if code != 0 {
		t.Fatal(err)
	}
	for _, want := range []string{"samples of 1×1×2 F32, 2 classes: a, b", `column "y", of mean 4 and standard deviation 2`, "classes: kind", b + `: line 2 (test): column "y" has no value, only "?"`} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in\n%s", want, out)
		}
	}
	if want := a + ": a header in its first line; values are x, y (2), classes kind\n"; !strings.HasPrefix(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
	later := put(t, filepath.Join(in, "later.csv"), []byte("y;x\n4;2\n"))
	if code, _, _, err := try(t, "table", "--src", later, "--delimiter", ";", "--like", dir, "--out", filepath.Join(in, "later")); code != 0 {
		t.Fatal(err)
	}
	x, err := shard.ReadIndex(filepath.Join(in, "later"))
	if err != nil || len(x.Schema.Columns) != 2 || x.Schema.Columns[0].Name != "x" || x.Schema.Columns[0].Mean != 2 {
		t.Errorf("%+v, %v", x, err)
	}
	for want, args := range map[string][]string{
		`table: --delimiter "ab", expected one character, tab or space`:         {"--delimiter", "ab"},
		"table: --standardize is of no use to --like, whose scale is taken":     {"--like", dir, "--standardize"},
		"--like: " + in + "/none: no such data set":                             {"--like", filepath.Join(in, "none")},
		"--val-percent 5 and --test-percent 90, expected 0 or more, and 90 at ": {"--val-percent", "5", "--test-percent", "90"},
		"table: unexpected \"b.csv\"; every setting has a name":                 {"b.csv"},
		a + ": text, expected an array of NumPy's beside --labels":              {"--labels", b},
		"--labels and --label-column both say the classes":                      {"--labels", b, "--label-column", "kind"},
	} {
		if _, _, _, err := try(t, append([]string{"table", "--src", a, "--out", filepath.Join(in, "other")}, args...)...); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: error %v, want %q", args, err, want)
		}
	}
	synth := filepath.Join(in, "synth")
	if code, _, _, err := try(t, "synth", "--size", "8", "--train", "2", "--val", "0", "--test", "0", "--out", synth); code != 0 {
		t.Fatal(err)
	}
	if _, _, _, err := try(t, "table", "--src", a, "--like", synth, "--out", filepath.Join(in, "other")); err == nil || !strings.HasSuffix(err.Error(), "samples of 3×8×8 U8, expected a data set that mkshards table made") {
		t.Errorf("error %v", err)
	}
}
