package chosen

import (
	"errors"
	"strings"
	"testing"

	"ebtrain/launch/cliflag"
)

// What is called wrong is a mistake on the command line, which no launcher tries again;
// files that are not there may come.
func TestOpenTellsMistakesFromFiles(t *testing.T) {
	for _, tt := range []struct {
		name, split string
		usage       bool
		want        string
	}{
		{"gauss:dmi=2", "train", true, `--data: data set "gauss:dmi=2": unknown setting "dmi"; known are `},
		{"checkerboard:cols=0", "train", true, `--data: data set "checkerboard:cols=0": cols is 0, expected 1 to 1024`},
		{"checkerboard:cols=2,cols=3", "train", true, `--data: data set "checkerboard:cols=2,cols=3": setting "cols=3": cols is given twice`},
		{"synth:size=3", "train", true, `--data: data set "synth:size=3": size is 3, expected 8 to 256`},
		{"synth", "nope", true, `--split: synth: no split "nope"; it has train, val, test`},
		{"nowhere", "train", false, "nowhere: no such data set"},
		{"synth", "train", false, ""},
	} {
		_, err := Open(tt.name, tt.split)
		if tt.want == "" && err == nil {
			continue
		}
		if _, usage := errors.AsType[*cliflag.UsageError](err); err == nil || usage != tt.usage || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s, split %s: %v, want %s (usage: %v)", tt.name, tt.split, err, tt.want, tt.usage)
		}
	}
}
