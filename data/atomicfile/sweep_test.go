package atomicfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
)

// TestMain lets the test binary be a writer that never ends, of a file or of a folder, or
// one with another umask.
func TestMain(m *testing.M) {
	if path := os.Getenv("ATOMICFILE_TEST_WRITE"); path != "" {
		if umask, err := strconv.ParseUint(os.Getenv("ATOMICFILE_TEST_UMASK"), 8, 16); err == nil {
			if err := writeUnder(path, int(umask)); err != nil {
				fmt.Println(err)
			}
			os.Exit(0)
		}
		if err := hang(path, os.Getenv("ATOMICFILE_TEST_FOLDER") != ""); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func hang(path string, folder bool) error {
	wait := func() error {
		fmt.Println("writing")
		_, err := io.Copy(io.Discard, os.Stdin) // never closed
		return err
	}
	if !folder {
		return Write(path, func(io.Writer) error { return wait() })
	}
	f, err := NewFolder(path)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(f.Temporary(), "a"), nil, 0o644); err != nil {
		return err
	}
	return wait()
}

// writer starts a process that is writing path; kill ends it by SIGKILL.
func writer(t *testing.T, path, folder string) (kill func()) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), "ATOMICFILE_TEST_WRITE="+path, "ATOMICFILE_TEST_FOLDER="+folder)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "writing\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // killed
		_ = in.Close()
	}
}

// The temporaries of a killed writer are removed by the next, those of a living
// one are not.
func TestKilledWriter(t *testing.T) {
	for _, folder := range []string{"", "folder"} {
		t.Run("folder="+folder, func(t *testing.T) {
			dir := t.TempDir()
			kill := writer(t, filepath.Join(dir, "slow"), folder)
			if err := WriteBytes(filepath.Join(dir, "quick"), nil); err != nil {
				t.Fatal(err)
			}
			names := list(t, dir)
			if len(names) != 2 || !IsTemporary(names[0]) {
				t.Fatalf("while it writes: %v, want its temporary and quick", names)
			}
			kill()
			if err := WriteBytes(filepath.Join(dir, "quick"), nil); err != nil {
				t.Fatal(err)
			}
			if names := list(t, dir); !slices.Equal(names, []string{"quick"}) {
				t.Errorf("after its death: %v, want quick", names)
			}
		})
	}
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Only what is certainly a temporary is removed.
func TestSweepLeavesOthers(t *testing.T) {
	dir := t.TempDir()
	keep := []string{
		".a.tmp", ".a.tmp-", ".a.tmp-x", ".tmp-1-2", ".tmp-a-1-2", "a.tmp-1-2",
		".draft.tmp-1", ".backup.tmp-2024", ".backup.tmp-2024.old", ".backup.tmp-2024-03", ".backup.tmp-20240301-120000123456",
	}
	gone := []string{".a.tmp-17-34", ".a.b.tmp-1-1", ".a.tmp-4194304-4294967295", ".a.tmp-17-0"}
	for _, name := range slices.Concat(keep, gone) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, ".a.tmp"), filepath.Join(dir, ".link.tmp-1-1")); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(dir); err != nil {
		t.Fatal(err)
	}
	if got, want := list(t, dir), slices.Sorted(slices.Values(append(keep, ".link.tmp-1-1"))); !slices.Equal(got, want) {
		t.Errorf("left %v, want %v", got, want)
	}
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "set")
	_, folder := usual(t)
	for _, content := range []string{"one", "two"} {
		f, err := NewFolder(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(f.Temporary(), "a"), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := f.Place(); err != nil {
			t.Fatal(err)
		}
		want(t, filepath.Join(path, "a"), content)
		if st, err := os.Stat(path); err != nil || st.Mode() != folder { // others may read it, unlike temporaries
			t.Errorf("%v, %v: want %v", st.Mode(), err, folder)
		}
		if names := list(t, dir); !slices.Equal(names, []string{"set"}) {
			t.Errorf("%v, want set alone", names)
		}
	}
	f, err := NewFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Discard(); err != nil {
		t.Fatal(err)
	}
	if names := list(t, dir); !slices.Equal(names, []string{"set"}) {
		t.Errorf("after Discard: %v, want set alone", names)
	}
}

// A writer that dies between the two renames of place has replaced nothing.
func TestKilledWhileReplacing(t *testing.T) {
	dir := t.TempDir()
	tmp := filepath.Join(dir, ".set.tmp-1-1")
	put := func(folder, content string) {
		t.Helper()
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "a"), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put(tmp, "new")
	put(tmp+oldSuffix, "old")
	for range 2 {
		if err := Sweep(dir); err != nil {
			t.Fatal(err)
		}
		want(t, filepath.Join(dir, "set", "a"), "old")
		if names := list(t, dir); !slices.Equal(names, []string{"set"}) {
			t.Errorf("%v, want set alone", names)
		}
		put(tmp+oldSuffix, "older") // of one that died after the second rename
	}
}

// A writer that lives is left alone between the two renames of place, too.
func TestSweepBetweenRenames(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "set")
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := NewFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Discard() }() // nobody looks at it any more
	if err := os.Rename(path, f.Temporary()+oldSuffix); err != nil {
		t.Fatal(err)
	}
	before := list(t, dir)
	if err := Sweep(dir); err != nil {
		t.Fatal(err)
	}
	if names := list(t, dir); !slices.Equal(names, before) {
		t.Errorf("%v, want %v", names, before)
	}
}

// Where the new folder is placed just when the old one is to be put back, the old one stays
// for its writer to remove, and nobody hears of it.
func TestPutBackTooLate(t *testing.T) {
	dir := t.TempDir()
	old, path := filepath.Join(dir, ".set.tmp-1-1.old"), filepath.Join(dir, "set")
	for _, file := range []string{filepath.Join(old, "index"), filepath.Join(path, "index")} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(file), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := putBack(old, path); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(filepath.Join(path, "index")); err != nil || string(b) != filepath.Join(path, "index") {
		t.Errorf("the new one holds %q (%v)", b, err)
	}
}

func FuzzIsTemporary(f *testing.F) {
	f.Add(".a.tmp-1-2")
	f.Add(".a.tmp-1-2.old")
	f.Add("a")
	f.Fuzz(func(t *testing.T, name string) {
		if IsTemporary(name) && (name[0] != '.' || len(name) < len(".x.tmp-1-1")) {
			t.Errorf("%q", name)
		}
	})
}

// A folder that cannot be placed leaves the old one in its place.
func TestFolderThatCannotBePlaced(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "set")
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "a"), []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := NewFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(f.Temporary()); err != nil { // so the second rename fails
		t.Fatal(err)
	}
	if err := f.Place(); err == nil {
		t.Error("a folder that is gone was placed")
	}
	want(t, filepath.Join(path, "a"), "old")
	if names := list(t, dir); !slices.Equal(names, []string{"set"}) {
		t.Errorf("%v, want set alone", names)
	}
}

// Whether a temporary is still there cannot always be told: that is an error, and not as if
// it had been swept, upon which another would be made, again and again.
func TestLockOfWhatCannotBeSeen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	f, err := create(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	if locked, err := lock(f); !locked || err != nil {
		t.Errorf("one that is there: %v, %v", locked, err)
	}
	if err := errors.Join(os.Rename(dir, dir+".old"), os.WriteFile(dir, nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	if locked, err := lock(f); locked || !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("one in what is no folder: %v, %v", locked, err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if locked, err := lock(f); locked || err != nil {
		t.Errorf("one that is gone: %v, %v", locked, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
