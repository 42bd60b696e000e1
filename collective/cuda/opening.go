package cuda

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// opening is what was opened for a library so far.
type opening struct{ handles []uintptr }

func (o *opening) open(path string) (uintptr, error) {
	h, err := dlopen(path)
	if err == nil {
		o.handles = append(o.handles, h)
	}
	return h, err
}

// undo closes all, so that none of it is met by the next try.
func (o *opening) undo() {
	for _, h := range slices.Backward(o.handles) {
		dlclose(h)
	}
}

// folder opens a build by full paths: what it would open by soname later is
// there then, and the dynamic linker takes it whatever else it might find.
func (o *opening) folder(f Family, folder string, b build) (*Library, error) {
	path := filepath.Join(folder, b.main)
	if _, err := os.Stat(path); err != nil {
		return nil, errNotThere
	}
	if err := fits(folder, b); err != nil {
		return nil, err
	}
	if b.first {
		if err := o.beside(folder, b); err != nil {
			return nil, err
		}
	}
	h, err := o.open(path)
	if err != nil {
		return nil, err
	}
	if !b.first {
		if err := o.beside(folder, b); err != nil {
			return nil, err
		}
	}
	o.also(folder, b)
	return &Library{family: f, path: path, major: b.major, handle: h}, nil
}

// fits says what is wrong with a folder's part of a build: that it is not all there, or of
// several versions.
func fits(folder string, b build) error {
	for _, p := range b.needs {
		if len(matches(folder, p)) == 0 {
			return incomplete{p}
		}
	}
	return sameVersion(folder, b)
}

// linked opens a build by its soname, and what belongs to it from the folder
// where it turned out to be.
func (o *opening) linked(f Family, b build) (*Library, error) {
	h, err := o.open(b.main)
	if err != nil {
		if strings.HasPrefix(err.Error(), b.main+": cannot open shared object file: No such file") {
			return nil, errNotThere
		}
		return nil, err
	}
	path := dlfile(h)
	if path == "" {
		return nil, fmt.Errorf("the dynamic linker does not say where %s lies", b.main)
	}
	folder := filepath.Dir(path)
	if err := fits(folder, b); err != nil {
		real, broken := filepath.EvalSymlinks(path) // a lone link leads to the folder of the rest
		if broken != nil || fits(filepath.Dir(real), b) != nil {
			return nil, err
		}
		folder = filepath.Dir(real)
	}
	if err := o.beside(folder, b); err != nil {
		return nil, err
	}
	o.also(folder, b)
	return &Library{family: f, path: path, major: b.major, handle: h}, nil
}

// beside opens the other files of a build, each after those that it needs.
func (o *opening) beside(folder string, b build) error {
	var paths []string
	for _, p := range b.beside {
		paths = append(paths, matches(folder, p)...)
	}
	for _, path := range inOrder(paths) {
		if _, err := o.open(path); err != nil {
			return err
		}
	}
	return nil
}

// also opens what others look for by its soname, in folders that may not be the
// dynamic linker's. Who needs it says better than dlopen what is missing.
func (o *opening) also(folder string, b build) {
	for _, p := range b.also {
		for _, path := range matches(folder, p) {
			_, _ = o.open(path) //nolint:errcheck // see above
		}
	}
}

// matches are the libraries of a folder whose names match: what follows .so. is
// a version.
func matches(folder, pattern string) []string {
	var out []string
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		_, version, _ := strings.Cut(e.Name(), ".so.")
		if ok, err := filepath.Match(pattern, e.Name()); ok && err == nil && strings.Trim(version, ".0123456789") == "" {
			out = append(out, filepath.Join(folder, e.Name()))
		}
	}
	return out
}

// inOrder sorts libraries so that each comes after those of them that it names.
func inOrder(paths []string) []string {
	byName := map[string]string{}
	for _, p := range paths {
		byName[filepath.Base(p)] = p
	}
	var out []string
	seen := map[string]bool{}
	var visit func(string)
	visit = func(path string) {
		if seen[path] {
			return
		}
		seen[path] = true
		for _, n := range needed(path) {
			if p := byName[n]; p != "" {
				visit(p)
			}
		}
		out = append(out, path)
	}
	for _, p := range paths {
		visit(p)
	}
	return out
}

// needed are the sonames that a library names, none if it is no library: dlopen
// says so better.
func needed(path string) []string {
	f, err := elf.Open(path)
	if err != nil {
		return nil
	}
	names, err := f.ImportedLibraries()
	if err := errors.Join(err, f.Close()); err != nil {
		return nil
	}
	return names
}
