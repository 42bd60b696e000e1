// Package device chooses where a program computes: the backend, the precision
// and the threads that a user named, and whether this machine's memory can hold
// the program at all.
package device

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu"
	"ebtrain/ddp/exec/ref"
)

// Names are the values of --device.
const Names = "auto, cpu, cuda, ref"

// Precisions are the values of --precision: the type in which convolutions and
// matrix products multiply. All else is float32.
const Precisions = F32 + ", " + TF32 + ", " + BF16

const (
	F32  = "f32"  // with all its digits
	TF32 = "tf32" // float32 of 10 bits behind the point, on GPUs that have it
	BF16 = "bf16"
)

// Graphs are the values of --cuda-graph.
const Graphs = Auto + ", " + On + ", " + Off

const (
	Auto = "auto" // where all ranks can
	On   = "on"
	Off  = "off"
)

// Config is where and how a rank computes.
type Config struct {
	Device    string // one of Names
	Precision string // one of Precisions
	// Threads is per rank; 0 obeys OMP_NUM_THREADS, which ddplaunch sets, and without
	// it takes the cores that the process may use, or as many as a container's quota of
	// processor time is worth, which Go's runtime reads (GOMAXPROCS; 2 at least, where
	// there are 2), and shares them among Sharing ranks.
	Threads int
	// Sharing is how many ranks may use these cores, this one included, as world.World
	// knows it; 0 is 1. It is 1 where ranks are bound to cores of their own.
	Sharing int
	// LocalRank and LocalRanks are this rank's number among those of its host, which
	// chooses among the devices of a kind where there are several, and how many they
	// are; 0 ranks is 1.
	LocalRank, LocalRanks int

	// The following matter on GPUs only.

	Graph         string       // one of Graphs; "" is Auto
	Deterministic bool         // sums of the ranks depend on nothing but their number
	Choices       string       // file that keeps which of the libraries' kernels a run uses; "" keeps none
	Smaller       string       // what to do where the GPU's memory is full: see cuda.Config
	Say           func(string) // told what people should know, a sentence each; may be nil
}

// maxThreads bounds the threads of a rank: more is a typing mistake.
func maxThreads() int { return max(64, 8*runtime.NumCPU()) }

// Check reports a --device, a --precision or a --threads that Open
// cannot take, whatever machine it is on.
func Check(device, precision string, threads int) error {
	if !slices.Contains(strings.Split(Names, ", "), device) {
		return fmt.Errorf("unknown --device %q: want one of %s", device, Names)
	}
	if !slices.Contains(strings.Split(Precisions, ", "), precision) {
		return fmt.Errorf("unknown --precision %q: want one of %s", precision, Precisions)
	}
	if precision == TF32 && (device == "cpu" || device == "ref") {
		return errTF32(device, "")
	}
	if device == "ref" && precision != F32 {
		return fmt.Errorf("--device ref computes in float32 only, and --precision is %s: use --device cpu", precision)
	}
	if threads < 0 || threads > maxThreads() {
		return fmt.Errorf("want --threads from 1 to %d, or 0 to share the cores, got %d", maxThreads(), threads)
	}
	return nil
}

// errGraph is the answer to a graph of steps on a processor; why is as that of errTF32.
func errGraph(device, why string) error {
	return fmt.Errorf("--cuda-graph on: only NVIDIA GPUs capture steps, and --device %s computes on the CPU%s: leave it out", device, why)
}

// errTF32 is the answer to TF32 on a processor; why says why there is no GPU, if that
// was looked for.
func errTF32(device, why string) error {
	return fmt.Errorf("--precision tf32: only NVIDIA GPUs multiply in TF32, and --device %s computes on the CPU%s: use --precision f32", device, why)
}

// CheckGraph reports a --cuda-graph that there is not, or that no processor has.
func CheckGraph(device, graph string) error {
	if graph == On && (device == "cpu" || device == "ref") {
		return errGraph(device, "")
	}
	if !slices.Contains(strings.Split(Graphs, ", "), graph) {
		return fmt.Errorf("unknown --cuda-graph %q: want one of %s", graph, Graphs)
	}
	return nil
}

// Open opens a device that multiplies in the given precision; it fails where the device
// cannot. "auto" is a GPU where there is one, and the CPU elsewhere, whose Notice
// then says why.
func Open(c Config) (exec.Backend, error) {
	if err := Check(c.Device, c.Precision, c.Threads); err != nil {
		return nil, err
	}
	if err := CheckGraph(c.Device, cmp.Or(c.Graph, Auto)); err != nil {
		return nil, err
	}
	switch c.Device {
	case "ref":
		return ref.New(), nil
	case "cpu":
		return openCPU(c)
	}
	b, absent, err := openGPU(c)
	if err != nil {
		return nil, fmt.Errorf("--device %s: %w", c.Device, err)
	}
	switch {
	case absent == nil:
		return b, nil
	case c.Device == "cuda":
		return nil, fmt.Errorf("--device cuda: %w: use --device cpu, or auto", absent)
	case c.Precision == TF32:
		return nil, errTF32("auto", " here ("+short(absent)+")")
	case c.Graph == On:
		return nil, errGraph("auto", " here ("+short(absent)+")")
	}
	host, err := openCPU(c)
	if err != nil {
		return nil, err
	}
	return instead{host, absent}, nil
}

// instead is the CPU where a GPU was looked for.
type instead struct {
	exec.Backend
	absent error
}

// Notice says why it is no GPU, and what the CPU's own has to say.
func (i instead) Notice() string {
	s := short(i.absent)
	if n, ok := i.Backend.(interface{ Notice() string }); ok && n.Notice() != "" {
		s = n.Notice() + "; " + s
	}
	return s
}

// openCPU opens the CPU.
func openCPU(c Config) (exec.Backend, error) {
	threads, err := Threads(c)
	if err != nil {
		return nil, err
	}
	b, err := cpu.New(cpu.Config{Threads: threads, BF16: c.Precision == BF16})
	if errors.Is(err, cpu.ErrNoBF16) {
		return nil, fmt.Errorf("--precision bf16: %w: use --precision f32", err)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Threads is how many threads a rank computes with on the CPU, whatever its device: it
// resolves Config.Threads.
func Threads(c Config) (int, error) {
	if c.Threads > 0 {
		return c.Threads, nil
	}
	return defaultThreads(os.Getenv("OMP_NUM_THREADS"), c.Sharing)
}

// defaultThreads reads OMP_NUM_THREADS, a number or one for each level of
// nesting, of which the first counts.
func defaultThreads(omp string, sharing int) (int, error) {
	if omp == "" {
		return max(1, runtime.GOMAXPROCS(0)/max(1, sharing)), nil
	}
	first, _, _ := strings.Cut(omp, ",")
	n, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || n < 1 || n > maxThreads() {
		return 0, fmt.Errorf("OMP_NUM_THREADS=%q: want a number of threads from 1 to %d, or unset it, or give --threads", omp, maxThreads())
	}
	return n, nil
}
