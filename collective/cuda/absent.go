//go:build !cgo

package cuda

// Without cgo no library can be opened, so nothing behind it is ever called.

const haveCgo = false

func dlopen(string) (uintptr, error)         { return 0, ErrNoCgo }
func dlclose(uintptr)                        {}
func dlsym(uintptr, string) uintptr          { return 0 }
func dlfile(uintptr) string                  { return "" }
func callSize(uintptr) int                   { return 0 }
func callInt(uintptr) (value, code int)      { return 0, codeInvalidValue }
func newDriver(*Library) (driver, error)     { return nil, ErrNoCgo }
func newCompiler(*Library) (compiler, error) { return nil, ErrNoCgo }
