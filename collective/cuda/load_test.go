//go:build cgo

package cuda_test

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ebtrain/collective/cuda"
)

func folders(t *testing.T, paths ...string) {
	t.Helper()
	for _, p := range paths {
		ok(t, os.MkdirAll(p, 0o777))
	}
}

// TestPlaces: where a library is looked for, in which order.
func TestPlaces(t *testing.T) {
	root := t.TempDir()
	at := func(p string) string { return filepath.Join(root, p) }
	folders(t, at("venv/bin"), at("venv/lib/python3.12/site-packages"), at("conda/lib/python3.11/site-packages"), at("py/bin"),
		at("py/lib/python3.9/site-packages"), at("py/lib/python3.13/site-packages"), at("home/.local/lib/python3.12/site-packages"),
		at("usr/lib/python3/dist-packages"), at("usr/local/lib/python3.12/dist-packages"))
	ok(t, os.WriteFile(at("py/bin/python3.13"), nil, 0o777))
	ok(t, os.Symlink("python3.13", at("py/bin/python3")))
	ok(t, os.Symlink(at("py/bin/python3"), at("venv/bin/python3")))
	all := map[string]string{"EBTRAIN_CUDA_LIBS": "/a:/b", "VIRTUAL_ENV": "", "CONDA_PREFIX": at("conda"), "CUDA_HOME": at("toolkit")}
	for _, c := range []struct {
		name   string
		env    map[string]string
		python string
		family cuda.Family
		want   []string
	}{
		{"all", all, at("venv/bin/python3"), cuda.NVRTC, []string{
			"/a", "/b",
			at("conda/lib/python3.11/site-packages/nvidia/cu13/lib"), at("conda/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib"),
			at("venv/lib/python3.12/site-packages/nvidia/cu13/lib"), at("venv/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib"),
			at("py/lib/python3.13/site-packages/nvidia/cu13/lib"), at("py/lib/python3.13/site-packages/nvidia/cuda_nvrtc/lib"),
			at("py/lib/python3.9/site-packages/nvidia/cu13/lib"), at("py/lib/python3.9/site-packages/nvidia/cuda_nvrtc/lib"),
			at("home/.local/lib/python3.12/site-packages/nvidia/cu13/lib"), at("home/.local/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib"),
			at("usr/local/lib/python3.12/dist-packages/nvidia/cu13/lib"), at("usr/local/lib/python3.12/dist-packages/nvidia/cuda_nvrtc/lib"),
			at("usr/lib/python3/dist-packages/nvidia/cu13/lib"), at("usr/lib/python3/dist-packages/nvidia/cuda_nvrtc/lib"),
			at("conda/lib"), at("conda/targets/x86_64-linux/lib"), "",
			at("toolkit/lib64"), at("toolkit/targets/x86_64-linux/lib"), at("usr/local/cuda/lib64"), at("usr/local/cuda/targets/x86_64-linux/lib"),
		}},
		{"the driver", all, "", cuda.Driver, []string{"/a", "/b", "", at("usr/local/nvidia/lib64"), at("usr/lib/wsl/lib"), at("run/opengl-driver/lib")}},
		{"a virtual environment", map[string]string{"VIRTUAL_ENV": at("venv")}, "", cuda.NCCL, []string{
			at("venv/lib/python3.12/site-packages/nvidia/nccl/lib"), at("home/.local/lib/python3.12/site-packages/nvidia/nccl/lib"),
			at("usr/local/lib/python3.12/dist-packages/nvidia/nccl/lib"), at("usr/lib/python3/dist-packages/nvidia/nccl/lib"),
			"", at("usr/local/cuda/lib64"), at("usr/local/cuda/targets/x86_64-linux/lib")}},
		{"only what is asked", map[string]string{"EBTRAIN_CUDA_LIBS": "/a::-:/b", "CUDA_HOME": "/c"}, "", cuda.CuDNN, []string{"/a"}},
		{"nothing", map[string]string{"EBTRAIN_CUDA_LIBS": "-"}, "", cuda.Driver, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := cuda.NewMachine(c.env, root, at("home"), c.python).Folders(c.family)
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
	got := cuda.NewMachine(map[string]string{"CUDA_HOME": "/c"}, root, "", "").OnArm().Folders(cuda.NVRTC)
	want := []string{"", "/c/lib64", "/c/targets/sbsa-linux/lib", "/c/targets/aarch64-linux/lib",
		at("usr/local/cuda/lib64"), at("usr/local/cuda/targets/sbsa-linux/lib"), at("usr/local/cuda/targets/aarch64-linux/lib")}
	if got = got[max(0, len(got)-len(want)):]; !slices.Equal(got, want) {
		t.Errorf("on Arm, at last: got %q, want %q", got, want)
	}
}

// template is a library that notes in a file when it is opened, and answers the
// number that the file beside it holds. It is compiled once and copied; it has no
// soname, so copies do not meet what the process has loaded.
const template = `
	#define _GNU_SOURCE
	#include <dlfcn.h>
	#include <stdio.h>
	#include <stdlib.h>
	#include <string.h>
	static Dl_info self;
	__attribute__((constructor)) static void opened(void) {
		const char *path = getenv("EBTRAIN_OPENED");
		FILE *f = dladdr((void *)opened, &self) && path ? fopen(path, "a") : NULL;
		if (f) fprintf(f, "%s\n", strrchr(self.dli_fname, '/') + 1), fclose(f);
	}
	size_t answer(void) {
		char path[5000];
		int n = -1;
		snprintf(path, sizeof path, "%s.answer", self.dli_fname);
		FILE *f = fopen(path, "r");
		if (!f || fscanf(f, "%d", &n) != 1) abort();
		fclose(f);
		return (size_t)n;
	}
	size_t cudnnGetCudartVersion(void) { return answer(); }
	int cuDriverGetVersion(int *v) { *v = (int)answer(); return 0; }
`

var templates = map[string]string{} // by what they need: their files' contents

// record makes a library of the template; needs names another that it is linked
// with.
func record(t *testing.T, folder, name string, answer int, needs string) {
	t.Helper()
	folders(t, folder)
	if templates[needs] == "" {
		work := t.TempDir()
		link := ""
		if needs != "" {
			link = compileC(t, work, needs, "int part;", "")
		}
		image, err := os.ReadFile(compileC(t, work, "template.so", template, link))
		ok(t, err)
		templates[needs] = string(image)
	}
	ok(t, os.WriteFile(filepath.Join(folder, name), []byte(templates[needs]), 0o777))
	ok(t, os.WriteFile(filepath.Join(folder, name+".answer"), []byte(fmt.Sprint(answer)), 0o666))
}

// opened makes a loader with a root of its own, and says what was opened so far.
func opened(t *testing.T, env map[string]string) (l *cuda.Loader, root string, names func() string) {
	t.Helper()
	root = t.TempDir()
	path := filepath.Join(root, "opened")
	t.Setenv("EBTRAIN_OPENED", path)
	for k, v := range env {
		env[k] = strings.ReplaceAll(v, "ROOT", root)
	}
	return cuda.NewLoader(cuda.NewMachine(env, root, "", "")), root, func() string {
		text, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(string(text)), " ")
	}
}

func answer(t *testing.T, l *cuda.Library, want int) {
	t.Helper()
	if got, err := cuda.CallSize(l, "answer"); got != want || err != nil {
		t.Errorf("%s answers %d, %v, want %d", l.Path(), got, err, want)
	}
}

// pip is where pip's packages lie for NewMachine's VIRTUAL_ENV.
const pip = "venv/lib/python3.12/site-packages/nvidia"

// TestWholeFamily: a folder without the rest of the family is passed over; what
// NVRTC opens by its soname is opened before it, from its folder.
func TestWholeFamily(t *testing.T) {
	l, root, names := opened(t, map[string]string{"VIRTUAL_ENV": "ROOT/venv", "CUDA_HOME": "ROOT/toolkit"})
	record(t, filepath.Join(root, pip, "cu13/lib"), "libnvrtc.so.13", 1, "")
	record(t, filepath.Join(root, pip, "cuda_nvrtc/lib"), "libnvrtc.so.12", 2, "")
	record(t, filepath.Join(root, pip, "cuda_nvrtc/lib"), "libnvrtc-builtins.so.12.4", 3, "")
	record(t, filepath.Join(root, "toolkit/lib64"), "libnvrtc.so.13", 4, "")
	record(t, filepath.Join(root, "toolkit/lib64"), "libnvrtc-builtins.so.13.0", 5, "")
	lib, err := l.Open(cuda.NVRTC)
	ok(t, err)
	answer(t, lib, 2)
	if lib.Major() != 12 || lib.Path() != filepath.Join(root, pip, "cuda_nvrtc/lib/libnvrtc.so.12") {
		t.Errorf("%s is of CUDA %d", lib.Path(), lib.Major())
	}
	if got := names(); got != "libnvrtc-builtins.so.12.4 libnvrtc.so.12" {
		t.Errorf("opened %s", got)
	}
	again, err := l.Open(cuda.NVRTC)
	if again != lib || err != nil {
		t.Errorf("opened again: %v", err)
	}
	if _, err := lib.Symbol("nothing"); err == nil || !strings.Contains(err.Error(), "libnvrtc.so.12 has no function nothing") {
		t.Errorf("got %v", err)
	}
}

// TestMajor: CUDA 13's libraries are for drivers that serve 13.
func TestMajor(t *testing.T) {
	for _, c := range []struct{ driver, want int }{{12040, 12}, {12080, 12}, {13000, 13}, {14010, 13}, {0, 13}} {
		t.Run(fmt.Sprint(c.driver), func(t *testing.T) {
			l, root, _ := opened(t, map[string]string{"EBTRAIN_CUDA_LIBS": "ROOT/libs:-"})
			libs := filepath.Join(root, "libs")
			if c.driver != 0 {
				record(t, libs, "libcuda.so.1", c.driver, "")
			}
			for _, major := range []int{12, 13} {
				record(t, libs, fmt.Sprintf("libcublasLt.so.%d", major), major, "")
				record(t, libs, fmt.Sprintf("libcublas.so.%d", major), major, "")
			}
			lib, err := l.Open(cuda.CublasLt)
			ok(t, err)
			answer(t, lib, c.want)
			if lib.Major() != c.want {
				t.Errorf("major %d", lib.Major())
			}
		})
	}
}

// cudnn makes cuDNN of a CUDA with two parts, one of which needs the other.
func cudnn(t *testing.T, folder string, version int) {
	t.Helper()
	record(t, folder, "libcudnn_ops.so.9", 1, "")
	record(t, folder, "libcudnn_graph.so.9", 1, "libcudnn_ops.so.9")
	record(t, folder, "libcudnn.so.9", version, "")
	ok(t, os.WriteFile(filepath.Join(folder, "libcudnn_cnn.so.8"), []byte("of another version"), 0o666))
}

// blas makes cuBLASLt and NVRTC of a CUDA.
func blas(t *testing.T, folder string, major int) {
	t.Helper()
	for _, name := range []string{"libcublasLt.so.%d", "libcublas.so.%d", "libnvrtc-builtins.so.%d.1", "libnvrtc.so.%d"} {
		record(t, folder, fmt.Sprintf(name, major), major, "")
	}
}

// TestCuDNN: its parts are opened, and cuBLASLt and NVRTC of the CUDA that it was
// built for, although newer ones are there.
func TestCuDNN(t *testing.T) {
	l, root, names := opened(t, map[string]string{"EBTRAIN_CUDA_LIBS": "ROOT/cudnn:ROOT/cuda:-"})
	record(t, filepath.Join(root, "cuda"), "libcuda.so.1", 13000, "")
	blas(t, filepath.Join(root, "cuda"), 12)
	blas(t, filepath.Join(root, "cuda"), 13)
	cudnn(t, filepath.Join(root, "cudnn"), 12090)
	lib, err := l.Open(cuda.CuDNN)
	ok(t, err)
	if lib.Major() != 12 {
		t.Errorf("major %d", lib.Major())
	}
	want := "libcudnn.so.9 libcudnn_ops.so.9 libcudnn_graph.so.9 libcuda.so.1 libcublasLt.so.12 libcublas.so.12 libnvrtc-builtins.so.12.1 libnvrtc.so.12"
	if got := names(); got != want {
		t.Errorf("opened %s, want %s", got, want)
	}
	newest, err := l.Open(cuda.CublasLt)
	ok(t, err)
	if newest.Major() != 13 {
		t.Errorf("cuBLASLt by itself is of CUDA %d", newest.Major())
	}
}

// TestDriverBringsNVML: of a driver that lies in a folder of its own, as in containers,
// NVML is opened, too, which NCCL opens by its soname; one that is damaged is no
// matter of the driver's.
func TestDriverBringsNVML(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		l, root, names := opened(t, map[string]string{"EBTRAIN_CUDA_LIBS": "ROOT/nvidia:-"}) // the process may have another one
		folder := filepath.Join(root, "nvidia")
		record(t, folder, "libcuda.so.1", 13000, "")
		record(t, folder, "libnvidia-ml.so.1", 1, "")
		want := "libcuda.so.1 libnvidia-ml.so.1"
		if damaged {
			ok(t, os.WriteFile(filepath.Join(folder, "libnvidia-ml.so.1"), []byte("nothing"), 0o666))
			want = "libcuda.so.1"
		}
		_, err := l.Open(cuda.Driver)
		ok(t, err)
		if got := names(); got != want {
			t.Errorf("opened %s, want %s", got, want)
		}
	}
}

// TestLinkedCuDNN: a part that is linked with cuBLAS finds the one that belongs to
// it.
func TestLinkedCuDNN(t *testing.T) {
	l, root, names := opened(t, map[string]string{"EBTRAIN_CUDA_LIBS": "ROOT/cudnn:ROOT/cuda:-"})
	blas(t, filepath.Join(root, "cuda"), 12)
	record(t, filepath.Join(root, "cudnn"), "libcudnn_graph.so.9", 1, "libcublasLt.so.12")
	record(t, filepath.Join(root, "cudnn"), "libcudnn.so.9", 12040, "")
	if _, err := l.Open(cuda.CuDNN); err == nil || !strings.Contains(err.Error(), "libcudnn_graph.so.9") && !strings.Contains(err.Error(), "libcublasLt.so.12: cannot open") {
		t.Errorf("got %v", err) // the made-up cuBLASLt has no soname: the linker does not know it
	}
	if got := names(); !strings.HasPrefix(got, "libcublasLt.so.12 ") {
		t.Errorf("opened %s, want cuBLASLt first", got)
	}
}

// TestUnusable: what cannot be used is one sentence, with all that was tried.
func TestUnusable(t *testing.T) {
	for _, c := range []struct {
		name   string
		family cuda.Family
		make   func(libs string)
		there  bool // something that cannot be used
		want   []string
	}{
		{"nothing", cuda.NCCL, func(string) {}, false,
			[]string{"cuda: NCCL was not found: pip install nvidia-nccl-cu13 (CUDA 12: nvidia-nccl-cu12), or name its folder in EBTRAIN_CUDA_LIBS (tried @/libnccl.so.2)"}},
		{"no builtins", cuda.NVRTC, func(libs string) { record(t, libs, "libnvrtc.so.13", 1, "") }, false,
			[]string{"NVRTC was not found", "@/libnvrtc.so.13 (no libnvrtc-builtins.so.13.* beside it), @/libnvrtc.so.12)"}},
		{"not cuBLAS", cuda.CublasLt, func(libs string) { record(t, libs, "libcublasLt.so.13", 1, "") }, false, []string{"no libcublas.so.13 beside it"}},
		{"text", cuda.NCCL, func(libs string) { ok(t, os.WriteFile(filepath.Join(libs, "libnccl.so.2"), []byte("text"), 0o666)) }, true,
			[]string{"cuda: NCCL cannot be used: @/libnccl.so.2: ", "file too short"}},
		{"for a newer driver", cuda.CuDNN, func(libs string) {
			record(t, libs, "libcuda.so.1", 12040, "")
			cudnn(t, libs, 13000)
			blas(t, libs, 13)
		}, true, []string{"cuDNN cannot be used", "it was built for CUDA 13.0, and the driver serves CUDA 12"}},
		{"without cuBLAS", cuda.CuDNN, func(libs string) {
			cudnn(t, libs, 12040)
			blas(t, libs, 13)
		}, true, []string{"it was built for CUDA 12 and needs cuBLASLt: cuda: cuBLASLt was not found"}},
		{"no cuDNN", cuda.CuDNN, func(libs string) {
			compileC(t, libs, "libcudnn.so.9", "int x;", "")
			compileC(t, libs, "libcudnn_graph.so.9", "int x;", "")
		}, true, []string{"has no function cudnnGetCudartVersion"}},
		{"mixed parts", cuda.CuDNN, func(libs string) {
			record(t, libs, "libcudnn.so.9.10.2", 13000, "")
			record(t, libs, "libcudnn_graph.so.9.1.0", 1, "")
			ok(t, os.Symlink("libcudnn.so.9.10.2", filepath.Join(libs, "libcudnn.so.9")))
			ok(t, os.Symlink("libcudnn_graph.so.9.1.0", filepath.Join(libs, "libcudnn_graph.so.9")))
		}, true, []string{"parts of different versions are mixed: libcudnn.so.9.10.2 beside libcudnn_graph.so.9.1.0"}},
		{"a part that cannot be opened", cuda.CuDNN, func(libs string) {
			cudnn(t, libs, 13000)
			ok(t, os.WriteFile(filepath.Join(libs, "libcudnn_adv.so.9"), []byte("text"), 0o666))
		}, true, []string{"libcudnn_adv.so.9: file too short"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, root, _ := opened(t, map[string]string{"EBTRAIN_CUDA_LIBS": "ROOT/libs:-"})
			libs := filepath.Join(root, "libs")
			folders(t, libs)
			c.make(libs)
			lib, err := l.Open(c.family)
			var e *cuda.LoadError
			if lib != nil || !errors.As(err, &e) || e.Family != c.family || len(e.Tried) == 0 || (e.Err != nil) != c.there {
				t.Fatalf("got %v, %#v", lib, err)
			}
			for _, want := range c.want {
				if want = strings.ReplaceAll(want, "@", libs); !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in\n%s", want, err)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than a sentence: %s", err)
			}
		})
	}
}

// TestBrokenElsewhere: what is broken where nobody pointed is passed over, and
// nothing of it stays open; if there is no other, it is what the error tells.
func TestBrokenElsewhere(t *testing.T) {
	if os.Getenv("EBTRAIN_CHILD") == "" { // a process of its own, which has loaded nothing yet
		child(t, "alone", "TestBrokenElsewhere")
		return
	}
	l, root, names := opened(t, map[string]string{"VIRTUAL_ENV": "ROOT/venv", "CUDA_HOME": "ROOT/toolkit"})
	first, second := filepath.Join(root, pip, "cu13/lib"), filepath.Join(root, "toolkit/lib64")
	record(t, first, "libnvrtc-builtins.so.13.0", 1, "")
	ok(t, os.WriteFile(filepath.Join(first, "libnvrtc.so.13"), []byte("text"), 0o666))
	_, err := l.Open(cuda.NVRTC)
	if err == nil || !strings.Contains(err.Error(), "cannot be used: "+first) || !strings.Contains(err.Error(), second+"/libnvrtc.so.12") {
		t.Errorf("got %v", err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	ok(t, err)
	if strings.Contains(string(maps), first) {
		t.Error("the builtins of what cannot be used are open still")
	}
	record(t, second, "libnvrtc-builtins.so.13.0", 2, "")
	record(t, second, "libnvrtc.so.13", 2, "")
	lib, err := l.Open(cuda.NVRTC)
	ok(t, err)
	answer(t, lib, 2)
	if got := names(); !strings.HasSuffix(got, "libnvrtc-builtins.so.13.0 libnvrtc.so.13") {
		t.Errorf("opened %s", got)
	}
}

// TestLinker: what the dynamic linker finds by a soname is opened with its parts,
// from where it lies. The C library's own thread library is such a one.
func TestLinker(t *testing.T) {
	l := cuda.NewLoader(cuda.NewMachine(map[string]string{}, t.TempDir(), "", ""))
	_, err := l.Open(cuda.NCCL)
	var e *cuda.LoadError
	if err != nil && (!errors.As(err, &e) || !slices.Contains(e.Tried, "libnccl.so.2 in the dynamic linker's folders")) {
		t.Errorf("got %v", err)
	}
}

// TestNothingLinked: the program itself names none of the libraries, so it starts
// where they are not.
func TestNothingLinked(t *testing.T) {
	self, err := os.Executable()
	ok(t, err)
	f, err := elf.Open(self)
	ok(t, err)
	needs, err := f.ImportedLibraries()
	ok(t, errors.Join(err, f.Close()))
	for _, n := range needs {
		if !slices.ContainsFunc([]string{"libc.", "libdl.", "libpthread.", "libresolv.", "ld-linux"}, func(p string) bool { return strings.HasPrefix(n, p) }) {
			t.Errorf("the program needs %s", n)
		}
	}
}
