package cuda

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
)

// Library is an opened library. It stays until the process ends.
type Library struct {
	family Family
	path   string
	major  int // of CUDA, that it was built for; 0 for the driver and NCCL, which do not depend on it
	handle uintptr
}

// Path is the file that the library was loaded from.
func (l *Library) Path() string { return l.path }

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
func Open(f Family) (*Library, error) {
	if !haveCgo {
		return nil, ErrNoCgo
	}
	return libraries.family(f, 0)
}

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
	switch {
	case p.folder == "":
		lib, err = o.linked(f, b)
	case f == CuDNN:
		// Parts that are linked with cuBLAS would look for it as they are opened.
		if major := namedMajor(filepath.Join(p.folder, b.main), p.folder, b); major != 0 {
			err = l.need(major)
		}
		if err == nil {
			lib, err = o.folder(f, p.folder, b)
		}
	default:
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
