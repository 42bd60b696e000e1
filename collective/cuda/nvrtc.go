package cuda

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// compiler is NVRTC.
type compiler interface {
	version() (major, minor, code int)
	archs() ([]int, int) // compute capabilities × 10
	errorText(code int) string
	// compile makes a CUBIN, and PTX if that is wanted. The call and its code say what
	// failed; the log is of the compilation.
	compile(name, source string, options []string, ptx bool) (t Translation, call string, code int)
}

// CompileOptions say how to compile.
type CompileOptions struct {
	Options []string // further options of NVRTC's, as --fmad=false
}

// loadedCompiler is NVRTC as the process has it.
var loadedCompiler struct {
	sync.Mutex
	compiler compiler
	identity string
}

// nvrtc opens NVRTC, and says what its images depend on.
func nvrtc() (compiler, string, error) {
	loadedCompiler.Lock()
	defer loadedCompiler.Unlock()
	if loadedCompiler.compiler != nil {
		return loadedCompiler.compiler, loadedCompiler.identity, nil
	}
	l, err := Open(NVRTC)
	if err != nil {
		return nil, "", err
	}
	c, err := newCompiler(l)
	if err != nil {
		return nil, "", err
	}
	major, minor, code := c.version()
	if err := checkCompiler(c, "nvrtcVersion", code); err != nil {
		return nil, "", err
	}
	loadedCompiler.compiler, loadedCompiler.identity = c, fmt.Sprintf("NVRTC %d.%d %s", major, minor, fileIdentity(l.path))
	return c, loadedCompiler.identity, nil
}

func checkCompiler(c compiler, call string, code int) error {
	if code == success {
		return nil
	}
	return &Error{Call: call, Code: code, Name: c.errorText(code), Text: "the compiler failed"}
}

// places at which compilations run: each takes some hundred megabytes.
var compiling = make(chan struct{}, min(runtime.NumCPU(), 8))

// Compile compiles CUDA C to a CUBIN for this device, or takes it from the
// cache. The name stands for the source in messages. Several goroutines compile
// beside each other. What is wrong with the source is a *CompileError.
func (d *Device) Compile(name, source string, o CompileOptions) ([]byte, error) {
	c, identity, err := nvrtc()
	if err != nil {
		return nil, err
	}
	arch, err := d.arch(c)
	if err != nil {
		return nil, err
	}
	options := append([]string{"--gpu-architecture=" + arch}, o.Options...)
	version, err := DriverVersion()
	if err != nil {
		return nil, err
	}
	key := cacheKey(identity, fmt.Sprint(version), source, options)
	if image := d.cache.get(key, d.log.Load()); image != nil {
		return image, nil
	}
	t, err := compile(c, name, source, options, false)
	if err != nil {
		return nil, err
	}
	d.cache.put(key, t.CUBIN, d.log.Load())
	return t.CUBIN, nil
}

func compile(c compiler, name, source string, options []string, ptx bool) (Translation, error) {
	compiling <- struct{}{}
	defer func() { <-compiling }()
	t, call, code := c.compile(name, source, options, ptx)
	if code != success {
		return Translation{}, newCompileError(name, source, t.Log, checkCompiler(c, call, code))
	}
	return t, nil
}

// arch is the architecture to compile for: the device's, or the newest older one
// of the same generation that this compiler knows, whose code runs there, too.
func (d *Device) arch(c compiler) (string, error) {
	archs, code := c.archs()
	if err := checkCompiler(c, "nvrtcGetSupportedArchs", code); err != nil {
		return "", err
	}
	best := archFor(10*d.info.Major+d.info.Minor, archs)
	if best == 0 {
		return "", fmt.Errorf("cuda: this NVRTC compiles for sm_%d to sm_%d, and %s needs another: install the NVRTC of a newer or older CUDA", slices.Min(archs), slices.Max(archs), d.info)
	}
	return fmt.Sprintf("sm_%d", best), nil
}

// tegra are the architectures of Tegra's (101 is what CUDA 13 calls 110): their code runs on
// no other device of the generation, and no other's on them.
var tegra = []int{53, 62, 72, 87, 101, 110}

// archFor is the one of archs whose code a device runs best; 0 if it runs none.
func archFor(device int, archs []int) (best int) {
	for _, a := range archs {
		older := a/10 == device/10 && a < device && !slices.Contains(tegra, a) && !slices.Contains(tegra, device)
		if a == device || older {
			best = max(best, a)
		}
	}
	return best
}

// CompileError is a source that does not compile.
type CompileError struct {
	Name   string // of the source
	Line   int    // of its first error, from 1; 0 if the log does not say
	Text   string // that line
	Log    string // the compiler's, whole
	Source string
	Err    error // the call
}

func (e *CompileError) Error() string {
	at := ""
	if e.Line > 0 {
		at = fmt.Sprintf(", line %d: %s", e.Line, strings.TrimSpace(e.Text))
	}
	return fmt.Sprintf("cuda: %s does not compile%s: %v\n%s", e.Name, at, e.Err, strings.TrimRight(e.Log, "\n"))
}

func (e *CompileError) Unwrap() error { return e.Err }

// newCompileError reads the place of the first error from the log: name(12):
// error: …
func newCompileError(name, source, log string, err error) error {
	e := &CompileError{Name: name, Log: log, Source: source, Err: err}
	for line := range strings.Lines(log) {
		rest, ok := strings.CutPrefix(line, name+"(")
		if !ok || !strings.Contains(line, "error") {
			continue
		}
		if n, err := strconv.Atoi(number(rest)); err == nil {
			e.Line = n
			break
		}
	}
	if lines := strings.Split(source, "\n"); e.Line > 0 && e.Line <= len(lines) {
		e.Text = lines[e.Line-1]
	}
	return e
}
