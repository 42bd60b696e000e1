package powercut

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// What each log of calls would lose: the two rules, calls in two parts, and paths from a
// folder that is open.
func TestRules(t *testing.T) {
	tests := []struct {
		name, log string
		wrong     []string // so many renames too early
		lost      []string // in the end
	}{
		{"synced", `
1 openat(AT_FDCWD</>, "/d/a", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 3</d/a>
1 write(3</d/a>, ""..., 5) = 5
1 fsync(3</d/a>) = 0
1 openat(AT_FDCWD</>, "/d", O_RDONLY) = 3</d>
1 fsync(3</d>) = 0`, nil, nil},
		{"contents after the sync", `
1 openat(AT_FDCWD</>, "/d/a", O_WRONLY|O_CREAT, 0644) = 3</d/a>
1 fsync(3</d/a>) = 0
1 write(3</d/a>, ""..., 5) = 5
1 fsync(4</d>) = 0`, nil, []string{"/d/a"}},
		{"the sync failed", `
1 write(3</d/a>, ""..., 5) = 5
1 fsync(3</d/a>) = -1 EIO (Input/output error)`, nil, []string{"/d/a"}},
		{"name", `
1 mkdirat(AT_FDCWD</>, "/d/e", 0755) = 0`, nil, []string{"/d"}},
		{"renamed too early", `
1 write(3</d/.a>, ""..., 5) = 5
1 renameat(AT_FDCWD</>, "/d/.a", AT_FDCWD</>, "/d/a") = 0
1 fsync(3</d>) = 0`, []string{"/d/.a is renamed to /d/a before /d/.a is synced"}, nil},
		{"folder renamed too early", `
1 mkdirat(AT_FDCWD</>, "/d/.e/f", 0755) = 0
1 rename("/d/.e", "/d/e") = 0
1 fsync(3</d>) = 0`, []string{"/d/.e is renamed to /d/e before /d/.e is synced"}, nil},
		{"two threads", `
1 write(3</d/a>, ""..., 5) = 5
1 fsync(3</d/a> <unfinished ...>
2 write(4</d/b>, ""..., 5) = 5
1 <... fsync resumed>) = 0`, nil, []string{"/d/b"}},
		{"removed", `
1 write(3</d/e/a>, ""..., 5) = 5
1 unlinkat(5</d/e>, "a", 0) = 0`, nil, nil},
		{"elsewhere", `
1 openat(AT_FDCWD</>, "/dd/a", O_WRONLY|O_CREAT, 0644) = 3</dd/a>
1 write(1<pipe:[7]>, ""..., 5) = 5`, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newDisk("/d")
			for c := range complete(tt.log) {
				d.see(c)
			}
			if got := d.unsynced("/d"); !slices.Equal(d.wrong, tt.wrong) || !slices.Equal(got, tt.lost) {
				t.Errorf("wrong %q, lost %q; want %q and %q", d.wrong, got, tt.wrong, tt.lost)
			}
		})
	}
}

// A file that is written and synced as it should be, with its name, seen by strace.
func TestSurvives(t *testing.T) {
	Survives(t, func(dir string) error {
		f, err := os.Create(filepath.Join(dir, "a"))
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		if _, err := f.WriteString("text"); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
		d, err := os.Open(dir)
		if err != nil {
			return err
		}
		defer func() { _ = d.Close() }()
		return d.Sync()
	})
}
