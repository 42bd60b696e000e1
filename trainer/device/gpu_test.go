package device

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	driver "ebtrain/collective/cuda"
	"ebtrain/collective/cuda/cudatest"
	ddpexec "ebtrain/ddp/exec"
)

// onGPUs has, in the environment of a process that TestOnGPUs starts, the Config that it opens:
// which libraries there are a process finds out once.
const onGPUs = "EBTRAIN_TEST_ON_GPUS"

// tell is such a process: it opens a device and says which, and whose memory that has.
func tell(text string) {
	var c Config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		panic(err)
	}
	b, err := Open(c)
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := Memory(b)
	fmt.Printf("%s; memory of %s, own %v, %v; GPUs %q\n", ddpexec.Describe(b), s.Of, s.Own, err, GPUs())
	if err := b.Close(); err != nil {
		fmt.Println(err)
	}
}

// TestOnGPUs: ranks take the GPUs of a machine in turn, each with its memory for itself; auto is
// the CPU, and says why, where there is no GPU, or its driver is of no use, and the other
// devices say what else there is.
func TestOnGPUs(t *testing.T) {
	libraries := cudatest.Folder(t)
	for _, c := range []struct {
		knob   string
		config Config
		want   []string // in what is told
	}{
		{"DEVICES=2", Config{Device: "auto"}, []string{"cuda (GPU 0, Double H100, f32", "memory of GPU 0 (Double H100), own true", `GPUs ["Double H100" "Double H100"]`}},
		{"DEVICES=2", Config{Device: "cuda", LocalRank: 1, Precision: TF32}, []string{"cuda (GPU 1, Double H100, tf32", "memory of GPU 1 (Double H100), own true"}},
		{"DEVICES=2", Config{Device: "cuda", LocalRank: 2, Precision: BF16}, []string{"cuda (GPU 0, Double H100, bf16"}},
		{"DRIVER=11040", Config{Device: "auto"}, []string{"cpu (", "the NVIDIA driver is too old", "memory of ", "own false", "GPUs []"}},
		{"DRIVER=11040", Config{Device: "cuda"}, []string{"--device cuda: the NVIDIA driver is too old", ": use --device cpu, or auto"}},
		{"DEVICES=0", Config{Device: "auto"}, []string{"cpu (", "the NVIDIA driver offers no GPU"}},
		{"DEVICES=0", Config{Device: "auto", Precision: TF32}, []string{"--precision tf32: only NVIDIA GPUs", "here (the NVIDIA driver offers no GPU"}},
		{"CAPABILITY=70", Config{Device: "auto", Precision: BF16}, []string{"--device auto: --precision bf16: no bf16", ": use --precision f32 or tf32"}},
		{"FAULT=cuDeviceGet=0=101", Config{Device: "auto"}, []string{"--device auto: ", "cuDeviceGet"}},
	} {
		if c.config.Precision == "" {
			c.config.Precision = F32
		}
		c.config.Threads = 1
		text, err := json.Marshal(struct {
			Device, Precision  string
			Threads, LocalRank int
		}{c.config.Device, c.config.Precision, 1, c.config.LocalRank})
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), onGPUs+"="+string(text), cudatest.Prefix+c.knob, driver.LibsVariable+"="+libraries+":-", driver.CacheVariable+"="+filepath.Join(libraries, "kernels"))
		out, err := cmd.CombinedOutput()
		for _, want := range c.want {
			if err != nil || !strings.Contains(string(out), want) {
				t.Errorf("%s, %s: got %q, %v, want %q in it", c.knob, text, out, err, want)
			}
		}
	}
}
