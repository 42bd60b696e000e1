//go:build cgo

package cuda_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ebtrain/collective/cuda"
)

// TestLinkedWhole: what the dynamic linker finds must be as whole, and of one version, as
// what a folder has, and is told in the same words; a lone link leads to the rest. Each is a
// process of its own, since the linker reads its folders as one begins.
func TestLinkedWhole(t *testing.T) {
	if scene := os.Getenv("EBTRAIN_CHILD"); scene != "" {
		linkedScenes[scene](t, os.Getenv("LD_LIBRARY_PATH"))
		return
	}
	for scene := range linkedScenes {
		t.Run(scene, func(t *testing.T) {
			t.Setenv("LD_LIBRARY_PATH", t.TempDir())
			child(t, scene, "TestLinkedWhole")
		})
	}
}

var linkedScenes = map[string]func(t *testing.T, libs string){
	"no builtins": func(t *testing.T, libs string) {
		record(t, libs, "libnvrtc.so.13", 1, "")
		record(t, libs, "libnvrtc.so.12", 1, "")
		want := "libnvrtc.so.13 in the dynamic linker's folders (no libnvrtc-builtins.so.13.* beside it)"
		if e := notLinked(t, cuda.NVRTC, libs); e.Err != nil || !strings.Contains(e.Error(), want) {
			t.Errorf("%q is not in %v", want, e)
		}
	},
	"mixed parts": func(t *testing.T, libs string) {
		record(t, libs, "libcudnn.so.9.10.2", 13000, "")
		record(t, libs, "libcudnn_graph.so.9.1.0", 1, "")
		ok(t, os.Symlink("libcudnn.so.9.10.2", filepath.Join(libs, "libcudnn.so.9")))
		ok(t, os.Symlink("libcudnn_graph.so.9.1.0", filepath.Join(libs, "libcudnn_graph.so.9")))
		want := "parts of different versions are mixed: libcudnn.so.9.10.2 beside libcudnn_graph.so.9.1.0"
		if e := notLinked(t, cuda.CuDNN, libs); e.Err == nil || !strings.Contains(e.Error(), want) {
			t.Errorf("%q is not in %v", want, e)
		}
	},
	"lone link": func(t *testing.T, libs string) {
		l, root, names := opened(t, map[string]string{})
		whole := filepath.Join(root, "whole")
		record(t, whole, "libnvrtc.so.13", 1, "")
		record(t, whole, "libnvrtc-builtins.so.13.0", 1, "")
		ok(t, os.Symlink(filepath.Join(whole, "libnvrtc.so.13"), filepath.Join(libs, "libnvrtc.so.13")))
		if _, err := l.Open(cuda.NVRTC); err != nil {
			t.Fatal(err)
		}
		if got := names(); got != "libnvrtc.so.13 libnvrtc-builtins.so.13.0" {
			t.Errorf("opened %s", got)
		}
	},
}

// notLinked is why a family cannot be had from the linker's folders; nothing of it is open.
func notLinked(t *testing.T, f cuda.Family, libs string) *cuda.LoadError {
	t.Helper()
	l, _, _ := opened(t, map[string]string{})
	lib, err := l.Open(f)
	e, ok := errors.AsType[*cuda.LoadError](err)
	if lib != nil || !ok || strings.Contains(err.Error(), "\n") {
		t.Fatalf("got %v, %v", lib, err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil || strings.Contains(string(maps), libs) {
		t.Errorf("what does not serve is open still (%v)", err)
	}
	return e
}
