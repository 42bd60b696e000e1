package memory

import (
	"os"
	"path/filepath"
	"testing"
)

// The limit is the smallest on the way to the root, in both versions. What kills are
// counted, launch/supervise tests.
func TestLimit(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no control groups": {nil, Unlimited},
		"version 2": {map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.events": "oom_kill 0\n",
			"sys/fs/cgroup/a/memory.max": "300\n", "sys/fs/cgroup/a/b/memory.max": "500\n",
		}, 300},
		"version 2, none": {map[string]string{
			"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.events": "oom_kill 0\n", "sys/fs/cgroup/a/memory.max": "max\n",
		}, Unlimited},
		"version 2 in a container": {map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.events": "oom_kill 0\n", "sys/fs/cgroup/memory.max": "400\n",
		}, 400},
		"version 1": {map[string]string{
			"proc/self/cgroup": "4:memory:/a\n", "sys/fs/cgroup/memory/a/memory.oom_control": "oom_kill 0\n",
			"sys/fs/cgroup/memory/a/memory.stat": "cache 1\nhierarchical_memory_limit 300\n",
		}, 300},
		"version 1, none": {map[string]string{
			"proc/self/cgroup": "4:memory:/a\n", "sys/fs/cgroup/memory/a/memory.oom_control": "oom_kill 0\n",
			"sys/fs/cgroup/memory/a/memory.stat": "hierarchical_memory_limit 18446744073709551615\n",
		}, Unlimited},
		"version 1, unknown": {map[string]string{
			"proc/self/cgroup": "4:memory:/a\n", "sys/fs/cgroup/memory/a/memory.oom_control": "oom_kill 0\n",
		}, Unlimited},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, text := range tt.files {
				file = filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got := Open(root).Limit(); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// The kernel counts a machine's memory in units of 1024 bytes.
func TestMachine(t *testing.T) {
	root := t.TempDir()
	if got := Open(root).Machine(); got != 0 {
		t.Errorf("a machine that does not say so has %d bytes", got)
	}
	if err := os.Mkdir(filepath.Join(root, "proc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "proc", "meminfo"), []byte("MemFree:  1 kB\nMemTotal:       3072 kB\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := Open(root).Machine(); got != 3<<20 {
		t.Errorf("got %d bytes, want 3 MiB", got)
	}
}

// This machine's files are read, whatever is in them.
func TestHere(t *testing.T) {
	r := Open("")
	if r.Machine() < 1<<20 || r.Limit() < 1<<20 {
		t.Errorf("%d bytes of memory, limit %d", r.Machine(), r.Limit())
	}
}
