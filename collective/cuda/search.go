package cuda

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// LibsVariable names folders in the environment that are searched before all
// others, separated by colons. A last element "-" ends the search there.
const LibsVariable = "EBTRAIN_CUDA_LIBS"

// place is where a family may lie: a folder, or "" for where the dynamic linker
// searches.
type place struct {
	folder string
	asked  bool // by the user: what is there must work
}

// machine is what the search looks at; tests give another one.
type machine struct {
	getenv func(string) string
	root   string // in front of every absolute path of the system, "" usually
	home   string
	arch   string        // as Go calls it
	python func() string // python3 on PATH, or ""
}

func thisMachine() machine {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // nothing of the user's, then
	}
	return machine{getenv: os.Getenv, home: home, arch: runtime.GOARCH, python: func() string {
		p, err := exec.LookPath("python3")
		if err != nil {
			return ""
		}
		return p
	}}
}

// places lists where to look for a family, in order: what the user says, pip's
// packages, conda's, the dynamic linker's folders, CUDA's own.
func (m machine) places(s spec) []place {
	var out []place
	add := func(folders ...string) {
		for _, f := range folders {
			if !slices.ContainsFunc(out, func(p place) bool { return p.folder == f }) {
				out = append(out, place{folder: f})
			}
		}
	}
	asked, only := m.asked()
	for _, f := range asked {
		out = append(out, place{folder: f, asked: true})
	}
	if only {
		return out
	}
	if len(s.pip) > 0 {
		for _, site := range m.sites() {
			for _, p := range s.pip {
				add(filepath.Join(site, p))
			}
		}
		if prefix := m.getenv("CONDA_PREFIX"); prefix != "" {
			add(filepath.Join(prefix, "lib"))
			add(m.targets(prefix)...)
		}
	}
	add("")
	for _, f := range s.extra {
		add(m.root + f)
	}
	if len(s.pip) > 0 {
		for _, root := range []string{m.getenv("CUDA_HOME"), m.getenv("CUDA_PATH"), m.root + "/usr/local/cuda"} {
			if root != "" {
				add(filepath.Join(root, "lib64"))
				add(m.targets(root)...)
			}
		}
	}
	return out
}

// targets are the folders of this processor's libraries in a toolkit: servers with Arm
// processors have one (sbsa), boards (Jetson) another.
func (m machine) targets(toolkit string) []string {
	names := []string{"x86_64-linux"}
	if m.arch == "arm64" {
		names = []string{"sbsa-linux", "aarch64-linux"}
	}
	for i, n := range names {
		names[i] = filepath.Join(toolkit, "targets", n, "lib")
	}
	return names
}

// asked are the user's folders, and whether no others are searched.
func (m machine) asked() (folders []string, only bool) {
	for _, f := range filepath.SplitList(m.getenv(LibsVariable)) {
		switch f {
		case "":
		case "-":
			return folders, true
		default:
			folders = append(folders, f)
		}
	}
	return folders, false
}

// sites lists the site-packages of the Pythons that are there, without running
// any: the environment's, the one on PATH, the user's, the system's.
func (m machine) sites() []string {
	var out []string
	add := func(patterns ...string) {
		for _, p := range patterns {
			found, err := filepath.Glob(p)
			if err != nil {
				continue // a prefix with brackets in it, which is no pattern
			}
			slices.SortFunc(found, func(a, b string) int { return compareVersions(b, a) })
			for _, f := range found {
				if !slices.Contains(out, f) {
					out = append(out, f)
				}
			}
		}
	}
	for _, prefix := range m.prefixes() {
		add(filepath.Join(prefix, "lib/python3.*/site-packages"), filepath.Join(prefix, "lib64/python3.*/site-packages"))
	}
	if m.home != "" {
		add(filepath.Join(m.home, ".local/lib/python3.*/site-packages"))
	}
	add(m.root+"/usr/local/lib/python3.*/dist-packages", m.root+"/usr/lib/python3*/dist-packages",
		m.root+"/usr/local/lib/python3.*/site-packages", m.root+"/usr/lib/python3.*/site-packages")
	return out
}

// prefixes are the folders that Pythons are installed in. A virtual
// environment's python is a symlink to another's, so both are looked at.
func (m machine) prefixes() []string {
	var out []string
	add := func(p string) {
		if p != "" && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	add(m.getenv("VIRTUAL_ENV"))
	add(m.getenv("CONDA_PREFIX"))
	if python := m.python(); python != "" {
		add(filepath.Dir(filepath.Dir(python)))
		if real, err := filepath.EvalSymlinks(python); err == nil {
			add(filepath.Dir(filepath.Dir(real)))
		}
	}
	return out
}

// compareVersions orders names with numbers in them: python3.9 before
// python3.12.
func compareVersions(a, b string) int {
	for a != "" && b != "" {
		x, y := number(a), number(b)
		if x == "" || y == "" {
			if a[0] != b[0] {
				return int(a[0]) - int(b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		a, b = a[len(x):], b[len(y):]
		x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
		if len(x) != len(y) {
			return len(x) - len(y)
		}
		if c := strings.Compare(x, y); c != 0 {
			return c
		}
	}
	return len(a) - len(b)
}

// number is the run of digits that s begins with.
func number(s string) string {
	return s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]
}
