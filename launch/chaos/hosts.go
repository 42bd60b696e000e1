package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// host is one of the hosts that are made of this machine: a network, a /dev/shm, a
// host name and a clock of its own, the same files otherwise. What it is made of
// has no name; it is gone when the process that holds it has ended.
type host struct {
	name   string
	addr   string
	pid    int // of the process that holds it
	clock  bool
	cmd    *exec.Cmd
	in     io.Closer
	stderr bytes.Buffer
}

// network is hosts behind a switch, which is a host, too.
type network struct {
	hosts  []*host
	middle *host
	inodes map[string]bool // of the networks
}

// aheadBy is what the clock of the last host is ahead of the others', the time
// since its boot.
const aheadBy = 10 * 24 * time.Hour

// newNetwork makes n hosts.
func newNetwork(n int) (net *network, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("needs root, to make namespaces that stand for hosts")
	}
	for _, tool := range []string{"ip", "tc", "unshare", "nsenter"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("needs %s, to make namespaces that stand for hosts: install iproute2 and util-linux", tool)
		}
	}
	net = &network{inodes: map[string]bool{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, net.close())
		}
	}()
	if net.middle, err = net.hold("switch", false); err != nil {
		return nil, err
	}
	if err := net.middle.sh("ip link add br0 type bridge; ip link set br0 up"); err != nil {
		return nil, err
	}
	for i := range n {
		h, err := net.hold(fmt.Sprintf("node%d", i), i == n-1)
		if err != nil {
			return nil, err
		}
		h.addr = fmt.Sprintf("10.7.0.%d", i+1)
		net.hosts = append(net.hosts, h)
		err = net.middle.sh(fmt.Sprintf("ip link add port%d type veth peer name eth0 netns %d; ip link set port%d master br0 up", i, h.pid, i))
		if err == nil {
			err = h.sh(fmt.Sprintf("ip addr add %s/24 dev eth0; ip link set eth0 up", h.addr))
		}
		if err != nil {
			return nil, err
		}
	}
	return net, nil
}

// hold starts the process that keeps a host until its input ends.
func (n *network) hold(name string, clock bool) (*host, error) {
	args := []string{"--net", "--mount", "--uts"}
	if clock {
		ahead := strconv.Itoa(int(aheadBy.Seconds()))
		args = append(args, "--time", "--boottime", ahead, "--monotonic", ahead)
	}
	args = append(args, "sh", "-ec", `hostname "$0"; mount -t tmpfs none /dev/shm; ip link set lo up; echo; exec cat`, name)
	h := &host{name: name, clock: clock, cmd: exec.Command("unshare", args...)}
	h.cmd.Stderr = &h.stderr
	in, err := h.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := h.cmd.Start(); err != nil {
		return nil, err
	}
	h.in, h.pid = in, h.cmd.Process.Pid
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		_ = in.Close()
		_ = h.cmd.Wait()
		return nil, fmt.Errorf("namespaces that stand for a host cannot be made: %s", strings.TrimSpace(h.stderr.String()))
	}
	if inode, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", h.pid)); err == nil {
		n.inodes[inode] = true
	}
	return h, nil
}

// enter is the command line that runs args on h, in dir. The program takes the
// place of the processes before it.
func (h *host) enter(dir string, args ...string) []string {
	in := []string{"nsenter", "--net", "--mount", "--uts"}
	if h.clock {
		in = append(in, "--time")
	}
	return append(append(in, "-t", strconv.Itoa(h.pid), "sh", "-c", `cd "$0" && exec "$@"`, dir), args...)
}

// sh runs a script of shell on h.
func (h *host) sh(script string) error {
	_, err := h.ask(script)
	return err
}

func (h *host) ask(script string) (string, error) {
	args := h.enter("/", "sh", "-ec", script)
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %s: %w: %s", h.name, script, err, out)
	}
	return string(out), err
}

// plug connects host i to the switch, or cuts it off.
func (n *network) plug(i int, connected bool) error {
	state := "down"
	if connected {
		state = "up"
	}
	return n.middle.sh(fmt.Sprintf("ip link set port%d %s", i, state))
}

// narrow makes the links of all hosts slow, or as they were.
func (n *network) narrow(slow bool) error {
	for i := range n.hosts {
		script := fmt.Sprintf("tc qdisc del dev port%d root", i)
		if slow {
			script = fmt.Sprintf("tc qdisc add dev port%d root tbf rate 2mbit burst 16kb limit 4mb", i)
		}
		if err := n.middle.sh(script); err != nil {
			return err
		}
	}
	return nil
}

// sockets are the ports that are open on h.
func (h *host) sockets() []string {
	var open []string
	for _, proto := range []string{"tcp", "tcp6", "udp", "udp6"} {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", h.pid, proto))
		if err != nil {
			continue // no IPv6
		}
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) > 3 && (f[3] == "0A" || strings.HasPrefix(proto, "udp") && f[3] == "07") {
				open = append(open, fmt.Sprintf("%s of %s: port %s", proto, h.name, f[1]))
			}
		}
	}
	return open
}

// close ends the hosts, and says what lives on in them.
func (n *network) close() error {
	var errs []error
	for _, h := range append(n.hosts, n.middle) {
		if h == nil {
			continue
		}
		_ = h.in.Close() // cat ends
		if err := h.cmd.Wait(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w: %s", h.name, err, &h.stderr))
		}
	}
	for _, pid := range processes() {
		if inode, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid)); err == nil && n.inodes[inode] {
			errs = append(errs, fmt.Errorf("process %d keeps a network of a host", pid))
		}
	}
	return errors.Join(errs...)
}
