package nets

import (
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	ok := Conv{32, 3, 64, 100}
	for _, tt := range []struct {
		name string
		n    Conv
		want string
	}{
		{"paper", ok, ""},
		{"64x64", Conv{64, 3, 64, 100}, ""},
		{"size", Conv{28, 3, 64, 100}, "32x32 or 64x64"},
		{"channels", Conv{32, 0, 64, 100}, "channel"},
		{"width", Conv{32, 3, 10, 100}, "multiple of 4"},
		{"latent", Conv{32, 3, 64, 0}, "latent"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.n.Validate()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
