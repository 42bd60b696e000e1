package binding

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// machine makes one of two sockets, of two nodes each, of four cores each, of two threads
// each: processors n and n+16 are a core, and two cores share their last cache. A fifth node
// is memory only. There are GPUs on
// nodes 1, 1, 2 and 3, whose files in /dev are numbered the other way around.
func machine(t *testing.T, allowed string) Machine {
	t.Helper()
	m := Machine{root: t.TempDir()}
	write := func(file, text string, a ...any) {
		path := filepath.Join(m.root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, fmt.Appendf(nil, text, a...), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 4 {
		write(fmt.Sprintf("sys/devices/system/node/node%d/cpulist", n), "%d-%d,%d-%d\n", 4*n, 4*n+3, 16+4*n, 16+4*n+3)
	}
	write("sys/devices/system/node/node4/cpulist", "\n")
	write("sys/devices/system/node/online", "0-4\n")
	for cpu := range 32 {
		write(fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu), "%d\n", cpu%16/8)
		write(fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu), "%d,%d\n", cpu%16, 16+cpu%16)
		for i, level := range []int{1, 3, 2} {
			first := []int{cpu % 16, cpu % 16 / 2 * 2, cpu % 16}[i]
			last := []int{cpu % 16, cpu%16/2*2 + 1, cpu % 16}[i]
			folder := fmt.Sprintf("sys/devices/system/cpu/cpu%d/cache/index%d/", cpu, i)
			write(folder+"level", "%d\n", level)
			write(folder+"shared_cpu_list", "%d-%d,%d-%d\n", first, last, 16+first, 16+last)
		}
		write(fmt.Sprintf("sys/devices/system/cpu/cpu%d/cache/uevent", cpu), "")
	}
	for i, node := range []int{1, 1, 2, 3} {
		address := fmt.Sprintf("0000:%dB:00.0", i+1)
		write("proc/driver/nvidia/gpus/"+address+"/information", "Model: \t\t some\nGPU UUID: \t GPU-%d%d-rest\nBus Location: \t %s\nDevice Minor: \t %d\n", i, i, address, 3-i)
		write(fmt.Sprintf("dev/nvidia%d", 3-i), "")
		write("sys/bus/pci/devices/"+strings.ToLower(address)+"/numa_node", "%d\n", node)
	}
	set, err := parse(allowed)
	if err != nil {
		t.Fatal(err)
	}
	m.allowed = set
	return m
}

// without removes a file or folder.
func (m Machine) without(t *testing.T, file string) Machine {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(m.root, file)); err != nil {
		t.Fatal(err)
	}
	return m
}

// closed makes the files of all GPUs some that cannot be opened, by root either.
func (m Machine) closed(t *testing.T) Machine {
	t.Helper()
	for i := range 4 {
		name := fmt.Sprintf("nvidia%d", i)
		m.without(t, "dev/"+name)
		if err := os.Symlink(name, filepath.Join(m.root, "dev", name)); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

const gpus = "proc/driver/nvidia"

func TestPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		m    Machine
		mode Mode
		env  string // CUDA_VISIBLE_DEVICES, unless -
		want string // processors and threads of each rank
	}{
		"near GPUs":         {machine(t, "0-31"), Node, "-", "4-7,20-23:4 4-7,20-23:4 8-11,24-27:8 12-15,28-31:8"},
		"more than GPUs":    {machine(t, "0-31"), Node, "-", "4-7,20-23:2 4-7,20-23:2 8-11,24-27:4 12-15,28-31:8 4-7,20-23:2 4-7,20-23:2 8-11,24-27:4"},
		"other GPUs":        {machine(t, "0-31"), Node, "3,1", "12-15,28-31:8 4-7,20-23:8"},
		"by name":           {machine(t, "0-31"), Node, "GPU-22,GPU-00-rest", "8-11,24-27:8 4-7,20-23:8"},
		"up to a bad one":   {machine(t, "0-31"), Node, "2,-1,0", "8-11,24-27:4 8-11,24-27:4"},
		"beyond the last":   {machine(t, "0-31"), Node, "2,4", "8-11,24-27:8"},
		"none visible":      {machine(t, "0-31"), Node, "", "0-3,16-19:8 8-11,24-27:8"},
		"an unknown word":   {machine(t, "0-31"), Node, "NoDevFiles", "0-3,16-19:8 8-11,24-27:8"},
		"only own GPUs":     {machine(t, "0-31").without(t, "dev/nvidia3").without(t, "dev/nvidia2"), Node, "0,1", "8-11,24-27:8 12-15,28-31:8"},
		"own, all visible":  {machine(t, "0-31").without(t, "dev/nvidia2"), Node, "-", "4-7,20-23:8 8-11,24-27:8 12-15,28-31:8"},
		"no own GPUs":       {machine(t, "0-31").closed(t), Node, "-", "0-3,16-19:8 8-11,24-27:8"},
		"no files yet":      {machine(t, "0-31").without(t, "dev"), Node, "3", "12-15,28-31:8"},
		"no GPUs":           {machine(t, "0-31").without(t, gpus), Node, "-", "0-3,16-19:8 4-7,20-23:8 8-11,24-27:8 12-15,28-31:8"},
		"more than nodes":   {machine(t, "0-31").without(t, gpus), Node, "-", "0-3,16-19:4 0-3,16-19:4 4-7,20-23:8 8-11,24-27:4 8-11,24-27:4 12-15,28-31:8"},
		"sockets":           {machine(t, "0-31"), Socket, "-", "0-7,16-23:8 0-7,16-23:8 8-15,24-31:8 8-15,24-31:8"},
		"cores":             {machine(t, "0-31"), Exclusive, "-", "4-5,20-21:4 6-7,22-23:4 8-11,24-27:8 12-15,28-31:8"},
		"an odd share":      {machine(t, "0-31"), Exclusive, "0", "4,20:2 5,21:2 6-7,22-23:4"},
		"caches":            {machine(t, "0-31").without(t, gpus), Complex, "-", "0-1,16-17:4 2-3,18-19:4 4-5,20-21:4 6-7,22-23:4 8-9,24-25:4 10-11,26-27:4 12-13,28-29:4 14-15,30-31:4"},
		"caches near GPUs":  {machine(t, "0-31"), Complex, "-", "4-5,20-21:4 6-7,22-23:4 8-9,24-25:4 12-13,28-29:4"},
		"more than caches":  {machine(t, "0-3,16-19").without(t, gpus), Complex, "-", "0-1,16-17:1 0-1,16-17:1 0-1,16-17:1 2-3,18-19:2 2-3,18-19:2"},
		"the larger part":   {machine(t, "0,2-3,18").without(t, gpus), Complex, "-", "2-3,18:3"},
		"some processors":   {machine(t, "1-9,17"), Node, "2", "8-9:2"},
		"some cores":        {machine(t, "0-3,17-18").without(t, gpus), Exclusive, "-", "0-1,17:3 2-3,18:3"},
		"a kernel with one": {machine(t, "0-31").without(t, gpus).without(t, "sys/devices/system/node"), Node, "-", "0-31:16 0-31:16"},
	} {
		t.Run(name, func(t *testing.T) {
			var environ []string
			if c.env != "-" {
				environ = []string{"CUDA_VISIBLE_DEVICES=" + c.env}
			}
			places, err := c.m.Of(c.mode, len(strings.Fields(c.want)), environ)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range places {
				got = append(got, fmt.Sprintf("%v:%d", p, p.Threads()))
			}
			if got := strings.Join(got, " "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// A rank on a GPU of a machine with one node, whose kernel says -1, is on that node.
func TestOneNode(t *testing.T) {
	m := machine(t, "0-3,16-19")
	if err := os.WriteFile(filepath.Join(m.root, "sys/bus/pci/devices/0000:1b:00.0/numa_node"), []byte("-1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	places, err := m.Of(Node, 1, []string{"CUDA_VISIBLE_DEVICES=0"})
	if err != nil || places[0].String() != "0-3,16-19" {
		t.Errorf("got %v, %v", places, err)
	}
	m.allowed.Set(4)
	if _, err := m.Of(Node, 1, []string{"CUDA_VISIBLE_DEVICES=0"}); err == nil || err.Error() != "the kernel does not know which of 2 nodes GPU 0000:1B:00.0 hangs on" {
		t.Errorf("of two nodes: %v", err)
	}
}

func TestMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		m    Machine
		mode Mode
		env  string
		want string
	}{
		"a part of a GPU":  {machine(t, "0-31"), Node, "MIG-1", "CUDA_VISIBLE_DEVICES names MIG-1, a part of a GPU, of which it is not known where it is"},
		"another's GPU":    {machine(t, "0-31"), Node, "GPU-7", "CUDA_VISIBLE_DEVICES names GPU-7, which is none of the GPUs in /proc/driver/nvidia/gpus that this process may open"},
		"far from its GPU": {machine(t, "0-3"), Node, "2", "GPU 0000:3B:00.0 hangs on node 2, none of whose processors this process may use (they are 0-3)"},
		"too few cores":    {machine(t, "4-5,20-21"), Exclusive, "0", "node 1 has 2 cores for 3 ranks: start fewer ranks, or bind them to the node"},
		"no caches":        {machine(t, "0-31").without(t, "sys/devices/system/cpu/cpu9/cache"), Complex, "2", "/sys/devices/system/cpu/cpu9/cache tells of no cache, so which processors share one is not known: bind ranks to the node"},
		"no node":          {machine(t, "40-41"), Node, "0", "none of the nodes in /sys/devices/system/node has processors 40-41, which this process may use"},
	} {
		_, err := c.m.Of(c.mode, 3, []string{"CUDA_VISIBLE_DEVICES=" + c.env})
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	m := machine(t, "0-31")
	for _, file := range []string{"sys/devices/system/node/node1/cpulist", "sys/devices/system/cpu/cpu4/topology/physical_package_id"} {
		if err := os.WriteFile(filepath.Join(m.root, file), []byte("some\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Of(Socket, 1, nil); err == nil || !strings.Contains(err.Error(), "/"+file+": ") {
			t.Errorf("a damaged %s: %v", file, err)
		}
		m = machine(t, "0-31")
	}
}

// Some list of this machine's processors is always found.
func TestThis(t *testing.T) {
	m, err := This()
	if err != nil {
		t.Fatal(err)
	}
	m.root = t.TempDir() // whatever this machine has
	places, err := m.Of(Node, 2, nil)
	if err != nil || places[0].CPUs != m.allowed || places[1].Ranks != 2 {
		t.Errorf("got %v, %v", places, err)
	}
}

func TestParseMode(t *testing.T) {
	for s, want := range map[string]Mode{"none": None, "node": Node, "Socket": Socket, "EXCLUSIVE": Exclusive, "core-complex": Complex} {
		if m, err := Parse(s); m != want || err != nil {
			t.Errorf("%s: got %q, %v", s, m, err)
		}
	}
	if _, err := Parse("core"); err == nil || err.Error() != `"core": want one of none, node, socket, exclusive, core-complex` {
		t.Errorf("got %v", err)
	}
}

// FuzzList reads what it wrote, and refuses or normalises everything else.
func FuzzList(f *testing.F) {
	for _, s := range []string{"", "0", "0-3,8", "0-1023", "1024", "3-1", "-1", "1,", "0-3,2-5", " 1", "1-2-3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		set, err := parse(s)
		if err != nil {
			if set != (unix.CPUSet{}) {
				t.Errorf("%q: %v, and %v", s, err, set)
			}
			return
		}
		again, err := parse(format(set))
		if err != nil || again != set {
			t.Errorf("%q became %q: %v", s, format(set), err)
		}
	})
}

// The machine has at least the processors that this process may use.
func TestProcessors(t *testing.T) {
	m, err := This()
	if err != nil {
		t.Fatal(err)
	}
	if n, err := m.Processors(); err != nil || n < runtime.NumCPU() {
		t.Errorf("%d processors, of which %d may be used; %v", n, runtime.NumCPU(), err)
	}
}
