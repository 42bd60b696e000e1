package powercut

import (
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// disk is what of the folder root is not on the disk yet.
type disk struct {
	root  string
	dirty map[string]bool // files whose contents, and folders whose names, are not synced
	names int             // that were made
	wrong []string
}

func newDisk(root string) *disk { return &disk{root: root, dirty: map[string]bool{}} }

var (
	// call is a line of strace's: name, arguments, result.
	call = regexp.MustCompile(`^(\w+)\((.*)\)\s+= (-?\d+)(<.*>)?`)
	// opened is the path behind a number of an open file, by strace -y.
	opened = regexp.MustCompile(`^\d+<([^>]*)>`)
	// named are the paths that a call names, each behind the folder that it starts from.
	named = regexp.MustCompile(`(?:(?:AT_FDCWD|\d+)(?:<([^>]*)>)?, )?"([^"]*)"`)
)

// complete are the calls of a log of strace -f, each as a line, without the number of the
// thread; those that strace has in two parts are put together, where they end.
func complete(log string) iter.Seq[string] {
	return func(yield func(string) bool) {
		begun := map[string]string{} // by thread
		for line := range strings.Lines(log) {
			thread, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			rest = strings.TrimSpace(rest)
			if head, cut := strings.CutSuffix(rest, "<unfinished ...>"); cut {
				begun[thread] = strings.TrimSpace(head)
				continue
			}
			if strings.HasPrefix(rest, "<... ") {
				_, tail, _ := strings.Cut(rest, " resumed>")
				rest = begun[thread] + tail
			}
			if !yield(rest) {
				return
			}
		}
	}
}

// see takes note of a call that has ended well.
func (d *disk) see(line string) {
	m := call.FindStringSubmatch(line)
	if m == nil || strings.HasPrefix(m[3], "-") {
		return
	}
	var paths []string
	for _, p := range named.FindAllStringSubmatch(m[2], -1) {
		if path := p[2]; filepath.IsAbs(path) {
			paths = append(paths, path)
		} else {
			paths = append(paths, filepath.Join(p[1], path))
		}
	}
	file := ""
	if f := opened.FindStringSubmatch(m[2]); f != nil {
		file = f[1]
	}
	switch m[1] {
	case "open", "openat", "creat":
		if m[1] == "creat" || strings.Contains(m[2], "O_CREAT") {
			d.made(paths[0])
		}
	case "mkdir", "mkdirat":
		d.made(paths[0])
	case "write", "pwrite64", "ftruncate":
		d.written(file)
	case "fsync", "fdatasync":
		delete(d.dirty, file)
	case "unlink", "unlinkat", "rmdir":
		for _, path := range d.unsynced(paths[0]) {
			delete(d.dirty, path)
		}
	default: // renames
		d.renamed(paths[0], paths[1])
	}
}

func (d *disk) within(path string) bool { return path == d.root || under(path, d.root) }

func under(path, dir string) bool { return strings.HasPrefix(path, dir+"/") }

// made: the folder that path lies in has a new name.
func (d *disk) made(path string) {
	if d.within(path) {
		d.dirty[filepath.Dir(path)] = true
		d.names++
	}
}

func (d *disk) written(path string) {
	if d.within(path) {
		d.dirty[path] = true
	}
}

func (d *disk) renamed(from, to string) {
	if !d.within(from) {
		return
	}
	for _, path := range d.unsynced(from) {
		d.wrong = append(d.wrong, fmt.Sprintf("%s is renamed to %s before %s is synced", from, to, path))
		delete(d.dirty, path)
	}
	d.made(to)
}

// unsynced are dir, or the file dir, and what lies under it, as far as it is not synced.
func (d *disk) unsynced(dir string) (all []string) {
	for _, path := range slices.Sorted(maps.Keys(d.dirty)) {
		if path == dir || under(path, dir) {
			all = append(all, path)
		}
	}
	return all
}
