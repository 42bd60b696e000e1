package binding

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"ebtrain/launch/variable"
)

// Machine is what this package looks at.
type Machine struct {
	root    string      // in front of /sys, /proc and /dev, "" but in tests
	allowed unix.CPUSet // the processors that this process may use
}

// This is this machine.
func This() (Machine, error) {
	var m Machine
	if err := unix.SchedGetaffinity(0, &m.allowed); err != nil {
		return m, fmt.Errorf("which processors this process may use: %w", err)
	}
	return m, nil
}

// node is a node with processors.
type node struct {
	number int
	cpus   unix.CPUSet // that this process may use
}

// nodes are those of which this process may use processors, by number. A kernel that
// tells of none has one.
func (m Machine) nodes() ([]node, error) {
	found, err := os.ReadDir(m.root + "/sys/devices/system/node")
	if errors.Is(err, fs.ErrNotExist) {
		return []node{{0, m.allowed}}, nil
	}
	if err != nil {
		return nil, err
	}
	var nodes []node
	for _, f := range found {
		digits, ok := strings.CutPrefix(f.Name(), "node")
		number, err := strconv.Atoi(digits)
		if !ok || err != nil {
			continue // another file of the folder's
		}
		cpus, err := m.list("/sys/devices/system/node/" + f.Name() + "/cpulist")
		if err != nil {
			return nil, err
		}
		if cpus = both(cpus, m.allowed); cpus.Count() > 0 { // else it is memory only, or others'
			nodes = append(nodes, node{number, cpus})
		}
	}
	if len(nodes) == 0 {
		return nil, fmt.Errorf("none of the nodes in /sys/devices/system/node has processors %s, which this process may use", format(m.allowed))
	}
	slices.SortFunc(nodes, func(a, b node) int { return a.number - b.number })
	return nodes, nil
}

// socket is the number of a processor's socket.
func (m Machine) socket(cpu int) (int, error) {
	return m.number(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu))
}

// cores are the processors of cpus by the core that they are threads of.
func (m Machine) cores(cpus unix.CPUSet) ([]unix.CPUSet, error) {
	return groups(cpus, func(cpu int) (unix.CPUSet, error) {
		return m.list(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu))
	})
}

// caches are the processors of cpus by the last cache that they share.
func (m Machine) caches(cpus unix.CPUSet) ([]unix.CPUSet, error) {
	return groups(cpus, func(cpu int) (unix.CPUSet, error) {
		folder := fmt.Sprintf("/sys/devices/system/cpu/cpu%d/cache", cpu)
		last, err := m.lastCache(folder)
		if err != nil {
			return unix.CPUSet{}, err
		}
		return m.list(folder + "/" + last + "/shared_cpu_list")
	})
}

// groups are the processors of cpus by those with which each shares something.
func groups(cpus unix.CPUSet, with func(cpu int) (unix.CPUSet, error)) (all []unix.CPUSet, err error) {
	for cpu := range members(cpus) {
		group, err := with(cpu)
		if err != nil {
			return nil, err
		}
		if group = both(group, cpus); !slices.Contains(all, group) {
			all = append(all, group)
		}
	}
	return all, nil
}

// lastCache is the entry of a processor's folder of caches that is farthest from it.
func (m Machine) lastCache(folder string) (name string, err error) {
	found, err := os.ReadDir(m.root + folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	level := 0
	for _, f := range found {
		if !strings.HasPrefix(f.Name(), "index") {
			continue // another file of the folder's
		}
		n, err := m.number(folder + "/" + f.Name() + "/level")
		if err != nil {
			return "", err
		}
		if n > level {
			name, level = f.Name(), n
		}
	}
	if name == "" {
		return "", fmt.Errorf("%s tells of no cache, so which processors share one is not known: bind ranks to the %s", folder, Node)
	}
	return name, nil
}

// gpus are the addresses on the PCI bus of the GPUs that ranks see, in the order of
// their numbers; none if there are none.
func (m Machine) gpus(environ []string) ([]string, error) {
	found, err := os.ReadDir(m.root + "/proc/driver/nvidia/gpus")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []string // sorted, as CUDA counts equal GPUs
	for _, f := range found {
		all = append(all, f.Name())
	}
	if all, err = m.open(all); err != nil {
		return nil, err
	}
	visible, ok := variable.Lookup(environ, "CUDA_VISIBLE_DEVICES")
	if !ok {
		return all, nil
	}
	var gpus []string
	for id := range strings.SplitSeq(visible, ",") {
		address, ok, err := m.gpu(all, strings.TrimSpace(id))
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		gpus = append(gpus, address)
	}
	return gpus, nil
}

// gpu is the address of the one of all that CUDA_VISIBLE_DEVICES calls id; false where CUDA's
// list ends, since there is none.
func (m Machine) gpu(all []string, id string) (address string, ok bool, err error) {
	n, noNumber := strconv.Atoi(id)
	switch {
	case noNumber == nil && n >= 0 && n < len(all):
		return all[n], true, nil
	case strings.HasPrefix(id, "GPU-"):
		address, err = m.withUUID(all, id)
		return address, err == nil, err
	case strings.HasPrefix(id, "MIG-"):
		return "", false, fmt.Errorf("CUDA_VISIBLE_DEVICES names %s, a part of a GPU, of which it is not known where it is", id)
	}
	return "", false, nil
}

// open are those GPUs that this process may open: CUDA counts no others, where a batch system
// lets each job open its own. Until somebody uses the driver there may be no files to open; then
// they are all.
func (m Machine) open(all []string) (open []string, err error) {
	absent := 0
	for _, address := range all {
		minor, err := m.information(address, "Device Minor")
		if err != nil {
			return nil, err
		}
		err = unix.Access(m.root+"/dev/nvidia"+minor, unix.R_OK|unix.W_OK) // asks the control group, too
		switch {
		case minor == "" || err == nil:
			open = append(open, address)
		case errors.Is(err, fs.ErrNotExist):
			absent++
		}
	}
	if absent == len(all) {
		return all, nil
	}
	return open, nil
}

// withUUID is the address of the GPU whose UUID begins so.
func (m Machine) withUUID(all []string, id string) (string, error) {
	for _, address := range all {
		uuid, err := m.information(address, "GPU UUID")
		if err != nil {
			return "", err
		}
		if strings.HasPrefix(uuid, id) {
			return address, nil
		}
	}
	return "", fmt.Errorf("CUDA_VISIBLE_DEVICES names %s, which is none of the GPUs in /proc/driver/nvidia/gpus that this process may open", id)
}

// information is what the driver says of a GPU under name, "" if nothing.
func (m Machine) information(address, name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(m.root, "/proc/driver/nvidia/gpus", address, "information"))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value), nil
		}
	}
	return "", nil
}

// near is the place in nodes of the node that a GPU hangs on.
func (m Machine) near(nodes []node, gpu string) (int, error) {
	number, err := m.number("/sys/bus/pci/devices/" + strings.ToLower(gpu) + "/numa_node")
	if err != nil {
		return 0, err
	}
	if number < 0 && len(nodes) == 1 {
		return 0, nil // a machine that has one says so of nothing
	}
	for i, n := range nodes {
		if n.number == number {
			return i, nil
		}
	}
	if number < 0 {
		return 0, fmt.Errorf("the kernel does not know which of %d nodes GPU %s hangs on", len(nodes), gpu)
	}
	return 0, fmt.Errorf("GPU %s hangs on node %d, none of whose processors this process may use (they are %s)", gpu, number, format(m.allowed))
}

// number reads a file that holds one.
func (m Machine) number(file string) (int, error) {
	text, err := os.ReadFile(m.root + file)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("%s: want a number, got %q", file, text)
	}
	return n, nil
}

// Processors is how many the machine has, whichever this process may run on.
func (m Machine) Processors() (int, error) {
	all, err := m.list("/sys/devices/system/cpu/online")
	return all.Count(), err
}

// list reads a file that holds a list of processors.
func (m Machine) list(file string) (unix.CPUSet, error) {
	text, err := os.ReadFile(m.root + file)
	if err != nil {
		return unix.CPUSet{}, err
	}
	set, err := parse(strings.TrimSpace(string(text)))
	if err != nil {
		return set, fmt.Errorf("%s: %w", file, err)
	}
	return set, nil
}
