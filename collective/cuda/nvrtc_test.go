//go:build cgo

package cuda_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"ebtrain/collective/cuda"
)

func TestCompileError(t *testing.T) {
	machine(t)
	d := device(t)
	_, err := d.Compile("fused_7.cu", "typedef struct { float *x; } args;\nKERNEL(k, 32, args) {\n\ta.x[0] = nothing;\n}\n", cuda.CompileOptions{})
	var c *cuda.CompileError
	if !errors.As(err, &c) {
		t.Fatalf("got %v", err)
	}
	if c.Name != "fused_7.cu" || c.Line != 3 || c.Text != "\ta.x[0] = nothing;" || !strings.Contains(c.Log, "fused_7.cu(3): error: ") {
		t.Errorf("got %+v", c)
	}
	want := "cuda: fused_7.cu does not compile, line 3: a.x[0] = nothing;: cuda: nvrtcCompileProgram: the compiler failed (NVRTC_ERROR_COMPILATION, 6)\n"
	if !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %q, want it to begin with %q", err, want)
	}
	_, err = d.Compile("k.cu", scaleSource, cuda.CompileOptions{Options: []string{"--nonsense"}})
	if !errors.As(err, &c) || c.Line != 0 || !strings.Contains(err.Error(), "unrecognized option --nonsense") {
		t.Errorf("got %v", err)
	}
}

// TestArch: the device's own architecture, or the newest older one of its
// generation.
func TestArch(t *testing.T) {
	for _, c := range []struct{ capability, want string }{
		{"90", ""}, {"89", ""}, {"88", ""}, {"121", ""},
		{"70", "this NVRTC compiles for sm_75 to sm_121, and Double H100 (GPU 0, sm_70"},
		{"130", "needs another"},
	} {
		t.Run(c.capability, func(t *testing.T) {
			m := machine(t)
			m.Set("CAPABILITY", c.capability)
			d := device(t)
			image, err := d.Compile("scale.cu", scaleSource, cuda.CompileOptions{})
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
				return
			}
			ok(t, err)
			mod, err := d.Load(image)
			ok(t, err)
			ok(t, mod.Close())
		})
	}
}

// TestArchFor: Tegra's architectures are for Tegra alone, whatever compiler there is.
func TestArchFor(t *testing.T) {
	cuda12 := []int{50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 100, 101, 120}
	for device, want := range map[int]int{90: 90, 89: 89, 88: 86, 87: 87, 86: 86, 103: 100, 101: 101, 110: 0, 121: 120, 61: 61, 62: 62, 53: 53, 72: 72, 37: 0, 130: 0} {
		if got := cuda.ArchFor(device, cuda12); got != want {
			t.Errorf("for a device of %d: %d, want %d", device, got, want)
		}
	}
	if got := cuda.ArchFor(87, []int{80, 86, 89}); got != 0 {
		t.Errorf("for Tegra without its own: %d", got)
	}
}

// cacheIn makes a test use a cache of its own, and returns what is said.
func cacheIn(t *testing.T, d *cuda.Device, folder string) *bytes.Buffer {
	t.Helper()
	t.Setenv(cuda.CacheVariable, folder)
	var said bytes.Buffer
	d.SetLogger(slog.New(slog.NewTextHandler(&said, nil)))
	return &said
}

func TestCache(t *testing.T) {
	defer unix.Umask(unix.Umask(0o027))
	m := machine(t)
	d := device(t)
	folder := filepath.Join(t.TempDir(), "not", "yet", "there")
	said := cacheIn(t, d, folder)
	compiled := func(source string, want int, options ...string) []byte {
		t.Helper()
		before := m.Calls("nvrtcCompileProgram")
		image, err := d.Compile("scale.cu", source, cuda.CompileOptions{Options: options})
		ok(t, err)
		if n := m.Calls("nvrtcCompileProgram") - before; n != want {
			t.Errorf("%d compilations, want %d", n, want)
		}
		return image
	}
	image := compiled(scaleSource, 1)
	if again := compiled(scaleSource, 0); !bytes.Equal(image, again) {
		t.Error("another image from the cache")
	}
	compiled(scaleSource+" ", 1)
	compiled(scaleSource, 1, "--fmad=false")
	compiled(scaleSource, 0, "--fmad=false")
	m.Set("DRIVER", "13010")
	compiled(scaleSource, 1)
	m.Set("DRIVER", "13000")
	m.Set("CAPABILITY", "90")
	compiled(scaleSource, 0)
	if said.Len() > 0 {
		t.Errorf("notices: %s", said)
	}

	entries, err := filepath.Glob(filepath.Join(folder, "*"))
	ok(t, err)
	if len(entries) != 4 {
		t.Fatalf("%d files in the cache, want 4: %v", len(entries), entries)
	}
	for _, e := range entries { // other users of the folder read them as the umask says
		i, err := os.Stat(e)
		ok(t, err)
		if i.Mode() != 0o640 {
			t.Errorf("%s has mode %v", e, i.Mode())
		}
	}

	// Each way for an entry to be damaged.
	t.Setenv(cuda.CacheVariable, t.TempDir())
	compiled(scaleSource, 1)
	entries, err = filepath.Glob(filepath.Join(os.Getenv(cuda.CacheVariable), "*"))
	ok(t, err)
	for name, damage := range map[string]func(b []byte) []byte{
		"a bit":     func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"cut":       func(b []byte) []byte { return b[:len(b)-1] },
		"cut short": func(b []byte) []byte { return b[:20] },
		"empty":     func([]byte) []byte { return nil },
		"other":     func([]byte) []byte { return bytes.Repeat([]byte("x"), 1000) },
	} {
		t.Run(name, func(t *testing.T) {
			said.Reset()
			b, err := os.ReadFile(entries[0])
			ok(t, err)
			ok(t, os.WriteFile(entries[0], damage(b), 0o666))
			if again := compiled(scaleSource, 1); len(again) == 0 {
				t.Error("no image")
			}
			if !strings.Contains(said.String(), "is damaged: it is compiled again") {
				t.Errorf("notices: %s", said)
			}
			compiled(scaleSource, 0)
		})
	}
}

// TestCacheFails: a folder that cannot be written costs one notice, and nothing
// else.
func TestCacheFails(t *testing.T) {
	m := machine(t)
	d := device(t)
	file := filepath.Join(t.TempDir(), "file")
	ok(t, os.WriteFile(file, nil, 0o666))
	said := cacheIn(t, d, filepath.Join(file, "cache")) // below a file no folder can be, not even root's
	before := m.Calls("nvrtcCompileProgram")
	for i := range 3 {
		_, err := d.Compile("scale.cu", fmt.Sprintf("%s// %d\n", scaleSource, i), cuda.CompileOptions{})
		ok(t, err)
	}
	if n := m.Calls("nvrtcCompileProgram") - before; n != 3 {
		t.Errorf("%d compilations", n)
	}
	if n := strings.Count(said.String(), "compiled kernels cannot be kept"); n != 1 || !strings.Contains(said.String(), cuda.CacheVariable) {
		t.Errorf("%d notices: %s", n, said)
	}
}

// TestCacheOnFullDisk: the same, and half of an entry does not stay.
func TestCacheOnFullDisk(t *testing.T) {
	machine(t)
	d := device(t)
	folder := t.TempDir()
	if err := unix.Mount("none", folder, "tmpfs", 0, "size=4k"); err != nil {
		t.Skipf("needs root, to mount a disk that is soon full: %v", err)
	}
	t.Cleanup(func() { ok(t, unix.Unmount(folder, unix.MNT_DETACH)) })
	said := cacheIn(t, d, folder)
	image, err := d.Compile("scale.cu", scaleSource, cuda.CompileOptions{})
	ok(t, err)
	if len(image) <= 4096 {
		t.Fatalf("an image of %d bytes fits on the disk", len(image))
	}
	if !strings.Contains(said.String(), "compiled kernels cannot be kept") || !strings.Contains(said.String(), "no space left on device") {
		t.Errorf("notices: %s", said)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left in the cache: %v, %v", left, err)
	}
}

// TestCompileTogether: compilations of several goroutines, some of one source, do
// not meet.
func TestCompileTogether(t *testing.T) {
	machine(t)
	d := device(t)
	cacheIn(t, d, t.TempDir())
	var wait sync.WaitGroup
	images := make([][]byte, 12)
	for i := range images {
		wait.Go(func() {
			image, err := d.Compile("scale.cu", strings.ReplaceAll(scaleSource, "scale", fmt.Sprint("scale", i%4)), cuda.CompileOptions{})
			if err != nil {
				t.Error(err)
			}
			images[i] = image
		})
	}
	wait.Wait()
	for i, image := range images {
		m, err := d.Load(image)
		ok(t, err)
		if _, err := m.Function(fmt.Sprint("scale", i%4)); err != nil {
			t.Error(err)
		}
		ok(t, m.Close())
	}
}

func TestModules(t *testing.T) {
	m := machine(t)
	d := device(t)
	s := stream(t, d, "s")
	if _, err := d.Load(nil); err == nil {
		t.Error("an empty image: no error")
	}
	if _, err := d.Load([]byte("no image at all, of some length")); err == nil || !strings.Contains(err.Error(), "CUDA_ERROR_INVALID_IMAGE") {
		t.Errorf("no image: %v", err)
	}
	image, err := d.Compile("scale.cu", scaleSource, cuda.CompileOptions{})
	ok(t, err)
	mod, err := d.Load(image)
	ok(t, err)
	if _, err := mod.Function("nothing"); err == nil || !strings.Contains(err.Error(), "kernel nothing: ") {
		t.Errorf("a kernel that is not there: %v", err)
	}
	before := m.Calls("cuFuncLoad")
	f, err := mod.Function("scale")
	ok(t, err)
	if f.Name() != "scale" || m.Calls("cuFuncLoad") != before+1 {
		t.Errorf("kernel %s was not loaded now", f.Name())
	}
	args := scaleArgs(0, 0, 1)
	for _, c := range []struct {
		grid, block, shared int
		args                []byte
		want                string
	}{
		{0, 1, 0, args, "0 blocks of 1 threads"},
		{1, 1025, 0, args, "of 1025 threads"},
		{1, 257, 0, args, "CUDA_ERROR_INVALID_VALUE"}, // more than the kernel was made for
		{1, 1, -1, args, "-1 bytes of shared memory"},
		{1, 1, 0, args[:16], "kernel scale: 16 bytes of arguments, and it takes 24"},
		{1, 1, 0, make([]byte, 4097), "4097 bytes of arguments, at most 4096"},
		{1, 1, 0, nil, "0 bytes of arguments, and it takes 24"},
	} {
		if err := s.Launch(f, c.grid, c.block, c.shared, c.args); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	ok(t, s.Launch(f, 1, 1, 0, args))
	ok(t, s.Sync(t.Context()))
	m.Set("CAPABILITY", "80")
	if _, err := d.Load(image); err == nil || !strings.Contains(err.Error(), "remove the cache of kernels") {
		t.Errorf("an image for another GPU: %v", err)
	}
	ok(t, mod.Close())
	ok(t, mod.Close())
}
