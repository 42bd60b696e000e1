package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
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

func want(t *testing.T, path, s string) {
	t.Helper()
	if b, err := os.ReadFile(path); err != nil || string(b) != s {
		t.Errorf("%s holds %q, %v; want %q", path, b, err, s)
	}
}
