package cuda

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"ebtrain/collective/cuda/abi"
)

// CheckHeaders compiles the declarations of this package against NVIDIA's own
// headers, cuda.h and nvrtc.h, which it looks for in the folders: every constant
// and the type of every function must be the same. The report says which headers
// were compared; ErrNotCompared which were not, if those that were are as declared.
func CheckHeaders(includeDirs []string) (report string, err error) {
	driver, driverErr := CompareHeader("cuda.h", driverCheck(), abi.Files, includeDirs)
	nvrtc, nvrtcErr := CompareHeader("nvrtc.h", nvrtcCheck, abi.Files, includeDirs)
	var lines []string
	for _, line := range []string{driver, nvrtc} {
		if line != "" {
			lines = append(lines, line)
		}
	}
	if errors.Is(driverErr, ErrNotCompared) && nvrtcErr != nil && !errors.Is(nvrtcErr, ErrNotCompared) {
		driverErr = nil // a difference is more
	}
	if errors.Is(nvrtcErr, ErrNotCompared) && driverErr != nil && !errors.Is(driverErr, ErrNotCompared) {
		nvrtcErr = nil
	}
	return strings.Join(lines, "\n"), errors.Join(driverErr, nvrtcErr)
}

// ErrNotCompared says that there was no header to compare with, or nothing to do it by.
var ErrNotCompared = errors.New("not compared")

// CompareHeader compiles check, a C text that asserts what a package declares in its
// files, against NVIDIA's own header, which it looks for in the folders, with what that
// includes. The report says which header was compared; ErrNotCompared that none was found,
// or that it cannot be compiled by itself, as what it includes is not there, or a compiler.
func CompareHeader(header, check string, files fs.FS, includeDirs []string) (report string, err error) {
	folder := holding(includeDirs, header)
	if folder == "" {
		return "", fmt.Errorf("%s: %w: not found", header, ErrNotCompared)
	}
	path := filepath.Join(folder, header)
	if err := CompileCheck("#include <"+header+">\n", files, includeDirs); err != nil {
		return "", fmt.Errorf("%s: %w: it does not compile by itself: %w", path, ErrNotCompared, err)
	}
	if err := CompileCheck(check, files, includeDirs); err != nil {
		return "", fmt.Errorf("%s differs from this program's declarations: %w", path, err)
	}
	return path + ": as declared", nil
}

func holding(folders []string, file string) string {
	for _, f := range folders {
		if _, err := os.Stat(filepath.Join(f, file)); err == nil {
			return f
		}
	}
	return ""
}

// CompileCheck compiles a source in C, with the files beside it and the folders
// to include from, by cc, for what its static assertions say. Since CUDA 13 what some
// headers include lies in a folder cccl beside them.
func CompileCheck(source string, files fs.FS, includeDirs []string) (err error) {
	folder, err := os.MkdirTemp("", "ebtrain-headers-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := os.CopyFS(folder, files); err != nil {
		return err
	}
	path := filepath.Join(folder, "check.c")
	if err := os.WriteFile(path, []byte(source), 0o666); err != nil {
		return err
	}
	args := []string{"-std=gnu11", "-fsyntax-only"}
	for _, d := range includeDirs {
		args = append(args, "-I"+d, "-I"+filepath.Join(d, "cccl"))
	}
	out, err := exec.Command("cc", append(args, path)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w:\n%s", err, out)
	}
	return nil
}

// driverCheck asserts that our names for constants are those of cuda.h: each
// line EB_X = 1, of the enumeration is compared with X, and so are the codes that are
// told more of. driver.h itself asserts how structures lie, which then are those of cuda.h.
func driverCheck() string {
	text, err := abi.Files.ReadFile("driver.h")
	if err != nil {
		panic(err) // it is embedded
	}
	var b strings.Builder
	b.WriteString("#include <cuda.h>\n#define EB_REAL_CUDA_H\n#include \"./driver.h\"\n")
	for line := range strings.Lines(string(text)) {
		name, _, ok := strings.Cut(strings.TrimSpace(line), " = ")
		if real, ours := strings.CutPrefix(name, "EB_"); ok && ours {
			check := fmt.Sprintf("_Static_assert((long)%s == (long)%s, \"%s\");\n", name, real, real)
			b.WriteString(since(line, check))
		}
	}
	b.WriteString(`#define X(name, args) _Static_assert(__builtin_types_compatible_p(__typeof__(name), __typeof__(*((eb_cuda *)0)->name)), #name);
EB_CUDA_FUNCTIONS(X)
EB_CUDA_NEWER(X)
`)
	for _, code := range slices.Sorted(maps.Keys(meanings)) {
		m := meanings[code]
		fmt.Fprintf(&b, "#if CUDA_VERSION >= %d\n_Static_assert(CUDA_ERROR_%s == %d, \"CUDA_ERROR_%[2]s\");\n#endif\n", m.since, m.name, code)
	}
	return b.String()
}

// since has a check made of the headers alone that have what the line declares.
func since(line, check string) string {
	var major, minor int
	if _, version, marked := strings.Cut(line, "// since "); marked {
		if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
			panic(err) // it is embedded
		}
	}
	return fmt.Sprintf("#if CUDA_VERSION >= %d\n%s#endif\n", 1000*major+10*minor, check)
}

const nvrtcCheck = `#include <nvrtc.h>
#define EB_REAL_NVRTC_H
#include "./nvrtc.h"
_Static_assert(EB_NVRTC_SUCCESS == NVRTC_SUCCESS, "NVRTC_SUCCESS");
#define X(result, name, args) _Static_assert(__builtin_types_compatible_p(__typeof__(name), __typeof__(*((eb_nvrtc *)0)->name)), #name);
EB_NVRTC_FUNCTIONS(X)
`
