package exec_test

import (
	"errors"
	"testing"

	"ebtrain/ddp/exec"
)

func TestErrorAt(t *testing.T) {
	cause := errors.New("too large")
	for want, at := range map[string][2]string{
		`program "step": too large`:                {},
		`program "step": conv2d: too large`:        {"", "conv2d"},
		`program "step": upper: conv2d: too large`: {"upper", "conv2d"},
	} {
		if err := exec.ErrorAt("step", at[0], at[1], cause); err.Error() != want || !errors.Is(err, cause) {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}
