package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"ebtrain/ddp/philox"
)

// measurements is a table of rows whose three columns lie on scales that are far apart, the
// second following the first.
func measurements(rows int) string {
	var b strings.Builder
	b.WriteString("grams,\"length, mm\",year,kind\n")
	for i := range rows {
		var u [3]float64
		philox.Name{Seed: 4, Purpose: philox.Testing, Sample: uint32(i)}.Normal(u[:])
		fmt.Fprintf(&b, "%.2f,%.4g,%.0f,%s\n", 5000+800*u[0], 0.02+0.004*(0.9*u[0]+0.4*u[1]), 1950+30*u[2], []string{"a", "b"}[i%2])
	}
	return b.String()
}

// TestTable goes from a table to samples in its units and numbers of them, on two ranks, and
// judges rows that came later.
func TestTable(t *testing.T) {
	long(t)
	s := newSite(t)
	for file, text := range map[string]string{"rows.csv": measurements(600), "later.csv": measurements(50), "bad.csv": measurements(9) + "1,2,x,a\n"} {
		if err := os.WriteFile(s.path(file), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	s.must("mkshards", "table", "--src", "rows.csv", "--label-column", "kind", "--test-percent", "20", "--out", "shards")
	e := s.must(on(2, []string{"train", "--preset", "cd-board", "--hidden", "4", "--lr", "0.01", "--data", "shards", "--steps", "300", "--samples", "5", "--threads", "1", "--log-every", "50", "--out", "run"})...)
	if !strings.Contains(e.stdout, "480 points of shards/train") || !strings.Contains(e.stdout, "samples run/samples/step-00000300.csv") {
		t.Errorf("got %v", e)
	}
	const header = "grams,\"length, mm\",year\n"
	s.must("sample", "--run", "run", "--n", "400", "--out", "drawn.csv")
	for file, rows := range map[string]int{"drawn.csv": 400, "run/samples/step-00000300.csv": 5} {
		text, err := os.ReadFile(s.path(file))
		if err != nil || !strings.HasPrefix(string(text), header) || strings.Count(string(text), "\n") != rows+1 {
			t.Fatalf("%s: %.200q, %v", file, text, err)
		}
	}

	// What is drawn is a table like the first, so anybody's measures are those of evaluate.
	s.must("mkshards", "table", "--src", "drawn.csv", "--like", "shards", "--out", "drawn")
	e = s.must("mkshards", "table", "--src", "drawn.csv", "--out", "alone")
	for column, want := range map[string][2]float64{`"grams"`: {5000, 800}, `"length, mm"`: {0.02, 0.004}, `"year"`: {1950, 30}} {
		var mean, sd float64
		_, after, _ := strings.Cut(e.stdout, "column "+column)
		if _, err := fmt.Sscanf(after, ", of mean %g and standard deviation %g", &mean, &sd); err != nil || !(math.Abs(mean-want[0]) <= want[1]/2) || !(sd > want[1]/2 && sd < want[1]*1.6) {
			t.Errorf("column %s of samples: mean %v, deviation %v, want about %v: %v", column, mean, sd, want, e)
		}
	}
	var got struct {
		LL    *float64
		Table *float64 `json:"ll_table"`
		AUROC []struct {
			Against string
			Value   float64
		}
		Quality struct {
			Rows []struct {
				Name     string
				Samples  *float64
				Controls map[string]float64
			}
		}
		Lacking []string
	}
	evaluate := func(more ...string) {
		t.Helper()
		e := s.must(append([]string{"evaluate", "--json", "--threads", "1"}, more...)...)
		if err := json.Unmarshal([]byte(e.stdout), &got); err != nil {
			t.Fatal(err, e)
		}
	}
	evaluate("--run", "run")
	// The logarithm of the scales; on N(0, I) standardised rows have −4.26, the best is −3.4.
	if scales := math.Log(800 * 0.004 * 30); got.LL == nil || got.Table == nil || !(*got.LL > -4.4) || !(*got.LL < -3.2) || !(math.Abs(*got.LL-*got.Table-scales) <= 0.2) {
		t.Errorf("log-likelihood %v, in the table's units %v", *got.LL, *got.Table)
	}
	for _, a := range got.AUROC {
		if a.Against == "noise" && !(a.Value > 0.5) {
			t.Errorf("AUROC against noise %v", a.Value)
		}
	}
	evaluate("--samples-from", "drawn", "--data", "shards", "--samples", "400", "--measures", "frechet,swd,is")
	if len(got.Quality.Rows) != 2 || len(got.Lacking) != 1 {
		t.Errorf("got %+v", got)
	}
	for _, row := range got.Quality.Rows {
		if row.Samples == nil || !(*row.Samples < row.Controls["noise"]) {
			t.Errorf("%s: samples %v, noise %v", row.Name, *row.Samples, row.Controls)
		}
	}

	e = s.run("mkshards", "table", "--src", "bad.csv", "--label-column", "kind", "--out", "bad")
	if want := "\nmkshards: bad.csv: line 11: column \"year\" is \"x\", expected a number: --leave-out leaves a column out"; e.code != 1 || !strings.Contains(e.stderr, want) {
		t.Errorf("want %q, got %v", want, e)
	}
	s.must("mkshards", "table", "--src", "later.csv", "--label-column", "kind", "--out", "other")
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"evaluate --run run --data other --split train", 1, `^other holds rows of a table that are scaled otherwise than those that the model of run was trained on: make them with mkshards table --like`},
		{"sample --run run --out drawn.csv", 1, `^--out drawn.csv: it is there already: give another name, or replace it with --force`},
		{"sample --run run --out drawn.png", 1, `^--out drawn.png: the samples of run are points of 3 values, and only those of 2 have a picture`},
		{"train --data shards --out z", 1, `^--data shards holds points of 3 values, and --net conv32 takes 32x32: give --data of pictures, or take a preset for points`},
	} {
		checkSentence(t, s.run(strings.Fields(c.args)...), 0, c.code, c.want)
	}
}
