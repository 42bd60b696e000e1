//go:build cgo

package cuda_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"ebtrain/collective/cuda"
	"ebtrain/collective/cuda/cudatest"
)

func TestDevices(t *testing.T) {
	m := machine(t)
	m.Set("DEVICES", "2")
	m.Set("SMS", "132")
	m.Set("MEMORY", "1073741824")
	list, err := cuda.Devices()
	ok(t, err)
	if len(list) != 2 {
		t.Fatalf("got %v", list)
	}
	want := cuda.Info{Name: "Double H100", Ordinal: 1, Major: 9, Minor: 0, SMs: 132, Memory: 1 << 30, L2: 1 << 12, UUID: "GPU-65627472-6169-6e27-7320-646f75626c01", Whole: "GPU-65627472-6169-6e27-7320-646f75626c01", BusID: "0000:11:00.0"}
	if list[1] != want {
		t.Errorf("got %+v, want %+v", list[1], want)
	}
	if got := list[1].String(); got != "Double H100 (GPU 1, sm_90, 132 SMs, 1.0 GiB)" {
		t.Errorf("got %s", got)
	}
	_, err = cuda.OpenDevice(2)
	if !errors.Is(err, cuda.ErrNoDevice) || !strings.Contains(err.Error(), "number 2: there are 2, counted from 0") {
		t.Errorf("got %v", err)
	}
	t.Setenv("CUDA_VISIBLE_DEVICES", "1")
	_, err = cuda.OpenDevice(1)
	if !errors.Is(err, cuda.ErrNoDevice) || !strings.Contains(err.Error(), `number 1: there are 1, counted from 0 (CUDA_VISIBLE_DEVICES="1" leaves no more)`) {
		t.Errorf("got %v", err)
	}
	if v, err := cuda.DriverVersion(); v != 13000 || err != nil {
		t.Errorf("driver %d, %v", v, err)
	}
}

// TestParts: parts of one GPU (MIG) are devices of their own, and say of which GPU.
func TestParts(t *testing.T) {
	m := machine(t)
	m.Set("DEVICES", "3")
	m.Set("PARTS", "2")
	list, err := cuda.Devices()
	ok(t, err)
	if a, b, c := list[0], list[1], list[2]; a.UUID == b.UUID || a.Whole != b.Whole || a.BusID != b.BusID || a.Whole == c.Whole || a.Whole == a.UUID {
		t.Errorf("got %+v", list)
	}
}

// TestTwoDevices: each call goes to its own device, whichever thread it is made
// on.
func TestTwoDevices(t *testing.T) {
	m := machine(t)
	m.Set("DEVICES", "2")
	var wait sync.WaitGroup
	for ordinal := range 2 {
		d, err := cuda.OpenDevice(ordinal)
		ok(t, err)
		t.Cleanup(func() { ok(t, d.Close()) })
		for range 4 {
			wait.Go(func() {
				for range 50 {
					if err := onDevice(d, ordinal); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	wait.Wait()
}

// onDevice makes and uses a stream, which would be refused on another device.
func onDevice(d *cuda.Device, ordinal int) (err error) {
	s, err := d.NewStream("s", ordinal-1)
	if err != nil {
		return err
	}
	p, err := d.Alloc(64)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	err = d.Attach(func() error { return s.Memset(p, byte(ordinal), 64) })
	return errors.Join(err, s.Sync(context.Background()), d.Free(p), s.Close())
}

// TestDo: all functions run on one thread, one at a time, and none after Close.
func TestDo(t *testing.T) {
	m := machine(t)
	d, err := cuda.OpenDevice(0)
	ok(t, err)
	var running, thread atomic.Int64
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 100 {
				ok(t, d.Do(func() error {
					if running.Add(1) != 1 {
						t.Error("two functions at a time")
					}
					if id := int64(syscall.Gettid()); !thread.CompareAndSwap(0, id) && thread.Load() != id {
						t.Error("two threads")
					}
					running.Add(-1)
					return nil
				}))
			}
		})
	}
	wait.Wait()
	if err := d.Do(func() error { return os.ErrExist }); !errors.Is(err, os.ErrExist) {
		t.Errorf("got %v", err)
	}
	ok(t, d.Close())
	ok(t, d.Close())
	for _, f := range []func(func() error) error{d.Do, d.Attach} {
		if err := f(func() error { t.Error("runs"); return nil }); !errors.Is(err, cuda.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
	if n := m.Live("contexts"); n != 0 {
		t.Errorf("%d contexts are left", n)
	}
}

func TestOutOfMemory(t *testing.T) {
	m := machine(t)
	m.Set("MEMORY", "10485760")
	d := device(t)
	alloc(t, d, 8<<20)
	_, err := d.Alloc(3 << 20)
	var o *cuda.OutOfMemory
	if !errors.As(err, &o) || o.Asked != 3<<20 || o.Free != 2<<20 || o.Total != 10<<20 {
		t.Fatalf("got %#v", err)
	}
	if want := "cuda: out of memory on the GPU: 3.000 MiB asked, 2.000 MiB of 10.00 MiB free (cuda: cuMemAlloc_v2: out of memory (CUDA_ERROR_OUT_OF_MEMORY, 2))"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if few, want := (&cuda.OutOfMemory{Asked: 1024, Free: 96, Total: 3 << 20}).Error(), "cuda: out of memory on the GPU: 1.000 KiB asked, 96 B of 3.000 MiB free"; few != want {
		t.Errorf("got %q, want %q", few, want)
	}
	var e *cuda.Error
	if !errors.As(err, &e) || e.Call != "cuMemAlloc_v2" {
		t.Errorf("it hides the call: %v", err)
	}
	if _, err := d.Alloc(-1); err == nil {
		t.Error("-1 bytes: no error")
	}
	if p, err := d.Alloc(0); p != 0 || err != nil {
		t.Errorf("no bytes: %v, %v", p, err)
	}
	ok(t, d.Free(0))
	free, total, err := d.MemInfo()
	ok(t, err)
	if free != 2<<20 || total != 10<<20 {
		t.Errorf("free %d of %d", free, total)
	}
}

// TestNoContext: a call whose thread cannot have the context says that, and not that the call
// itself failed, which was not made.
func TestNoContext(t *testing.T) {
	m := machine(t)
	m.Set("DEVICES", "2")
	d := device(t)
	other, err := cuda.OpenDevice(1)
	ok(t, err)
	t.Cleanup(func() { ok(t, other.Close()) })
	s, err := d.NewStream("s", 0)
	ok(t, err)
	for name, call := range map[string]func() error{
		"Alloc":  func() error { _, err := d.Alloc(64); return err },
		"Query":  func() error { _, err := s.Query(); return err },
		"Stream": func() error { _, err := d.NewStream("t", 0); return err },
		"Sync":   d.Sync,
		"Attach": func() error { return d.Attach(func() error { return nil }) },
	} {
		for _, code := range []int{2, 999} {
			err := other.Attach(func() error { // a context that is not d's is current
				m.Fail("cuCtxSetCurrent", 1, code)
				return call()
			})
			if e, ok := errors.AsType[*cuda.Error](err); !ok || e.Call != "cuCtxSetCurrent" || e.Code != code {
				t.Errorf("%s: got %v, want cuCtxSetCurrent's error %d", name, err, code)
			}
			if _, full := errors.AsType[*cuda.OutOfMemory](err); full != (code == 2) {
				t.Errorf("%s, code %d: got %v", name, code, err)
			}
		}
	}
	ok(t, s.Close())
}

// TestSticky: a kernel that fails breaks the device for good. Everything says so
// and nothing hangs; but what frees says it only where nothing else has.
func TestSticky(t *testing.T) {
	m := machine(t)
	d := device(t)
	s, err := d.NewStream("compute", 0)
	ok(t, err)
	e, err := d.NewEvent(false)
	ok(t, err)
	f := func() cuda.Function {
		image, err := d.Compile("scale.cu", scaleSource, cuda.CompileOptions{})
		ok(t, err)
		mod, err := d.Load(image)
		ok(t, err)
		t.Cleanup(func() { ok(t, mod.Close()) })
		f, err := mod.Function("scale")
		ok(t, err)
		return f
	}()
	x, err := d.Alloc(4)
	ok(t, err)
	m.Fail("run:scale", 2, 700)
	for range 3 {
		_ = s.Launch(f, 1, 1, 0, scaleArgs(x, 1, 1)) // the third may be refused already
	}
	_ = s.Record(e)
	broken(t, s.Sync(context.Background()))
	broken(t, s.Sync(t.Context()))
	broken(t, e.Sync(t.Context()))
	broken(t, d.Sync())
	_, err = d.Alloc(4)
	broken(t, err)
	if !d.Lost() {
		t.Error("nothing is known of the context's loss")
	}
	ok(t, d.Free(x))
	ok(t, e.Close())
	ok(t, s.Close())
}

// TestStickyIsSaidOnce: what is freed first says that the context is lost, the rest nothing.
func TestStickyIsSaidOnce(t *testing.T) {
	m := machine(t)
	d := device(t)
	x, err := d.Alloc(4)
	ok(t, err)
	y, err := d.Alloc(4)
	ok(t, err)
	m.Fail("cuMemFree_v2", 1, 700)
	broken(t, d.Free(x))
	m.Fail("cuMemFree_v2", 1, 700)
	ok(t, d.Free(y))
	m.Fail("cuMemFree_v2", 1, 1)
	if err := d.Free(y); err == nil {
		t.Error("another failure of a call that frees is not said")
	}
}

// broken wants the error of a lost context.
func broken(t *testing.T, err error) {
	t.Helper()
	var e *cuda.Error
	if !errors.As(err, &e) || !e.Sticky() || e.Code != 700 {
		t.Errorf("got %v, want a sticky error", err)
		return
	}
	for _, want := range []string{"CUDA_ERROR_ILLEGAL_ADDRESS, 700", "the process must end", "Xid"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

func TestErrorText(t *testing.T) {
	for _, c := range []struct {
		e      cuda.Error
		want   string
		sticky bool
	}{
		{cuda.Error{Call: "cuInit", Code: 803, Name: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", Text: "mismatch"},
			"cuda: cuInit: mismatch (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803); libcuda and the kernel's module have different versions: reboot, or reinstall the driver", false},
		{cuda.Error{Call: "cuMemFree_v2", Code: 1, Name: "CUDA_ERROR_INVALID_VALUE", Text: "invalid argument"},
			"cuda: cuMemFree_v2: invalid argument (CUDA_ERROR_INVALID_VALUE, 1)", false},
		{cuda.Error{Call: "ncclSend", Code: 700, Name: "ncclOther", Text: "of another library"},
			"cuda: ncclSend: of another library (ncclOther, 700)", false},
	} {
		if got := c.e.Error(); got != c.want || c.e.Sticky() != c.sticky {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestStart: what is wrong with the machine is one typed error, in a process that
// meets it.
func TestStart(t *testing.T) {
	folder := cudatest.Folder(t)
	cudatest.Use(t)
	old := t.TempDir()
	compileC(t, old, "libcuda.so.1", "int cuDriverGetVersion(int *v) { *v = 12020; return 0; }", "")
	text := t.TempDir()
	ok(t, os.WriteFile(filepath.Join(text, "libcuda.so.1"), []byte("text"), 0o666))
	for _, c := range []struct {
		name string
		env  []string
		want []string
	}{
		{"no driver", []string{cuda.LibsVariable + "=" + t.TempDir() + ":-"}, []string{"ErrNoDriver", "this machine has no NVIDIA driver: cuda: the NVIDIA driver was not found: install", "/libcuda.so.1)"}},
		{"no library", []string{cuda.LibsVariable + "=" + text}, []string{"ErrNoDriver", "cannot be used", "file too short"}},
		{"too old", []string{"EBDOUBLE_DRIVER=11040"}, []string{"ErrDriverTooOld", "it serves CUDA 11.4, and 12.0 or newer is needed (driver 525 or newer)"}},
		{"incomplete", []string{cuda.LibsVariable + "=" + old + ":-"}, []string{"ErrDriverTooOld", old + "/libcuda.so.1 has no function cuInit"}},
		{"no device", []string{"EBDOUBLE_DEVICES=0"}, []string{"ErrNoDevice", "the NVIDIA driver offers no GPU: cuda: cuInit: no CUDA-capable device"}},
		{"none visible", []string{"CUDA_VISIBLE_DEVICES=7"}, []string{"ErrNoDevice", `CUDA_VISIBLE_DEVICES="7" names none that is there`}},
		{"empty", []string{"CUDA_VISIBLE_DEVICES="}, []string{"ErrNoDevice", `CUDA_VISIBLE_DEVICES=""`}},
		{"not ready", []string{"EBDOUBLE_FAULT=cuInit=1=802"}, []string{"other", "fabric manager"}},
		{"shutting down", []string{"EBDOUBLE_FAULT=cuInit=1=4"}, []string{"other", "(CUDA_ERROR_DEINITIALIZED, 4); the driver is shutting down"}},
		{"version fails", []string{"EBDOUBLE_FAULT=cuDriverGetVersion=0=999"}, []string{"other", "the driver does not say its version"}},
		{"a stub", []string{"EBDOUBLE_FAULT=cuDriverGetVersion=0=34"}, []string{"other", "CUDA_ERROR_STUB_LIBRARY, 34", "take CUDA's stubs folder out of LD_LIBRARY_PATH"}},
		{"visible", []string{"CUDA_VISIBLE_DEVICES=1", "EBDOUBLE_DEVICES=2"}, []string{"1 devices, the first 0000:11:00.0"}},
		{"fine", nil, []string{"1 devices, the first 0000:10:00.0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$", "-test.v")
			cmd.Env = append(append(os.Environ(), "EBTRAIN_CHILD=start", cuda.LibsVariable+"="+folder+":-"), c.env...)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for _, want := range c.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("%q is not in\n%s", want, out)
				}
			}
		})
	}
}

// TestChild is what other tests run in processes of their own.
func TestChild(t *testing.T) {
	switch os.Getenv("EBTRAIN_CHILD") {
	case "start":
		list, err := cuda.Devices()
		kind := "other"
		for name, e := range map[string]error{"ErrNoDriver": cuda.ErrNoDriver, "ErrNoDevice": cuda.ErrNoDevice, "ErrDriverTooOld": cuda.ErrDriverTooOld} {
			if errors.Is(err, e) {
				kind = name
			}
		}
		if err != nil {
			fmt.Println(kind, err)
			return
		}
		fmt.Printf("%d devices, the first %s\n", len(list), list[0].BusID)
	case "older":
		d := device(t)
		f := scale(t, d)
		s := stream(t, d, "s")
		x, host := alloc(t, d, 4), pinned(t, d, 4)
		floats(host)[0] = 3
		ok(t, first(s.CopyIn(x, host, 0, 4), s.Launch(f, 1, 1, 0, scaleArgs(x, 1, 2)), s.CopyOut(host, 0, x, 4), s.Sync(context.Background())))
		fmt.Println("computed", floats(host)[0])
	case "overrun":
		machine(t)
		d := device(t)
		image, err := d.Compile("scale.cu", scaleSource, cuda.CompileOptions{})
		ok(t, err)
		m, err := d.Load(image)
		ok(t, err)
		f, err := m.Function("scale")
		ok(t, err)
		s := stream(t, d, "s")
		x := alloc(t, d, 12)
		ok(t, s.Launch(f, 1, 4, 0, scaleArgs(x, 4, 1))) // four floats where there are three
		ok(t, s.Sync(context.Background()))
		ok(t, d.Free(x))
	}
}

// TestOlderDriver: a driver before 12.4 has neither cuFuncLoad nor
// cuFuncGetParamInfo, and serves.
func TestOlderDriver(t *testing.T) {
	doubles, older := cudatest.Folder(t), t.TempDir()
	cudatest.Use(t)
	sources, err := filepath.Glob(filepath.Join(doubles, "cuda_*.c"))
	ok(t, err)
	args := append([]string{"-shared", "-fPIC", "-std=gnu11", "-DBEFORE_12_4", "-I" + doubles, "-Wl,-soname,libcuda.so.1", "-o", filepath.Join(older, "libcuda.so.1")}, sources...)
	if out, err := exec.Command("gcc", append(args, "-pthread", "-ldl")...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$", "-test.v")
	cmd.Env = append(os.Environ(), "EBTRAIN_CHILD=older", cuda.LibsVariable+"="+older+":"+doubles+":-")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "computed 7") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestGuards: a kernel that writes beside its memory ends the process, with a
// sentence.
func TestGuards(t *testing.T) {
	cudatest.Use(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), "EBTRAIN_CHILD=overrun")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "double: device memory of 12 bytes: byte 12 was written") {
		t.Errorf("%v: %s", err, out)
	}
}

// child runs a test in a process of its own.
func child(t *testing.T, scene, test string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), "EBTRAIN_CHILD="+scene)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+test) {
		t.Errorf("%v: %s", err, out)
	}
}

// compileC makes a shared object of a source, linked with another.
func compileC(t *testing.T, folder, name, source, needs string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	c := filepath.Join(t.TempDir(), "x.c")
	ok(t, os.WriteFile(c, []byte(source), 0o666))
	args := []string{"-shared", "-fPIC", "-o", path, "-Wl,--no-as-needed", c}
	if needs != "" { // by its name alone, beside this one
		args = append(args, "-L"+filepath.Dir(needs), "-l:"+filepath.Base(needs), "-Wl,-rpath,$ORIGIN")
	}
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}
