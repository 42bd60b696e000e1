package host

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// HostsDigest is what a card has for the hosts.
var HostsDigest = hostsDigest

// AlignedHosts is the hosts of a group with Config.Aligned.
var AlignedHosts = cutHosts

// Threaded is cfg for leaders that read with threads, as where there are processors for them.
func Threaded(cfg Config) Config {
	cfg.threads = true
	return cfg
}

// InGrid is cfg for leaders that stand in rows of so many, as many hosts do.
func InGrid(cfg Config, width int) Config {
	cfg.width = width
	return cfg
}

// Impatient is cfg for leaders that wait so long for what they say to be acknowledged.
func Impatient(cfg Config, d time.Duration) Config {
	cfg.unacknowledged = d
	return cfg
}

// Deafen has c, a leader, get nothing any more of what is sent over connections for data, nor
// any acknowledgement, as where a firewall drops them.
func (c *Comm) Deafen() error {
	nothing := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K}
	drop := func(fd int) error {
		return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing})
	}
	var errs []error
	for _, o := range c.peers.mesh.others {
		switch carrier := c.peers.mesh.carrier.(type) {
		case *pump:
			errs = append(errs, drop(carrier.flows[o].wire.fd))
		case *threads:
			errs = append(errs, onFD(carrier.ends[o].conn.(syscall.Conn), drop))
		}
	}
	return errors.Join(errs...)
}
