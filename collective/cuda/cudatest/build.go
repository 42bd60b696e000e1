package cudatest

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"ebtrain/collective/cuda/abi"
)

// sources are the doubles' C files; those of a library begin with its name.
//
//go:embed double
var sources embed.FS

// library is a double under its real name.
type library struct {
	name    string // soname
	sources string // pattern; none: an empty library, that must only be there
	flags   []string
}

// libraries are those of a machine with CUDA 13.
var libraries = []library{
	{"libcuda.so.1", "cuda_*.c", nil},
	{"libnvrtc-builtins.so.13.0", "", nil},
	{"libnvrtc.so.13", "nvrtc*.c", []string{"-DNVRTC_MAJOR=13"}},
	{"libcublasLt.so.13", "cublaslt*.c", nil},
	{"libcublas.so.13", "", nil},
	{"libcudnn.so.9", "cudnn*.c", nil},
	{"libcudnn_graph.so.9", "", nil},
	{"libnccl.so.2", "nccl*.c", nil},
}

// buildAll builds the libraries into a folder of the user's cache that is named
// by the hash of all that goes into them, whole or not at all.
func buildAll() (string, error) {
	if _, err := exec.LookPath("gcc"); err != nil {
		return "", fmt.Errorf("the doubles of NVIDIA's libraries are built by gcc: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	hash, err := hashOf(sources, abi.Files)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "ebtrain", "doubles", hash)
	if _, err := os.Stat(folder); err == nil {
		return folder, nil
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o777); err != nil {
		return "", err
	}
	prune(filepath.Dir(folder))
	work, err := os.MkdirTemp(filepath.Dir(folder), "new-")
	if err != nil {
		return "", err
	}
	if err := errors.Join(buildInto(work), os.Chmod(work, 0o777)); err != nil {
		return "", errors.Join(err, os.RemoveAll(work))
	}
	if err := os.Rename(work, folder); err != nil {
		// Another process may have been faster.
		if _, there := os.Stat(folder); there == nil {
			return folder, os.RemoveAll(work)
		}
		return "", err
	}
	return folder, nil
}

// prune removes doubles, and what their compilers made, that are a week old: of
// sources that are no more, usually. Those in use are built again.
func prune(folder string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && time.Since(info.ModTime()) > 7*24*time.Hour {
			_ = os.RemoveAll(filepath.Join(folder, e.Name())) // another test may be at it
		}
	}
}

// flags are those of all doubles.
var flags = []string{"-shared", "-fPIC", "-O2", "-g", "-std=gnu11", "-fno-strict-aliasing", "-Wall"}

func buildInto(folder string) error {
	double, err := fs.Sub(sources, "double")
	if err != nil {
		return err
	}
	if err := errors.Join(os.CopyFS(folder, double), os.CopyFS(filepath.Join(folder, "abi"), abi.Files)); err != nil {
		return err
	}
	for _, l := range libraries {
		if err := build(folder, l); err != nil {
			return fmt.Errorf("building the double %s: %w", l.name, err)
		}
	}
	return nil
}

// build builds one library in a folder that holds the sources. One whose sources
// are not there is not built.
func build(folder string, l library) error {
	var files []string
	if l.sources != "" {
		found, err := filepath.Glob(filepath.Join(folder, l.sources))
		if err != nil || len(found) == 0 {
			return err
		}
		files = found
	} else {
		empty := filepath.Join(folder, "empty.c")
		if err := os.WriteFile(empty, []byte("int eb_empty;\n"), 0o666); err != nil {
			return err
		}
		files = []string{empty}
	}
	args := append([]string{}, flags...)
	args = append(args, l.flags...)
	args = append(args, "-I"+folder, "-o", filepath.Join(folder, l.name), "-Wl,-soname,"+l.name)
	args = append(append(args, files...), "-pthread", "-ldl", "-lm", "-lrt")
	out, err := exec.Command("gcc", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w:\n%s", err, out)
	}
	return nil
}

// hashOf is of the names and contents of files, the libraries and the flags.
func hashOf(trees ...fs.FS) (string, error) {
	h := sha256.New()
	h.Write(fmt.Appendf(nil, "%q %q", libraries, flags))
	for _, tree := range trees {
		err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") {
				return err
			}
			text, err := fs.ReadFile(tree, path)
			h.Write(fmt.Appendf(nil, "%q %q", path, text))
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}
