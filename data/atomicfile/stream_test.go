package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// puts is text, whatever is written before and after it.
func puts(t *testing.T, path string) {
	t.Helper()
	err := errors.Join(CheckPut(path), Put(path, func(w io.Writer) error {
		_, err := io.WriteString(w, "report\n")
		return err
	}))
	if err != nil {
		t.Errorf("%s: %v", path, err)
	}
}

// What this process puts out goes on behind what is in it, a file though it is, by whatever
// name: --json /dev/stdout > FILE had left the report alone in FILE.
func TestPutIntoOutput(t *testing.T) {
	usual := os.Stdout
	defer func() { os.Stdout = usual }()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout = out
	_, before := fmt.Println("table")
	puts(t, out.Name())
	puts(t, fmt.Sprintf("/proc/self/fd/%d", out.Fd()))
	_, after := fmt.Println("end")
	if err := errors.Join(before, after, out.Close()); err != nil {
		t.Fatal(err)
	}
	want(t, out.Name(), "table\nreport\nreport\nend\n")
}

// A pipe gets what is written as it comes, a file is replaced, and what can be neither is said.
func TestPut(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	puts(t, fmt.Sprintf("/proc/self/fd/%d", w.Fd()))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(r); err != nil || string(text) != "report\n" {
		t.Errorf("through the pipe came %q, %v", text, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("an old one, which is longer"), 0o600); err != nil {
		t.Fatal(err)
	}
	puts(t, file)
	want(t, file, "report\n")
	if err := Put(file, func(io.Writer) error { return io.ErrShortWrite }); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("what cannot be written: %v", err)
	}
	want(t, file, "report\n")
	if err := CheckPut(filepath.Dir(file)); err == nil {
		t.Error("a folder may be written")
	}
}
