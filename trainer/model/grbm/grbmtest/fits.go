package grbmtest

import (
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/trainer/model/grbm"
)

// Fitting is a method's config of which data are said, and its machine.
type Fitting struct {
	Fit     func(data.Schema) error
	Machine *grbm.Spec
}

// Fits tests that a config for vectors takes vectors of any length, one for pictures any
// size, and one that has a size no other. Each call of vectors and of pictures is a config
// anew; preset is the advice for pictures.
func Fits(t *testing.T, vectors, pictures func() Fitting, preset string) {
	t.Helper()
	begun := pictures()
	begun.Machine.C, begun.Machine.H, begun.Machine.W = 1, 28, 20
	for _, tt := range []struct {
		config Fitting
		data   data.Schema
		want   string // "" fits
	}{
		{vectors(), data.Schema{C: 1, H: 1, W: 7}, ""},
		{vectors(), data.Schema{C: 1, H: 28, W: 20}, "take one of the presets for pictures (--preset " + preset + ")"},
		{pictures(), data.Schema{C: 3, H: 2, W: 5}, ""},
		{begun, data.Schema{C: 1, H: 20, W: 28}, "this model takes 1×28×20"},
	} {
		m := tt.config.Machine
		switch err := tt.config.Fit(tt.data); {
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%v: got %v, want %q", tt.data, err, tt.want)
		case tt.want == "" && (err != nil || m.C != tt.data.C || m.H != tt.data.H || m.W != tt.data.W):
			t.Errorf("%v: got %v, %+v", tt.data, err, m)
		}
	}
}
