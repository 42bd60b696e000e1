// Package powercut says, for tests, what a power cut would take of what a function has
// written: it has strace watch the function's system calls, since nothing that a program
// can read tells what is on a disk.
//
// Two rules are checked. What is renamed has been synced before, contents and names: or
// the new name may outlive what it is the name of. And when the function has returned, all
// that it has made and not removed is synced: contents of files, and the folders that
// names of files and folders were made in.
package powercut

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// folderOf tells the process that is watched which folder to write into.
const folderOf = "EBTRAIN_TEST_POWERCUT_FOLDER"

// calls are the system calls that matter.
const calls = "trace=open,openat,creat,mkdir,mkdirat,write,pwrite64,ftruncate,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat,rmdir"

// Survives checks that what write does in an empty folder would survive a power cut: by
// the time of each rename, and in the end. It runs the test t alone in another process,
// where it calls write; so it is the only thing that t does.
func Survives(t *testing.T, write func(dir string) error) {
	t.Helper()
	if dir := os.Getenv(folderOf); dir != "" {
		if err := write(dir); err != nil {
			t.Fatal(err)
		}
		return
	}
	if text, err := exec.Command("strace", "-qq", "-e", "trace=fsync", "true").CombinedOutput(); err != nil {
		if err := write(t.TempDir()); err != nil {
			t.Fatal(err)
		}
		t.Skipf("strace is missing, or leave to trace, so what was written just now was not watched: %v %s", err, text)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "calls")
	cmd := exec.Command("strace", "-f", "-y", "-qq", "-s", "0", "-e", calls, "-o", log, self, "-test.run", "^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$")
	cmd.Env = append(os.Environ(), folderOf+"="+dir)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	d := newDisk(dir)
	for call := range complete(string(text)) {
		d.see(call)
	}
	if d.names == 0 {
		t.Error("nothing was written")
	}
	for _, name := range d.unsynced(dir) {
		d.wrong = append(d.wrong, "in the end a power cut would take "+name)
	}
	for _, w := range d.wrong {
		t.Error(strings.ReplaceAll(w, dir, "…"))
	}
}
