package archtest

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestMakeHelp: make help lists every target that says what it does.
func TestMakeHelp(t *testing.T) {
	m := newMaker(t)
	text, err := os.ReadFile(m.file)
	if err != nil {
		t.Fatal(err)
	}
	help := m.must("help")
	targets := regexp.MustCompile(`(?m)^([^\s:#]+):.*##`).FindAllStringSubmatch(string(text), -1)
	if len(targets) < 10 {
		t.Fatalf("found %d targets in the Makefile, expected 10 or more", len(targets))
	}
	for _, target := range targets {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(target[1]) + ` `).MatchString(help) {
			t.Errorf("make help leaves out %s:\n%s", target[1], help)
		}
	}
}

// TestMakeFuzz: make fuzz goes through all packages, those without targets too, and fails
// where one cannot be listed, built or fuzzed.
func TestMakeFuzz(t *testing.T) {
	m := newMaker(t)
	m.tool("go", `case "$*" in
list*) [ "$BAD" = list ] && exit 1; printf 'p/none\np/last\n' ;;
*-list*p/none) echo 'ok p/none 0.1s' ;;
*-list*) [ "$BAD" = build ] && { echo 'FAIL p/last [build failed]'; exit 1; }; echo FuzzIt; echo 'ok p/last 0.1s' ;;
*-fuzz*) [ "$BAD" = fuzz ] && exit 1; echo "fuzzed $*" ;;
esac`)
	if out := m.must("-o", "deps", "fuzz"); !strings.Contains(out, "== p/last FuzzIt\nfuzzed ") || strings.Count(out, "fuzzed") != 1 {
		t.Errorf("make fuzz: got %q, expected FuzzIt of p/last fuzzed once", out)
	}
	for _, bad := range []string{"list", "build", "fuzz"} {
		m.env["BAD"] = bad
		if out, err := m.make("-o", "deps", "fuzz"); err == nil {
			t.Errorf("make fuzz succeeds where go fails (%s): %q", bad, out)
		}
	}
}

// TestMakeGO: what recipes start finds the Go that GO names, by a path or as a command,
// with its gofmt, and the programs of Slurm and iproute2, which Debian puts where the
// PATH of users does not reach.
func TestMakeGO(t *testing.T) {
	m := newMaker(t)
	root := t.TempDir()
	executable(t, filepath.Join(root, "bin/go"), "")
	executable(t, filepath.Join(root, "bin/gofmt"), "")
	m.tool("go1.99", `[ "$*" = 'env GOROOT' ] && echo `+root)
	for _, name := range []string{filepath.Join(m.tools, "go1.99"), "go1.99"} {
		out := m.must("--eval", "paths: ; @command -v go gofmt; echo $$PATH", "paths", "GO="+name)
		found := fmt.Sprintf("%s/bin/go\n%s/bin/gofmt\n", root, root)
		if !strings.HasPrefix(out, found) || !strings.HasSuffix(out, ":/usr/sbin:/sbin\n") {
			t.Errorf("GO=%s: recipes find and have as PATH\n%sexpected\n%s...:/usr/sbin:/sbin", name, out, found)
		}
	}
}

// TestGPUCheckCommit: the commit in gpucheck's report says so if the tree was changed.
func TestGPUCheckCommit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is missing, of which the rule asks the commit; the other tests of the Makefile run")
	}
	m := newMaker(t)
	m.tool("go", `mkdir -p bin; printf '#!/bin/sh\n' >bin/gpucheck; chmod +x bin/gpucheck; echo "$*"`)
	text, err := os.ReadFile(m.file)
	if err != nil {
		t.Fatal(err)
	}
	m.dir = tree(t, map[string]string{"Makefile": string(text)})
	m.file = filepath.Join(m.dir, "Makefile")
	git := func(args ...string) string {
		t.Helper()
		return m.run("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
	}
	git("init", "-q")
	git("add", "Makefile")
	git("commit", "-q", "-m", "first")
	git("tag", "-a", "-m", "a release", "v1")
	head := strings.TrimSpace(git("rev-parse", "HEAD"))
	if out := m.must("gpu-check"); !strings.Contains(out, "-X main.commit="+head+" ") {
		t.Errorf("a clean tree: %sexpected main.commit=%s", out, head)
	}
	if err := os.WriteFile(m.file, append(text, "# changed\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	if out := m.must("gpu-check"); !strings.Contains(out, "-X main.commit="+head+"+modified ") {
		t.Errorf("a changed tree: %sexpected main.commit=%s+modified", out, head)
	}
}

// TestDeps: .ci/deps says of everything that tests need and that is not here, and cannot
// be installed, what is left out without it.
func TestDeps(t *testing.T) {
	m := newMaker(t)
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs bash")
	}
	m.env["PATH"] = m.tools
	m.tool("ip", "") // of busybox, without tc
	out := m.run(bash, ".ci/deps", "tests")
	for _, want := range []string{"tests of several hosts", "tests of what a power cut leaves", "tests of Slurm", "tests of mpiexec or mpirun", "kernels are not read as C++"} {
		if !strings.Contains(out, want) {
			t.Errorf("not a word of %q:\n%s", want, out)
		}
	}
}

// maker runs make, with tools of the test's own before all others on PATH.
type maker struct {
	t     *testing.T
	file  string // the Makefile
	dir   string // where it runs
	tools string // folder of the tools
	env   map[string]string
}

func newMaker(t *testing.T) *maker {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("needs make")
	}
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	m := &maker{t: t, file: filepath.Join(root, "Makefile"), dir: root, tools: t.TempDir()}
	// Nothing of a make that runs this test.
	m.env = map[string]string{"PATH": m.tools + ":" + os.Getenv("PATH"), "HOME": m.tools}
	return m
}

// tool adds a program, a script of sh.
func (m *maker) tool(name, script string) {
	m.t.Helper()
	executable(m.t, filepath.Join(m.tools, name), script)
}

func executable(t *testing.T, path, script string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// make is what make writes.
func (m *maker) make(args ...string) (string, error) {
	return m.start("make", append([]string{"--no-print-directory", "-f", m.file}, args...)...)
}

func (m *maker) must(args ...string) string {
	m.t.Helper()
	out, err := m.make(args...)
	if err != nil {
		m.t.Fatalf("make %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (m *maker) start(name string, args ...string) (string, error) {
	cmd := exec.CommandContext(m.t.Context(), name, args...)
	cmd.Dir = m.dir
	for _, key := range slices.Sorted(maps.Keys(m.env)) {
		cmd.Env = append(cmd.Env, key+"="+m.env[key])
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (m *maker) run(name string, args ...string) string {
	m.t.Helper()
	out, err := m.start(name, args...)
	if err != nil {
		m.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}
