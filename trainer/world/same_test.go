package world

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"ebtrain/collective/host"
	"ebtrain/launch/cliflag"
)

// TestSame gives the third of four ranks other settings: all say the same.
func TestSame(t *testing.T) {
	flags := map[string]string{"batch": "8", "seed": "1", "width": "4", "data": "here", "threads": "1"}
	for _, c := range []struct {
		name   string
		change map[string]string
		digest string
		want   string // "" for none
	}{
		{"nothing", nil, "sha256:aa", ""},
		{"what is of each host", map[string]string{"data": "there", "threads": "7"}, "sha256:aa", ""},
		{"batch and seed", map[string]string{"batch": "16", "seed": "2"}, "sha256:aa", "--batch is 8 on rank 0 and 16 on rank 2; --seed is 1 on rank 0 and 2 on rank 2: give the same settings to all ranks"},
		{"width", map[string]string{"width": "8"}, "sha256:aa", "--width is 4 on rank 0 and 8 on rank 2: "},
		{"another method", map[string]string{"latent": "8"}, "sha256:aa", "rank 2 has --latent 8 and rank 0 has no such flag: "},
		{"data", map[string]string{"data": "there"}, "sha256:bb", "--data holds other samples on rank 0 (digest sha256:aa) than on rank 2 (sha256:bb): "},
	} {
		t.Run(c.name, func(t *testing.T) {
			exchanges := host.MemExchange(4)
			var errs [4]error
			var wg sync.WaitGroup
			for r := range 4 {
				mine, digest := maps.Clone(flags), "sha256:aa"
				if r == 2 {
					maps.Copy(mine, c.change)
					digest = c.digest
				}
				wg.Go(func() { errs[r] = Same(t.Context(), r, mine, []string{"threads"}, digest, Exchange(exchanges[r])) })
			}
			wg.Wait()
			for r, err := range errs {
				_, usage := errors.AsType[*cliflag.UsageError](err)
				if (err != nil) != (c.want != "") || err != nil && (!usage || !strings.HasPrefix(err.Error(), c.want) || fmt.Sprint(err) != fmt.Sprint(errs[0])) {
					t.Errorf("rank %d: got %v, want %q", r, err, c.want)
				}
			}
		})
	}
}
