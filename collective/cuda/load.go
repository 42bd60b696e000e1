package cuda

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Library is an opened library. It stays until the process ends.
type Library struct {
	family Family
	path   string
	major  int
	handle uintptr
}

// Path is the file that the library was loaded from.
func (l *Library) Path() string { return l.path }

// Major is the version of CUDA that the library was built for, 0 for the driver
// and NCCL, which do not depend on it.
func (l *Library) Major() int { return l.major }

// Symbol is the address of a function.
func (l *Library) Symbol(name string) (uintptr, error) {
	if f := dlsym(l.handle, name); f != 0 {
		return f, nil
	}
	return 0, fmt.Errorf("cuda: %s has no function %s: it is too old or no %s", l.path, name, l.family)
}

// LoadError says why a library cannot be had in this process.
type LoadError struct {
	Family Family
	Tried  []string // the files that were looked for, in order
	Err    error    // of the first that is there and cannot be used; nil if none is
}

func (e *LoadError) Error() string {
	s := families[e.Family]
	if e.Err != nil {
		return fmt.Sprintf("cuda: %s cannot be used: %v (tried %s)", s.name, e.Err, strings.Join(e.Tried, ", "))
	}
	return fmt.Sprintf("cuda: %s was not found: %s, or name its folder in %s (tried %s)", s.name, s.advice, LibsVariable, strings.Join(e.Tried, ", "))
}

func (e *LoadError) Unwrap() error { return e.Err }

// libraries are the opened ones: dlopen is of the process, and so are these.
var libraries = loader{machine: thisMachine(), open: map[key]*Library{}}

// Open opens a family's library, from the first folder that holds all of it,
// and what it would open itself later. It is opened once and stays. The error is
// a *LoadError, or ErrNoCgo.
func Open(f Family) (*Library, error) { return libraries.family(f, 0) }

type key struct {
	family Family
	major  int // 0: any
}

// loader opens libraries and remembers them.
type loader struct {
	mu      sync.Mutex
	machine machine
	open    map[key]*Library
}

// family opens a family, of one major of CUDA or (0) of any that the driver
// serves.
func (l *loader) family(f Family, major int) (*Library, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.locked(f, major)
}

func (l *loader) locked(f Family, major int) (*Library, error) {
	if lib := l.open[key{f, major}]; lib != nil {
		return lib, nil
	}
	lib, err := l.search(f, major)
	if err != nil {
		return nil, err
	}
	l.open[key{f, major}] = lib
	return lib, nil
}

// search tries the places in order. Of several errors, one about a library that
// is there says more.
func (l *loader) search(f Family, major int) (*Library, error) {
	s := families[f]
	e := &LoadError{Family: f}
	var part incomplete
	builds := s.builds(l.allowed(major))
	for _, p := range l.machine.places(s) {
		for _, b := range builds {
			lib, err := l.try(f, p, b)
			switch {
			case err == nil:
				return lib, nil
			case errors.Is(err, ErrNoCgo):
				return nil, err
			case errors.As(err, &part):
				e.Tried = append(e.Tried, fmt.Sprintf("%s (%v)", name(p, b), err))
				continue
			case errors.Is(err, errNotThere):
				e.Tried = append(e.Tried, name(p, b))
				continue
			}
			e.Tried = append(e.Tried, name(p, b))
			e.Err = cmp.Or(e.Err, fmt.Errorf("%s: %w", name(p, b), err))
			if p.asked {
				return nil, e
			}
		}
	}
	return nil, e
}

func name(p place, b build) string {
	if p.folder == "" {
		return b.main + " in the dynamic linker's folders"
	}
	return filepath.Join(p.folder, b.main)
}

// allowed says which majors of CUDA serve: those that the driver does, or the
// one that is asked for.
func (l *loader) allowed(major int) func(int) bool {
	if major != 0 {
		return func(m int) bool { return m == major }
	}
	return func(m int) bool {
		newest := l.newest()
		return newest == 0 || m <= newest
	}
}

// newest is the newest major of CUDA that the driver serves, 0 without a driver:
// then nothing is known against any.
func (l *loader) newest() int {
	lib, err := l.locked(Driver, 0)
	if err != nil {
		return 0
	}
	v, err := driverVersion(lib)
	if err != nil {
		return 0
	}
	return v / 1000
}

// errNotThere means that a place does not hold the family.
var errNotThere = errors.New("not there")

// incomplete is errNotThere of a folder that holds a part of it.
type incomplete struct{ lacks string }

func (e incomplete) Error() string { return "no " + e.lacks + " beside it" }

// try opens a build from a place, or leaves nothing open.
func (l *loader) try(f Family, p place, b build) (*Library, error) {
	var lib *Library
	var err error
	o := &opening{}
	if p.folder == "" {
		lib, err = o.linked(f, b)
	} else {
		lib, err = o.folder(f, p.folder, b)
	}
	if err == nil && f == CuDNN {
		err = l.companions(lib)
	}
	if err != nil {
		o.undo()
		return nil, err
	}
	return lib, nil
}

// companions opens cuBLASLt and NVRTC, of the CUDA that cuDNN was built for,
// before cuDNN opens them by their sonames and finds others.
func (l *loader) companions(cudnn *Library) error {
	f, err := cudnn.Symbol("cudnnGetCudartVersion")
	if err != nil {
		return err
	}
	v := callSize(f)
	cudnn.major = v / 1000
	if newest := l.newest(); newest != 0 && cudnn.major > newest {
		return fmt.Errorf("it was built for CUDA %s, and the driver serves CUDA %d", versionText(v), newest)
	}
	for _, f := range []Family{CublasLt, NVRTC} {
		if _, err := l.locked(f, cudnn.major); err != nil {
			return fmt.Errorf("it was built for CUDA %s and needs %s: %w", versionText(v), f, err)
		}
	}
	return nil
}

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
	for _, p := range b.needs {
		if len(matches(folder, p)) == 0 {
			return nil, incomplete{p}
		}
	}
	if err := sameVersion(folder, b); err != nil {
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
	return &Library{family: f, path: path, major: b.major, handle: h}, nil
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
	if err := o.beside(filepath.Dir(path), b); err != nil {
		return nil, err
	}
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

// sameVersion looks behind symlinks whose targets carry a full version, as
// packages of distributions have them: those of cuDNN must all be one.
func sameVersion(folder string, b build) error {
	main, version := target(filepath.Join(folder, b.main), b.main)
	if version == "" || b.major != 0 {
		return nil
	}
	for _, p := range b.beside {
		for _, path := range matches(folder, p) {
			part, v := target(path, filepath.Base(path))
			if v != "" && v != version {
				return fmt.Errorf("parts of different versions are mixed: %s beside %s", main, part)
			}
		}
	}
	return nil
}

// target is the file behind a symlink, and what its name has after the soname:
// .1.2 of libcudnn.so.9.1.2.
func target(path, soname string) (file, version string) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", ""
	}
	file = filepath.Base(real)
	version, _ = strings.CutPrefix(file, soname)
	if version == file {
		return file, ""
	}
	return file, version
}
