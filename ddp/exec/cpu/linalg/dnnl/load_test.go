//go:build cgo && !nodnnl

package dnnl

import (
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// write makes a file of the given contents.
func write(t *testing.T, name, contents string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(contents), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// library compiles a shared library.
func library(t *testing.T, source string) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("needs a C compiler, to make libraries that are not oneDNN")
	}
	path := filepath.Join(t.TempDir(), "libdnnl.so")
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-o", path, write(t, "fake.c", source)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// TestUnusable: a library that is missing or wrong is one typed error that says
// what is wrong with it.
func TestUnusable(t *testing.T) {
	const version = `
		struct { int major, minor, patch; const char *hash; unsigned cpu, gpu; } v = {MAJOR, 4, 5};
		void *dnnl_version(void) { return &v; }`
	ours := strings.NewReplacer("MAJOR", string(rune('0'+major)))
	for _, c := range []struct {
		name, library, want string
		missing             bool
	}{
		{"missing", "/nowhere/libdnnl.so.9", "/nowhere/libdnnl.so.9 was not found: mend or unset EBTRAIN_LIBDNNL", true},
		{"no library", write(t, "libdnnl.so", "text"), "file too short", false},
		{"another library", library(t, "int x;"), "it has no function dnnl_version", false},
		{"another version", library(t, strings.Replace(version, "MAJOR", "9", 1)), "it is oneDNN 9.4.5, and this program was built for oneDNN ", false},
		{"incomplete", library(t, ours.Replace(version)), "it has no function dnnl_get_effective_cpu_isa", false},
		{"without what it needs", library(t, "void absent(void); void f(void) { absent(); }"), "undefined symbol: absent", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(LibraryVariable, c.library)
			e, err := New(1)
			var unusable *LibraryError
			if e != nil || !errors.As(err, &unusable) {
				t.Fatalf("got %v, %v, want a LibraryError", e, err)
			}
			if unusable.Library != c.library || unusable.Missing != c.missing || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %+v, %q, want %q, missing %t", *unusable, err, c.want, c.missing)
			}
		})
	}
}

// TestFirst: the first library that can be used is taken, and without one the
// error is about one that is there, or the first.
func TestFirst(t *testing.T) {
	broken := write(t, "libdnnl.so", "text")
	for _, c := range []struct {
		names []string
		want  string
	}{
		{[]string{"libnone.so.1", "libnone.so.2"}, "libnone.so.1 was not found: " + advice()},
		{[]string{"libnone.so.1", broken, "libnone.so.2"}, broken + " cannot be used"},
		{append([]string{"libnone.so.1", broken}, names()...), ""},
	} {
		api, err := first(c.names)
		if c.want == "" && (api == nil || err != nil) || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%q: got %v, %v, want %q", c.names, api, err, c.want)
		}
	}
	if !strings.Contains(advice(), "install") {
		t.Errorf("the advice is %q, want what to install", advice())
	}
}

// TestLoadedLate: the program itself names neither library, so it starts where
// they are not.
func TestLoadedLate(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	needs, err := f.ImportedLibraries()
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(needs, func(n string) bool { return strings.Contains(n, "dnnl") || strings.Contains(n, "omp") }); i >= 0 {
		t.Errorf("the program needs %s", needs[i])
	}
}

// TestSpins: libgomp, which says what it found in its environment when it was
// loaded, found what New put there, or what the user did.
func TestSpins(t *testing.T) {
	for _, c := range []struct{ name, set, want string }{
		{"nobody says", "", "GOMP_SPINCOUNT = '1000'"},
		{"empty", "GOMP_SPINCOUNT=", "GOMP_SPINCOUNT = '1000'"},
		{"the user counts", "GOMP_SPINCOUNT=77", "GOMP_SPINCOUNT = '77'"},
		{"the user waits", "OMP_WAIT_POLICY=ACTIVE", "OMP_WAIT_POLICY = 'ACTIVE'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStart$")
			cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GOMP_") || strings.HasPrefix(v, "OMP_") })
			cmd.Env = append(cmd.Env, "OMP_DISPLAY_ENV=VERBOSE")
			if c.set != "" {
				cmd.Env = append(cmd.Env, c.set)
			}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if !strings.Contains(string(out), "GOMP_SPINCOUNT") {
				t.Skip("this oneDNN runs on another OpenMP than GNU's")
			}
			if !strings.Contains(string(out), c.want) || c.set != "" && c.want != "GOMP_SPINCOUNT = '1000'" && strings.Contains(string(out), "SPINCOUNT = '1000'") {
				t.Errorf("want %s in\n%s", c.want, out)
			}
		})
	}
}

func TestStart(t *testing.T) {
	e, err := New(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// TestTeam: where OpenMP gives fewer threads than a team has, for which oneDNN's would wait for
// ever, it is not used, and the error says what to unset. By the load of the machine OpenMP
// does not choose.
func TestTeam(t *testing.T) {
	const refused = "oneDNN cannot be used: OpenMP gives it 1 of "
	for set, want := range map[string]string{
		"OMP_DYNAMIC=true": "", "OMP_THREAD_LIMIT=3": "", "OMP_THREAD_LIMIT=1": refused, "OMP_MAX_ACTIVE_LEVELS=0": refused,
	} {
		t.Run(set, func(t *testing.T) {
			// Gradients of weights, in which the threads meet.
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestConformance$/conv/grad_w/k3s1p1_odd", "-test.timeout=1m", "-test.v")
			cmd.Env = append(os.Environ(), set)
			out, err := cmd.CombinedOutput()
			if (err == nil) != (want == "") || !strings.Contains(string(out), want) || want == "" && !strings.Contains(string(out), "PASS: TestConformance/conv/grad_w/k3s1p1_odd") {
				t.Errorf("%v, want %q in\n%s", err, want, out)
			}
		})
	}
}
