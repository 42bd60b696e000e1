package supervise

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestOutOfMemory has the files of both versions of control groups, and a
// machine without.
func TestOutOfMemory(t *testing.T) {
	const gib = 1 << 30
	group := "out of memory: killed by the kernel, using 1024 MiB; the limit of its control group is 300 MiB"
	machine := "out of memory: killed by the kernel, using 1024 MiB; this machine has 2048 MiB"
	for name, tt := range map[string]struct {
		files map[string]string
		file  string // then changes
		text  string // to this
		want  string
	}{
		"version 2": {map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.events": "oom 0\noom_kill 3\n",
			"sys/fs/cgroup/a/memory.max": "314572800\n", "sys/fs/cgroup/a/b/memory.max": "max\n",
		}, "sys/fs/cgroup/a/b/memory.events", "oom 1\noom_kill 4\n", group},
		"version 2, no limit known": {map[string]string{
			"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.events": "oom_kill 3\n",
		}, "sys/fs/cgroup/a/memory.events", "oom_kill 4\n", "out of memory: killed by the kernel, using 1024 MiB; this machine has 2048 MiB, and its control group no limit that is known here"},
		"version 1": {map[string]string{
			"proc/self/cgroup": "9:name=systemd:/x\n4:memory:/a\n0::/\n", "sys/fs/cgroup/memory.events": "oom_kill 0\n",
			"sys/fs/cgroup/memory/a/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n",
			"sys/fs/cgroup/memory/a/memory.stat":        "cache 1\nhierarchical_memory_limit 314572800\n",
		}, "sys/fs/cgroup/memory/a/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", group},
		"version 1, no limit": {map[string]string{
			"proc/self/cgroup":                          "4:memory:/a\n",
			"sys/fs/cgroup/memory/a/memory.oom_control": "oom_kill 0\n",
			"sys/fs/cgroup/memory/a/memory.stat":        "hierarchical_memory_limit 9223372036854771712\n",
		}, "sys/fs/cgroup/memory/a/memory.oom_control", "oom_kill 1\n", "out of memory: killed by the kernel, using 1024 MiB; this machine has 2048 MiB, and its control group no limit that is known here"},
		"version 1 in a container": {map[string]string{
			"proc/self/cgroup": "4:memory:/outside\n", "sys/fs/cgroup/memory/memory.oom_control": "oom_kill 0\n",
			"sys/fs/cgroup/memory/memory.stat": "hierarchical_memory_limit 314572800\n",
		}, "sys/fs/cgroup/memory/memory.oom_control", "oom_kill 1\n", group},
		"the whole machine":                      {map[string]string{"proc/vmstat": "oom_kill 7\n"}, "proc/vmstat", "pgfault 1\noom_kill 8\n", machine},
		"too small to be killed for the machine": {map[string]string{"proc/vmstat": "oom_kill 7\n", "proc/meminfo": "MemTotal:  209715200 kB\n"}, "proc/vmstat", "oom_kill 8\n", ""},
		"somebody else":                          {map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.events": "oom_kill 3\n"}, "proc/x", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write := writer(t, root)
			write("proc/meminfo", "MemTotal:  2097152 kB\n")
			for file, text := range tt.files {
				write(file, text)
			}
			w, now := newOOMWatch(root), time.Now()
			w.refresh(now)
			if got := w.happened(gib, now); got != "" {
				t.Fatalf("before: %q", got)
			}
			write(tt.file, tt.text)
			now = now.Add(oomRefresh)
			w.refresh(now) // just after the kill, and before it is asked for
			if got := w.happened(gib, now); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			w.refresh(now.Add(oomRefresh)) // long ago
			if got := w.happened(gib, now); got != "" {
				t.Errorf("later: %q", got)
			}
		})
	}
}

// A rank's program may enter a control group of its own, whose kills are then counted.
func TestOutside(t *testing.T) {
	root := t.TempDir()
	write := writer(t, root)
	write("proc/meminfo", "MemTotal:  2097152 kB\n")
	write("proc/self/cgroup", "0::/a\n")
	write("proc/7/cgroup", "0::/a\n")
	write("proc/8/cgroup", "0::/b\n")
	for _, group := range []string{"a", "b"} {
		write("sys/fs/cgroup/"+group+"/memory.events", "oom_kill 3\n")
		write("sys/fs/cgroup/"+group+"/memory.max", "314572800\n")
	}
	all := newOOMWatch(root)
	if w := all.outside(root, 7); w != nil {
		t.Error("a rank in the launcher's group is outside of it")
	}
	w, now := all.outside(root, 8), time.Now()
	if w == nil {
		t.Fatal("a rank in another group is not outside of the launcher's")
	}
	w.refresh(now)
	write("sys/fs/cgroup/b/memory.events", "oom_kill 4\n")
	if got, want := w.happened(1<<30, now), "out of memory: killed by the kernel, using 1024 MiB; the limit of its control group is 300 MiB"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// writer writes files of a made-up machine, whose file system is at root.
func writer(t *testing.T, root string) func(file, text string) {
	return func(file, text string) {
		t.Helper()
		file = filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
