package catalogue

import (
	"os"
	"strings"
	"testing"

	"ebtrain/trainer/experiment/judge"
	"ebtrain/trainer/experiment/plan"
)

func sweeps() plan.Experiment {
	return plan.Experiment{
		Name:    "sweeps",
		About:   "More Gibbs sweeps give a better likelihood.",
		Data:    checkerboardData(),
		Seeds:   []uint64{1, 2, 3},
		Flags:   map[string]string{"steps": "20000"}, // of train, for all rows
		Columns: []string{"ll", "cpu-s"},             // of measure/measure.go
		Rows: []plan.Row{
			{Name: "cd-1", Preset: "cd-board"},
			{Name: "cd-5", Preset: "cd-board", Flags: map[string]string{"cd-steps": "5"}},
		},
		Checks: []judge.Check{judge.Order{Rising: judge.Rows("ll", "cd-1", "cd-5")}},
	}
}

// TestExample: the experiment that the README shows is the one above, and valid.
func TestExample(t *testing.T) {
	if err := sweeps().Validate(); err != nil {
		t.Error(err)
	}
	var text [2]string
	for i, name := range []string{"readme_test.go", "../README.md"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text[i] = string(b)
	}
	_, shown, ok := strings.Cut(text[1], "```go\n")
	shown, _, _ = strings.Cut(shown, "```")
	if !ok || !strings.Contains(text[0], shown) {
		t.Errorf("trainer/experiment/README.md shows another experiment:\n%s", shown)
	}
}
