// Package congestion chooses how TCP between hosts finds out how fast it may send: its
// congestion control.
//
// The machine's choice is kept but for BBR, which sends at the rate that it has measured,
// packet by packet by a timer. Collectives give it little to measure: every leader sends
// to all others at once, a slice each, waits, and sends again. So each connection keeps to
// its share of the link while the others are silent, probes for more over many round
// trips, and stops for 0.2 s every ten; and where ranks keep the processors busy its timer
// comes late, which it takes for a slow link (arXiv 2601.05665). A window that is as large
// as nothing is lost has none of that.
//
// It has to be chosen before a connection is made: once BBR has had it, its timer stays.
//
// Functions may be called from any goroutine. The package is for Linux.
package congestion

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// windows are the controls to have in place of BBR, the best one first: cubic grows
// faster where links are long, reno is there on every machine and for everyone.
var windows = []string{"cubic", "reno"}

// Choose makes the choice for a socket that is not yet connected. It is a Control of
// net.Dialer and of net.ListenConfig, whose connections then have it, too. That no
// other control can be had is no error: Paced finds out. Sockets that are not TCP's are
// left as they are.
func Choose(network, _ string, c syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	return on(c, func(fd int) error {
		now, err := control(fd)
		if err != nil {
			return err
		}
		for _, name := range instead(now) {
			err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
			switch {
			case err == nil:
				return nil
			case !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ENOENT): // not allowed, or not there
				return fmt.Errorf("set TCP's congestion control to %s: %w", name, err)
			}
		}
		return nil
	})
}

// Paced is the control of a connection, if it is one that should not be, else "".
func Paced(c syscall.Conn) (name string, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return "", err
	}
	err = on(raw, func(fd int) error {
		now, err := control(fd)
		if len(instead(now)) > 0 {
			name = now
		}
		return err
	})
	return name, err
}

// instead is what to try in place of a control, in order; nothing if it may stay.
func instead(name string) []string {
	if strings.HasPrefix(name, "bbr") { // and bbr2, bbr3
		return windows
	}
	return nil
}

func control(fd int) (string, error) {
	name, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	if err != nil {
		return "", fmt.Errorf("ask for TCP's congestion control: %w", err)
	}
	return name, nil
}

// on has do work on the descriptor of c.
func on(c syscall.RawConn, do func(fd int) error) error {
	var inner error
	err := c.Control(func(fd uintptr) { inner = do(int(fd)) })
	return errors.Join(err, inner)
}
