// Package netns makes hosts of one machine, to try and to measure what several do: a
// host is a network, a /dev/shm, a host name and, if it is asked for, a clock of its
// own; files, processes and processors are the machine's. They hang on a switch, by
// links that can be cut and limited.
//
// Invariants: what is made has no name outside, touches nothing outside, and is gone
// when the process that has made it is. Linux alone has it, with the programs of
// iproute2 and util-linux, and root may make it. A Network is for one goroutine at a
// time; what it tells of its hosts does not change.
package netns

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Interface is the name of each host's only link.
const Interface = "eth0"

// Host is one of the hosts.
type Host struct {
	Name string // node0, node1 and so on
	Addr string // IPv4, on Interface; of a Network's
	PID  int    // of the process that holds it, by which a link is given to it

	clock  bool
	cmd    *exec.Cmd
	in     io.Closer
	stderr bytes.Buffer
}

// Network is hosts behind a switch, which is a host, too.
type Network struct {
	Hosts []*Host

	middle *Host
	inodes map[string]bool // of the networks
}

// tools are the programs that make and enter hosts.
var tools = []string{"ip", "tc", "unshare", "nsenter"}

// Possible is nil if this process can make hosts, and else says what it lacks.
func Possible() error {
	if os.Geteuid() != 0 {
		return errors.New("needs root, to make namespaces that stand for hosts")
	}
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("needs %s, to make namespaces that stand for hosts: install iproute2 and util-linux", tool)
		}
	}
	if out, err := exec.Command("unshare", "--net", "--mount", "--uts", "--time", "true").CombinedOutput(); err != nil {
		return fmt.Errorf("needs namespaces, to stand for hosts, and may not make any: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// Most is how many hosts there may be.
const Most = 250

// New makes n hosts, 1 to Most. The clock of the last one, the time since its boot, is
// ahead of the others' by so much.
func New(n int, ahead time.Duration) (_ *Network, err error) {
	if n < 1 || n > Most {
		return nil, fmt.Errorf("%d hosts, expected 1 to %d", n, Most)
	}
	if err := Possible(); err != nil {
		return nil, err
	}
	net := &Network{inodes: map[string]bool{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, net.Close())
		}
	}()
	if net.middle, err = net.hold("switch", 0); err != nil {
		return nil, err
	}
	if err := net.middle.Sh("ip link add br0 type bridge; ip link set br0 up"); err != nil {
		return nil, err
	}
	for i := range n {
		clock := time.Duration(0)
		if i == n-1 {
			clock = ahead
		}
		h, err := net.hold(fmt.Sprintf("node%d", i), clock)
		if err != nil {
			return nil, err
		}
		h.Addr = fmt.Sprintf("10.7.0.%d", i+1)
		net.Hosts = append(net.Hosts, h)
		err = net.middle.Sh(fmt.Sprintf("ip link add port%d type veth peer name %s netns %d; ip link set port%d master br0 up", i, Interface, h.PID, i))
		if err == nil {
			err = h.Sh(fmt.Sprintf("ip addr add %s/24 dev %s; ip link set %s up", h.Addr, Interface, Interface))
		}
		if err != nil {
			return nil, err
		}
	}
	return net, nil
}

// hold makes one of its hosts.
func (n *Network) hold(name string, ahead time.Duration) (*Host, error) {
	h, err := Hold(name, ahead)
	if err != nil {
		return nil, err
	}
	inode, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", h.PID))
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	n.inodes[inode] = true
	return h, nil
}

// Hold makes a host that has no link, whose clock, the time since boot, is ahead by so
// much. A process holds it until Close, or until this process ends.
func Hold(name string, ahead time.Duration) (*Host, error) {
	args := []string{"--net", "--mount", "--uts"}
	if ahead != 0 {
		seconds := strconv.Itoa(int(ahead.Seconds()))
		args = append(args, "--time", "--boottime", seconds, "--monotonic", seconds)
	}
	args = append(args, "sh", "-ec", `hostname "$0"; mount -t tmpfs none /dev/shm; ip link set lo up; echo; exec cat`, name)
	h := &Host{Name: name, clock: ahead != 0, cmd: exec.Command("unshare", args...)}
	h.cmd.Stderr = &h.stderr
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's Ctrl-C is for what runs on it
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
	h.in, h.PID = in, h.cmd.Process.Pid
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		_ = in.Close()
		_ = h.cmd.Wait()
		return nil, fmt.Errorf("namespaces that stand for a host cannot be made: %s", strings.TrimSpace(h.stderr.String()))
	}
	return h, nil
}

// Close lets go of h, which lasts as long as something still runs on it.
func (h *Host) Close() error {
	_ = h.in.Close() // cat ends
	if err := h.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w: %s", h.Name, err, &h.stderr)
	}
	return nil
}

// Enter is the command line that runs args on h, in dir. The program takes the place
// of the processes before it, so its process is the one that is started.
func (h *Host) Enter(dir string, args ...string) []string {
	in := []string{"nsenter", "--net", "--mount", "--uts"}
	if h.clock {
		in = append(in, "--time")
	}
	return append(append(in, "-t", strconv.Itoa(h.PID), "sh", "-c", `cd "$0" && exec "$@"`, dir), args...)
}

// Sh runs a script of shell on h.
func (h *Host) Sh(script string) error {
	_, err := h.Ask(script)
	return err
}

// Ask runs a script of shell on h, and is what it has written.
func (h *Host) Ask(script string) (string, error) {
	args := h.Enter("/", "sh", "-ec", script)
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %s: %w: %s", h.Name, script, err, out)
	}
	return string(out), err
}

// Sockets are the ports that are open on h.
func (h *Host) Sockets() []string {
	var open []string
	for _, proto := range []string{"tcp", "tcp6", "udp", "udp6"} {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", h.PID, proto))
		if err != nil {
			continue // no IPv6
		}
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) > 3 && (f[3] == "0A" || strings.HasPrefix(proto, "udp") && f[3] == "07") {
				open = append(open, fmt.Sprintf("%s of %s: port %s", proto, h.Name, f[1]))
			}
		}
	}
	return open
}

// Close ends the hosts, and says what lives on in them.
func (n *Network) Close() error {
	var errs []error
	for _, h := range append(n.Hosts, n.middle) {
		if h == nil {
			continue
		}
		errs = append(errs, h.Close())
	}
	return errors.Join(append(errs, n.alive()...)...)
}

// alive is an error for each process in one of the networks.
func (n *Network) alive() (errs []error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return []error{err}
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue // no process
		}
		if inode, err := os.Readlink("/proc/" + e.Name() + "/ns/net"); err == nil && n.inodes[inode] {
			errs = append(errs, fmt.Errorf("process %s keeps a network of a host", e.Name()))
		}
	}
	return errs
}
