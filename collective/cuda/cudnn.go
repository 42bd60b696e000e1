package cuda

import (
	"fmt"
	"path/filepath"
	"strings"
)

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
	return l.need(cudnn.major)
}

// need opens what cuDNN needs.
func (l *loader) need(major int) error {
	for _, f := range []Family{CublasLt, NVRTC} {
		if _, err := l.locked(f, major); err != nil {
			return fmt.Errorf("it was built for CUDA %d and needs %s: %w", major, f, err)
		}
	}
	return nil
}

// namedMajor is the CUDA whose cuBLAS a library or one of those beside it is
// linked with, 0 if none is.
func namedMajor(main, folder string, b build) int {
	paths := []string{main}
	for _, p := range b.beside {
		paths = append(paths, matches(folder, p)...)
	}
	for _, path := range paths {
		for _, name := range needed(path) {
			var major int
			for _, form := range []string{"libcublasLt.so.%d", "libcublas.so.%d", "libnvrtc.so.%d"} {
				if n, err := fmt.Sscanf(name, form, &major); n == 1 && err == nil {
					return major
				}
			}
		}
	}
	return 0
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
