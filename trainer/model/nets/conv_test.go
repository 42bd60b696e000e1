package nets

import (
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	ok := Conv{Size: 32, Channels: 3, Width: 64, Latent: 100}
	for _, tt := range []struct {
		name string
		n    Conv
		want string
	}{
		{"paper", ok, ""},
		{"64x64", Conv{Size: 64, Channels: 3, Width: 64, Latent: 100}, ""},
		{"size", Conv{Size: 28, Channels: 3, Width: 64, Latent: 100}, "32x32 or 64x64"},
		{"channels", Conv{Size: 32, Channels: 0, Width: 64, Latent: 100}, "channel"},
		{"width", Conv{Size: 32, Channels: 3, Width: 10, Latent: 100}, "multiple of 4"},
		{"latent", Conv{Size: 32, Channels: 3, Width: 64, Latent: 0}, "latent"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.n.Validate()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
