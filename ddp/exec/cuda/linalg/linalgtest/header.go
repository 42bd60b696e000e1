package linalgtest

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ebtrain/collective/cuda"
)

// Headers tests a CheckHeaders: a header as declared passes, one in which old is new
// is an error about want. files has abi.h, declarations with lists EB_NAME_CONSTANTS and
// EB_NAME_FUNCTIONS; the header is made of it, with the real names.
func Headers(t *testing.T, check func([]string) (string, error), files fs.FS, name, file string, differ [][3]string) {
	t.Helper()
	declarations, err := fs.ReadFile(files, "abi.h")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("needs a C compiler, cc")
	}
	if report, err := check([]string{t.TempDir()}); !errors.Is(err, cuda.ErrNotCompared) || !strings.Contains(err.Error(), "not found") {
		t.Errorf("of no header: %q, %v", report, err)
	}
	try := func(text string) (string, error) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, file), []byte(header(text, name)), 0o644); err != nil {
			t.Fatal(err)
		}
		return check([]string{t.TempDir(), dir})
	}
	if report, err := try(string(declarations)); err != nil || !strings.Contains(report, "as declared") {
		t.Errorf("of a header as declared: %q, %v", report, err)
	}
	for _, d := range differ {
		changed := strings.Replace(string(declarations), d[0], d[1], 1)
		if changed == string(declarations) {
			t.Fatalf("the declarations have no %q", d[0])
		}
		if report, err := try(changed); err == nil || !strings.Contains(err.Error(), d[2]) {
			t.Errorf("with %q: %q, %v, want an error about %s", d[1], report, err, d[2])
		}
	}
}

// header is declarations as a library's own header has them.
func header(declarations, name string) string {
	s := strings.NewReplacer("EB_##name", "name", "EB_"+name, "REAL_"+name, "EBTRAIN_", "REAL_", "EB_REAL", "UNREAL", "eb_", "real_").Replace(declarations)
	return s + "\n#define X(result, name, args) result name args;\nREAL_" + name + "_FUNCTIONS(X)\n#undef X\n"
}
