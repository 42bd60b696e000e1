package supervise

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLingers says of folders as those of /proc why their process does not end.
func TestLingers(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"a driver": {map[string]string{
			"status": "State:\tZ (zombie)\nTracerPid:\t0\n", "task/7/status": "State:\tZ (zombie)\n",
			"task/9/status": "Name:\ttrain\nState:\tD (disk sleep)\n", "task/9/wchan": "rpc_wait_bit_killable",
		}, "its thread 9 waits in the kernel (state D (disk sleep), in rpc_wait_bit_killable), as for a file system or a driver that does not answer"},
		"where is secret": {map[string]string{
			"status": "State:\tD (disk sleep)\n", "task/7/status": "State:\tD (disk sleep)\n", "task/7/wchan": "0",
		}, "its thread 7 waits in the kernel (state D (disk sleep)), as for a file system or a driver that does not answer"},
		"late":       {map[string]string{"status": "State:\tR (running)\n", "task/7/status": "State:\tR (running)\n"}, "its state is R (running)"},
		"traced":     {map[string]string{"status": "State:\tZ (zombie)\nTracerPid:\t999999999\n"}, "process 999999999 traces it (a debugger?)"},
		"is no more": {nil, "why is not known (open "},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			for file, text := range c.files {
				path := filepath.Join(folder, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := lingers(folder); !strings.HasPrefix(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
