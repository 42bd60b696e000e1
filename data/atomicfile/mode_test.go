package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// writeUnder is the process of TestUmask: it writes in dir what this package can write.
func writeUnder(dir string, umask int) error {
	syscall.Umask(umask)
	if err := WriteBytes(filepath.Join(dir, "file"), nil); err != nil {
		return err
	}
	if err := MakeDir(filepath.Join(dir, "made", "within")); err != nil {
		return err
	}
	f, err := NewFolder(filepath.Join(dir, "folder"))
	if err != nil {
		return err
	}
	if err := WriteBytes(filepath.Join(f.Temporary(), "file"), nil); err != nil {
		return err
	}
	return f.Place()
}

// Who may read and write what is written is what the user's umask says, as of any file.
func TestUmask(t *testing.T) {
	for _, umask := range []fs.FileMode{0o077, 0o002, 0o022} {
		t.Run(fmt.Sprintf("%03o", umask), func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), "ATOMICFILE_TEST_WRITE="+dir, "ATOMICFILE_TEST_UMASK="+strconv.FormatUint(uint64(umask), 8))
			if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
				t.Fatalf("%s, %v", out, err)
			}
			for name, all := range map[string]fs.FileMode{
				"file": 0o666, "folder/file": 0o666, "folder": 0o777, "made": 0o777, "made/within": 0o777,
			} {
				if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Mode().Perm() != all&^umask {
					t.Errorf("%s: %v, %v; want %v", name, st.Mode().Perm(), err, all&^umask)
				}
			}
		})
	}
}

// usual are the modes of a file and of a folder that all may use as far as this process's
// umask lets them.
func usual(t *testing.T) (file, folder fs.FileMode) {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "file"), nil, 0o666), os.Mkdir(filepath.Join(dir, "folder"), 0o777)); err != nil {
		t.Fatal(err)
	}
	mode := func(name string) fs.FileMode {
		st, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return st.Mode()
	}
	return mode("file"), mode("folder")
}
