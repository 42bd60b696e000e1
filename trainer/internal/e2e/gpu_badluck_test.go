package e2e

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"ebtrain/collective/cuda"
	"ebtrain/collective/cuda/cudatest"
)

// asUser calls f on a thread whose processes may write only where modes let them, also
// where this user is root.
func asUser(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	ended := make(chan error)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with the goroutine
		for _, c := range []uintptr{unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH} {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
				ended <- err
				return
			}
		}
		f()
		ended <- nil
	}()
	if err := <-ended; err != nil {
		t.Skipf("needs to give up what root may, to be refused: %v", err)
	}
}

// TestGPUKernelCache trains with a folder of compiled kernels in which one is damaged
// and one is missing: the damaged one is told of, and both are compiled again. Then in one
// that cannot be written to, and in one that is full, where two are missing: that is told of
// once. Each run goes on to its end.
func TestGPUKernelCache(t *testing.T) {
	long(t)
	s := newSite(t).withGPUs(1)
	folder := s.path("kernels")
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(cudatest.Folder(t), "kernels"))); err != nil {
		t.Fatal(err)
	}
	s.env = append(s.env, cuda.CacheVariable+"="+folder)
	used := opened(t, folder, func() { s.must(onGPU("whole", "--steps", "2")...) })
	if len(used) < 10 {
		t.Fatalf("the run has read the kernels %q, want more", used)
	}
	damaged, missing := used[0], used[1:3]
	whole := read(t, damaged)
	bad := slices.Clone(whole)
	bad[len(bad)/2] ^= 1
	write(t, damaged, bad)
	remove(t, missing[0])

	s.must(onGPU("mended", "--steps", "2")...)
	if log := s.log("mended"); strings.Count(log, "is damaged: it is compiled again") != 1 || !strings.Contains(log, damaged) {
		t.Errorf("want one notice of %s, got %s", damaged, log)
	}
	if _, err := os.Stat(missing[0]); err != nil || slices.Equal(read(t, damaged), bad) {
		t.Errorf("the kernels are not mended (%v)", err)
	}

	for _, file := range missing {
		remove(t, file)
	}
	t.Run("full", func(t *testing.T) { s.hasNoRoom(t, folder) })
	t.Run("read-only", func(t *testing.T) { s.keepsNoKernels(t, folder, missing[0]) })
}

// hasNoRoom trains with a copy of a folder, in which kernels are missing, on a file system
// that is full; nothing is left half-written there.
func (s *site) hasNoRoom(t *testing.T, folder string) {
	t.Helper()
	full := t.TempDir()
	const mounted = `mount -t tmpfs -o size=64m none "$FULL" || exit 99
cp "$KERNELS"/* "$FULL" && cat /dev/zero > "$FULL/filler" 2> "$FULL.said"
n=$(ls "$FULL" | wc -l)
"$@" && if [ "$(ls "$FULL" | wc -l)" != "$n" ]; then ls -t "$FULL" | head -1 >&2; exit 98; fi`
	args := onGPU("full", "--steps", "2")
	args[0] = filepath.Join(s.bin, args[0])
	here := &site{t: t, dir: s.dir, env: append(slices.Clone(s.env), "KERNELS="+folder, "FULL="+full, cuda.CacheVariable+"="+full)}
	e := here.startCommand(append([]string{"unshare", "--map-root-user", "--mount", "sh", "-c", mounted, "sh"}, args...)).wait()
	if e.code == 99 || strings.HasPrefix(e.stderr, "unshare: ") {
		t.Skipf("needs to mount a small file system: %v", e)
	}
	if log := s.log("full"); e.code != 0 || strings.Count(log, "compiled kernels cannot be kept") != 1 || !strings.Contains(log, "no space left on device") {
		t.Errorf("want one notice that kernels cannot be kept, got %s %v", log, e)
	}
	s.sameFiles("whole/ckpt", "full/ckpt")
}

// keepsNoKernels trains with a folder that may not be written to, in which kernels are
// missing.
func (s *site) keepsNoKernels(t *testing.T, folder, missing string) {
	t.Helper()
	if err := os.Chmod(folder, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(folder, 0o755) }) // so that it can be removed
	var e ended
	asUser(t, func() { e = s.run(onGPU("kept", "--steps", "2")...) })
	if log := s.log("kept"); e.code != 0 || strings.Count(log, "compiled kernels cannot be kept") != 1 || strings.Contains(log, "damaged") {
		t.Errorf("want one notice that kernels cannot be kept, got %s %v", log, e)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("the folder was written to: the test has lost its subject")
	}
	s.sameFiles("whole/ckpt", "kept/ckpt")
}

// log is what rank 0 of a run has written down.
func (s *site) log(run string) string { return string(s.content(run)["rank-0.log"]) }

// opened are the files of a folder that are read meanwhile, in the order of their names.
func opened(t *testing.T, folder string, do func()) (files []string) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Skipf("needs inotify, to see which kernels are read: %v", err)
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written
	if _, err := unix.InotifyAddWatch(fd, folder, unix.IN_CLOSE_NOWRITE); err != nil {
		t.Fatal(err)
	}
	do()
	buf := make([]byte, 1<<20)
	n, err := unix.Read(fd, buf)
	if err != nil {
		t.Fatal(err)
	}
	for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
		size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
		if name := strings.TrimRight(string(b[unix.SizeofInotifyEvent:size]), "\x00"); name != "" {
			files = append(files, filepath.Join(folder, name))
		}
		b = b[size:]
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// TestGPUInterruptedCapture interrupts a launcher, as Ctrl-C does, while its ranks are
// capturing their second step, which takes two seconds here: the run ends as any other that
// is stopped, with a checkpoint, and nobody is left.
func TestGPUInterruptedCapture(t *testing.T) {
	long(t)
	s := newSite(t).withGPUs(2, "FAULT=cuStreamBeginCapture_v2=1=~2000")
	r := s.start(on(2, onGPU("a", "--steps", "1000000"))...)
	s.awaitStep(r, "a", 0)
	family := r.children()
	r.signal(syscall.SIGINT)
	e := r.wait()
	gone(t, family)
	if want := "[0-1] train: stopped before the end; the same command with --resume goes on"; e.code != 75 || !strings.Contains(e.stderr, want) {
		t.Errorf("want exit code 75 and %q, got %v", want, e)
	}
	if n := len(s.losses("a")); n == 0 || n > 8 {
		t.Errorf("%d steps were done after SIGINT in the second", n)
	}
}

// TestGPUMixedCuDNN starts a run where the parts of cuDNN are of two versions: one
// sentence, which names both.
func TestGPUMixedCuDNN(t *testing.T) {
	long(t)
	s := newSite(t)
	folder := t.TempDir()
	doubles := cudatest.Folder(t)
	entries, err := os.ReadDir(doubles)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := e.Name()
		real := filepath.Join(doubles, name)
		if strings.HasPrefix(name, "libcudnn") {
			version := map[bool]string{true: ".19.0", false: ".24.1"}[name == "libcudnn.so.9"]
			data := read(t, real)
			real = filepath.Join(folder, name+version)
			write(t, real, data)
		}
		if err := os.Symlink(real, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	s.env = []string{cuda.LibsVariable + "=" + folder + ":-"}
	e := s.run(onGPU("a", "--steps", "1")...)
	want := filepath.Join(folder, "libcudnn.so.9") + ": parts of different versions are mixed: libcudnn.so.9.19.0 beside libcudnn_graph.so.9.24.1"
	if last := strings.TrimSpace(e.stderr); e.code != 1 || !strings.Contains(last, want) || strings.Contains(last, "\n") {
		t.Errorf("want exit code 1 and one sentence with %q, got %v", want, e)
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, file string, b []byte) {
	t.Helper()
	if err := os.WriteFile(file, b, 0o755); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, file string) {
	t.Helper()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
}

// TestGPUFault has the GPU of one of two ranks fail: in a call, in what a replay runs, which
// is seen where its end is waited for, and for want of memory. The other rank, perhaps inside
// a collective, ends with it, and both say in one sentence whose GPU it was and what: what
// is freed then fails, too, hundreds of times.
func TestGPUFault(t *testing.T) {
	long(t)
	for name, c := range map[string]struct{ fault, says string }{
		"launch": {"cuGraphLaunch=4=700", "cuGraphLaunch: an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS, 700); the GPU's context is lost"},
		"kernel": {"run:*=2000=214", "(CUDA_ERROR_ECC_UNCORRECTABLE, 214); the GPU's context is lost"},
		"memory": {"cuMemAlloc_v2=2=2", `GPU 1 (Double H100) is out of memory: 96 B were asked for variable "generator.bn1.weight"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t).withGPUs(2)
			args := onGPU("a", "--steps", "1000000")
			args[0] = filepath.Join(s.bin, args[0])
			faulty := `[ "$RANK" = 0 ] || export ` + cudatest.Prefix + "FAULT=" + c.fault + `; exec "$0" "$@"`
			e := s.start(on(2, append([]string{"sh", "-c", faulty}, args...))...).wait()
			if e.code != 1 || strings.Count(e.stderr, c.says) != 1 || strings.Count(e.stderr, "cuda: ") > 1 || !strings.HasPrefix(e.stderr, "[0-1] train: rank 1 (") {
				t.Errorf("want exit code 1 and one sentence of rank 1's with %q, got %v", c.says, e)
			}
		})
	}
}

// TestGPUsDiffer starts ranks one of which has another NCCL, too old a one, or another GPU:
// both end, and the launcher says one sentence.
func TestGPUsDiffer(t *testing.T) {
	long(t)
	for name, c := range map[string]struct{ knob, says string }{
		"old":     {"NCCL_VERSION=21805", "nccl: rank 1: this NCCL does not serve: it is 2.18.5; 2.19.0 or newer is needed: pip install -U nvidia-nccl-cu13 (CUDA 12: nvidia-nccl-cu12)"},
		"another": {"NCCL_VERSION=22703", "nccl: this NCCL does not serve: rank 0 has NCCL 2.28.9, rank 1 has 2.27.3: install the same on all hosts"},
		"GPU":     {"NAME=H200", "nccl: the GPUs of the ranks differ: rank 0 has Double H100 (sm_90), rank 1 has H200 (sm_90): choose equal ones by CUDA_VISIBLE_DEVICES, or start other hosts"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t).withGPUs(2)
			args := onGPU("a", "--steps", "1000000")
			args[0] = filepath.Join(s.bin, args[0])
			other := `[ "$RANK" = 0 ] || export ` + cudatest.Prefix + c.knob + `; exec "$0" "$@"`
			e := s.start(on(2, append([]string{"sh", "-c", other}, args...))...).wait()
			if e.code != 1 || strings.Count(e.stderr, "train: ") != 1 || strings.Count(e.stderr, c.says) != 1 {
				t.Errorf("want exit code 1 and nothing but %q, got %v", c.says, e)
			}
		})
	}
}
