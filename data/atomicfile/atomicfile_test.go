package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.txt")
	if err := WriteBytes(path, []byte("one")); err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	err := Write(path, func(w io.Writer) error {
		if _, err := io.WriteString(w, "half"); err != nil {
			return err
		}
		return boom
	})
	if !errors.Is(err, boom) {
		t.Errorf("error %v, want %v", err, boom)
	}
	want(t, path, "one")
	if err := WriteBytes(path, []byte("two")); err != nil {
		t.Fatal(err)
	}
	want(t, path, "two")
	file, _ := usual(t)
	if st, err := os.Stat(path); err != nil || st.Mode() != file { // others may read it, unlike temporaries
		t.Errorf("%v, %v: want %v", st.Mode(), err, file)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v: want a.txt alone, without temporary files", entries, err)
	}
}

func TestWriteErrors(t *testing.T) {
	dir := t.TempDir()
	if err := WriteBytes(filepath.Join(dir, "none", "a"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing folder: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "d", "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := WriteBytes(filepath.Join(dir, "d"), nil); err == nil {
		t.Error("a folder was replaced by a file")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v: want d alone", entries, err)
	}
}

// What fails is said of the file that was asked for, also in what its writer says of it.
func TestErrorsNameTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.png")
	err := Write(path, func(w io.Writer) error {
		if err := w.(target).tmp.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := io.WriteString(w, "picture")
		return fmt.Errorf("encode: %w", err)
	})
	if err == nil || !strings.HasPrefix(err.Error(), "encode: write "+path+": file already closed") {
		t.Errorf("%v", err)
	}
	taken := filepath.Join(t.TempDir(), "b.png") // meanwhile, by a folder
	if err := Write(taken, func(io.Writer) error { return os.Mkdir(taken, 0o755) }); err == nil || err.Error() != "rename "+taken+": file exists" {
		t.Errorf("%v", err)
	}
	none := filepath.Join(path, "none")
	if err := WriteBytes(none, nil); err == nil || err.Error() != "open "+none+": no such file or directory" {
		t.Errorf("%v", err)
	}
}

// What a writer says of other files stays as it is.
func TestErrorsOfOtherFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.png")
	for _, other := range []error{
		&fs.PathError{Op: "read", Path: "b.png", Err: io.ErrUnexpectedEOF},
		&os.LinkError{Op: "link", Old: "b.png", New: "c.png", Err: fs.ErrExist},
	} {
		if err := Write(path, func(io.Writer) error { return other }); err == nil || err.Error() != other.Error() {
			t.Errorf("%v became %v", other, err)
		}
	}
}

func want(t *testing.T, path, s string) {
	t.Helper()
	if b, err := os.ReadFile(path); err != nil || string(b) != s {
		t.Errorf("%s holds %q, %v; want %q", path, b, err, s)
	}
}

// SyncPath goes by folders that cannot be synced, since the kernel makes their names, and
// says which is none.
func TestSyncPath(t *testing.T) {
	for _, dir := range []string{"/proc/self/task", t.TempDir(), "a", ".", ".."} {
		if err := SyncPath(dir); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if err := SyncDir("/proc/self/task"); err != nil {
		t.Error(err)
	}
	gone := filepath.Join(t.TempDir(), "gone")
	if err := SyncPath(filepath.Join(gone, "a")); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), gone) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// MakeDir makes what is missing of a path, and says what is in its way.
func TestMakeDir(t *testing.T) {
	base := t.TempDir()
	t.Chdir(base)
	for _, dir := range []string{filepath.Join(base, "a", "b", "c"), filepath.Join(base, "a", "b", "c"), "d/e", "."} {
		if err := MakeDir(dir); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
		if st, err := os.Stat(dir); err != nil || !st.IsDir() {
			t.Errorf("%s is not there: %v", dir, err)
		}
	}
	if err := os.WriteFile("file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := MakeDir("file/run"); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a folder in a file: %v", err)
	}
	if err := os.Symlink("nowhere", "link"); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"link", "link/run", "a/../link/run/x"} {
		if err := MakeDir(dir); err == nil || err.Error() != "link is a link to nowhere, which is not there" {
			t.Errorf("%s, where link leads nowhere: %v", dir, err)
		}
	}
	if err := errors.Join(os.Mkdir("nowhere", 0o755), MakeDir("link/run")); err != nil {
		t.Errorf("through a link: %v", err)
	}
}
