package cuda

import "fmt"

// Family is a library with all the files that it opens itself. They are always
// taken from one folder: parts of different versions do not fit together.
type Family int

// The families. CuDNN brings CublasLt and NVRTC with it, those of the CUDA that
// it was built for.
const (
	Driver Family = iota
	NVRTC
	CublasLt
	CuDNN
	NCCL
)

func (f Family) String() string { return families[f].name }

// spec says what a family is made of and where it may lie.
type spec struct {
	name string
	// majors are the versions of CUDA that there are builds for, best first; none:
	// its sonames do not change with CUDA.
	majors []int
	main   string   // soname; %d is the major
	needs  []string // patterns: the folder must hold a file of each
	beside []string // patterns: these are opened, too, where they are
	also   []string // patterns: these are opened where they can be; others' libraries open them by their sonames
	first  bool     // what is beside comes before main: main opens it by its soname
	pip    []string // folders in site-packages
	extra  []string // folders of the system
	advice string   // how to get it
}

// families are the specs. In the folders of pip, nvidia/cu13 is CUDA 13's.
var families = map[Family]spec{
	Driver: {
		name:   "the NVIDIA driver",
		main:   "libcuda.so.1",
		also:   []string{"libnvidia-ml.so.1"}, // NCCL does not begin without
		extra:  []string{"/usr/local/nvidia/lib64", "/usr/lib/wsl/lib", "/run/opengl-driver/lib"},
		advice: "install the NVIDIA driver, or start the container with its GPUs",
	},
	NVRTC: {
		name:   "NVRTC",
		majors: []int{13, 12},
		main:   "libnvrtc.so.%d",
		needs:  []string{"libnvrtc-builtins.so.%d.*"},
		beside: []string{"libnvrtc-builtins.so.%d.*"},
		first:  true,
		pip:    []string{"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"},
		advice: "pip install nvidia-cuda-nvrtc (CUDA 12: nvidia-cuda-nvrtc-cu12)",
	},
	CublasLt: {
		name:   "cuBLASLt",
		majors: []int{13, 12},
		main:   "libcublasLt.so.%d",
		needs:  []string{"libcublas.so.%d"},
		beside: []string{"libcublas.so.%d"},
		pip:    []string{"nvidia/cu13/lib", "nvidia/cublas/lib"},
		advice: "pip install nvidia-cublas (CUDA 12: nvidia-cublas-cu12)",
	},
	CuDNN: {
		name:   "cuDNN",
		main:   "libcudnn.so.9",
		needs:  []string{"libcudnn_graph.so.9"},
		beside: []string{"libcudnn_*.so.9"},
		pip:    []string{"nvidia/cudnn/lib"},
		advice: "pip install nvidia-cudnn-cu13 (CUDA 12: nvidia-cudnn-cu12)",
	},
	NCCL: {
		name:   "NCCL",
		main:   "libnccl.so.2",
		pip:    []string{"nvidia/nccl/lib"},
		advice: "pip install nvidia-nccl-cu13 (CUDA 12: nvidia-nccl-cu12)",
	},
}

// build is a family for one major of CUDA: its patterns without %d.
type build struct {
	major  int // 0: any
	main   string
	needs  []string
	beside []string
	also   []string
	first  bool
}

// builds lists the builds of a family for the majors that are allowed.
func (s spec) builds(allowed func(major int) bool) []build {
	if s.majors == nil {
		return []build{{main: s.main, needs: s.needs, beside: s.beside, also: s.also, first: s.first}}
	}
	var out []build
	for _, m := range s.majors {
		if allowed(m) {
			out = append(out, build{m, fmt.Sprintf(s.main, m), fill(s.needs, m), fill(s.beside, m), fill(s.also, m), s.first})
		}
	}
	return out
}

func fill(patterns []string, major int) []string {
	var out []string
	for _, p := range patterns {
		out = append(out, fmt.Sprintf(p, major))
	}
	return out
}
