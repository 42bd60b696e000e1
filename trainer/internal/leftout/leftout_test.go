package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// module is a module with all that may happen to tests.
var module = map[string]string{
	"go.mod": "module m\n",
	"none/a.go": `package none
`,
	"broken/a_test.go": `package broken
var x int = "a word"
`,
	"skips/a_test.go": `package skips
import "testing"
func TestPasses(t *testing.T) { t.Log("passes: not shown") }
func TestSkips(t *testing.T) { t.Log("before"); t.Skip("needs <tc> & root") }
func TestParent(t *testing.T) { t.Run("child", func(t *testing.T) { t.Skip("needs <tc> & root") }) }
func TestLines(t *testing.T) { t.Skip("needs it:\nexit status 1") }
func TestSilent(t *testing.T) { t.SkipNow() }
`,
	"fails/a_test.go": `package fails
import ("fmt"; "testing")
func TestPasses(t *testing.T) { t.Log("passes: not shown") }
func TestSkips(t *testing.T) { t.Skip("needs <tc> & root") }
func TestParent(t *testing.T) {
	t.Run("good", func(t *testing.T) { t.Log("passes: not shown") })
	t.Run("bad", func(t *testing.T) { fmt.Println("printed"); t.Error("wrong") })
}
`,
	"panics/a_test.go": `package panics
import "testing"
func TestPanics(t *testing.T) { t.Log("on the way"); panic("no more") }
`,
	"exits/a_test.go": `package exits
import ("os"; "testing")
func TestMain(*testing.M) { os.Exit(3) }
`,
	"races/a_test.go": `package races
import "testing"
func TestRaces(t *testing.T) { t.Log("WARNING: DATA RACE"); t.Fail() }
`,
}

// tested is what go test -json writes of packages of that module, some of which fail.
func tested(t *testing.T, packages ...string) []byte {
	t.Helper()
	dir := t.TempDir()
	for name, text := range module {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"test", "-json", "-count=1", "-vet=off"}, packages...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	events, err := cmd.Output()
	if err == nil {
		t.Fatal("go test succeeds, with failing tests")
	}
	return events
}

// TestShown runs go test on that module: what failed is shown, what passed is not, and
// what was skipped is counted by its sentence.
func TestShown(t *testing.T) {
	events := tested(t, "./...")
	var out bytes.Buffer
	file := filepath.Join(t.TempDir(), "left")
	if err := run([]string{file, os.DevNull}, bytes.NewReader(events), &out); err != nil {
		t.Fatal(err)
	}
	shown := out.String()
	for _, want := range []string{
		"?   \tm/none\t[no test files]\n", "ok  \tm/skips\t", "FAIL\tm/exits\t", "FAIL\tm/fails\t", "FAIL\tm/panics\t", "FAIL\tm/broken [build failed]\n",
		"cannot use", // of the compiler
		"printed\n    a_test.go:7: wrong\n", "--- FAIL: TestParent/bad ", "--- FAIL: TestParent ",
		"a_test.go:3: on the way\n", "panic: no more",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("not shown: %q", want)
		}
	}
	for _, not := range []string{"not shown", "needs", "===", "PASS", "Action"} {
		if strings.Contains(shown, not) {
			t.Errorf("shown: %q", not)
		}
	}
	if t.Failed() {
		t.Log(shown)
	}
	left, err := os.ReadFile(file)
	want := "   3  needs <tc> & root (m/fails, m/skips)\n   1  needs it: exit status 1 (m/skips)\n   1  no reason is given (m/skips)\n"
	if err != nil || string(left) != want {
		t.Errorf("left out: got\n%s%v\nexpected\n%s", left, err, want)
	}
}

// TestAgain: of what may have failed by chance the tests are named that did, or the package
// is, where others were not run. Where something does not compile, or races, or much fails,
// nothing is run again.
func TestAgain(t *testing.T) {
	for _, of := range []struct {
		packages []string
		want     string
	}{
		{[]string{"./exits", "./fails", "./panics", "./skips", "./none"}, "m/exits \nm/fails -run=^(TestParent)$\nm/panics \n"},
		{[]string{"./fails", "./broken"}, ""},
		{[]string{"./fails", "./races"}, ""},
	} {
		file := filepath.Join(t.TempDir(), "again")
		if err := run([]string{os.DevNull, file}, bytes.NewReader(tested(t, of.packages...)), io.Discard); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != of.want {
			t.Errorf("of %v: got %q, %v, expected %q", of.packages, got, err, of.want)
		}
	}
	many := failures{}
	for _, pkg := range []string{"a", "b", "c"} {
		many.test(pkg, "TestA/one")
		many.test(pkg, "TestB")
		many.test(pkg, "TestA")
		many.end(pkg, false, nil)
	}
	if got, want := many.again(), "a -run=^(TestA|TestB)$\nb -run=^(TestA|TestB)$\nc -run=^(TestA|TestB)$\n"; got != want {
		t.Errorf("of three packages: got %q, expected %q", got, want)
	}
	many.end("d", false, nil)
	if got := many.again(); got != "" {
		t.Errorf("of four packages: got %q, expected nothing", got)
	}
	lost := failures{}
	lost.end("a", true, nil)
	if got := lost.again(); got != "" {
		t.Errorf("of a package that never ended: got %q, expected nothing", got)
	}
}

// TestCutOff: of a go test that was killed all is shown that was not known to be well, and
// what is no event as it is.
func TestCutOff(t *testing.T) {
	const in = `{"Action":"output","Package":"m","Test":"TestA","Output":"began\n"}
go: not JSON
{"Action":"output","Package":"m","Test":"TestB","Output":"--- PASS: TestB (0.00s)\n"}
{"Action":"pass","Package":"m","Test":"TestB"}
{"Action":"out`
	var out bytes.Buffer
	v := newView(&out)
	if err := v.read(strings.NewReader(in)); err != nil {
		t.Fatal(err)
	}
	if want := "go: not JSON\n{\"Action\":\"outbegan\n"; out.String() != want || v.summary() != "" {
		t.Errorf("got %q and %q, expected %q and nothing", out.String(), v.summary(), want)
	}
}
